"""What an estimate says of itself."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spinbench.api import Estimate


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"log_z_se": math.inf}, "log Z unresolved"),  # an error that is not known is a doubt
        ({"log_z_se": math.inf, "doubts": ("log Z contradicted",)}, "log Z contradicted"),
        ({"log_z_se": 0.5}, "ok"),
        ({"log_z_kind": "exact"}, "ok"),
    ],
)
def test_status(given: dict[str, Any], status: str) -> None:
    estimate = Estimate(log_z=1.0, **given)
    assert estimate.status == status
    assert [bool(estimate.doubted(what)) for what in ("log Z", "marginals")] == [status != "ok", False]
