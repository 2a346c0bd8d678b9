"""What an estimate says of itself."""

from __future__ import annotations

import math

from spinbench.api import Estimate


def test_an_error_that_is_not_known_is_a_doubt() -> None:
    estimate = Estimate(log_z=1.0, log_z_se=math.inf)
    assert estimate.status == "log Z unresolved"
    assert estimate.doubted("log Z")
    assert not estimate.doubted("marginals")
    assert Estimate(log_z=1.0, log_z_se=math.inf, doubts=("log Z contradicted",)).status == "log Z contradicted"
    assert Estimate(log_z=1.0, log_z_se=0.5).status == "ok"
    assert Estimate(log_z=1.0, log_z_kind="exact").status == "ok"
