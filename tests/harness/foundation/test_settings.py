"""Settings that are out of range, or too large for any machine."""

from __future__ import annotations

from typing import Any

import pytest

from spinbench.errors import SpinbenchError
from spinbench.inference.registry import make_method


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("pt", {"rungs": 10**7}, "pt: rungs=10000000 was given; 0, or an integer from 2 to 1024, is needed"),
        ("pt", {"rungs": 1}, "pt: rungs=1 was given; 0, or an integer from 2"),
        ("pt", {"blocks": 2**50}, "no setting of method pt is named 'blocks' any more; the method blocks draws many"),
        (
            "pt",
            {"updates": "gibbs"},
            "no setting of method pt is named 'updates' any more; the method swendsen_wang mo",
        ),
        ("blocks", {"size": 10**15}, "blocks: size=10+ was given; an integer from 2 to 1048576 is needed"),
        ("blocks", {"blocks": 65}, "blocks: blocks=65 was given; an integer from 2 to 64 is needed"),
        ("smc", {"particles": 10**9}, "smc: particles=10+ was given"),
        ("nested", {"points": 10**9}, "nested: points=10+ was given"),
        ("tempered_transitions", {"temperatures": 10**9}, "temperatures=10+ was given"),
        ("multicanonical", {"bins": 10**9}, "multicanonical: bins=10+ was given; 0, or an integer from 2"),
        ("swendsen_wang", {"sweeps": -1}, "swendsen_wang: sweeps=-1 was given; an integer from 0"),
        ("gibbs", {"threads": 0}, "gibbs: threads=0 was given"),
        ("wmb", {"ibound": 31}, "wmb: ibound=31 was given; an integer from 0 to 30 is needed"),
    ],
)
def test_wrong_settings_are_one_sentence_before_anything_is_planned(
    method: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpinbenchError, match=message):
        make_method(method, settings)
