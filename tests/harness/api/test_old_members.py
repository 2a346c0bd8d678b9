"""Methods with members of version 0.1 run as they did, with a warning that names today's."""

import re
from typing import Any

import pytest

from spinbench.api import Conformance, Method


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ({"takes": "any"}, {"model_form": "any", "kind": "sampler"}),
        ({"anytime": False, "stochastic": False}, {"kind": "direct"}),
        ({"stochastic": False, "started": False}, {"kind": "iteration"}),
        ({"started": False, "stochastic": True}, {"kind": "draws"}),
        ({"needs": frozenset({"arrays", "grad"})}, {"requires": ("grad",)}),
        ({"burnt_in": True}, {"conformance": Conformance(burn_in_first=True)}),
        ({"exact_on_trees": True}, {"conformance": Conformance(exact_on_trees=True)}),
    ],
)
def test_members_of_version_0_1_are_read(old: dict[str, Any], expected: dict[str, object]) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"Old\.({'|'.join(map(re.escape, old))}) is a member of spinbench 0\.1"
    ):
        method: Any = type("Old", (Method,), old)
    assert {name: getattr(method, name) for name in expected} == expected
    assert Method.conformance == Conformance()
