"""What burn-in tells of wells that the run itself hardly entered."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Arrival
from spinbench.api.trace import Trace
from spinbench.mathematics.claims import UNSEEN, marginal_claims
from spinbench.methods.relaxed import family
from spinbench.models import generators

CHAINS = 8


def trace_of(*away: int) -> Trace:
    """Of 400 samples in one well, after a burn-in in which so many chains were still in another, step 10, 20, …"""
    trace = Trace({"p": "sum"})
    trace.add({"p": np.full((2, CHAINS), 0.4)}, 400)
    for k, count in enumerate(away):
        values = np.full((2, CHAINS), 0.001)
        values[1, :count] = 0.999
        trace.arrivals.append(Arrival(10 * (k + 1), values))
    return trace


def error_bounds(visits: float = np.inf) -> np.ndarray:
    series = np.full((20, 2, CHAINS), 0.001)
    return marginal_claims(series, 400, np.zeros(2), np.ones(2), visits).error_bounds


def test_chains_that_left_a_well_slowly_would_have_come_back_as_seldom() -> None:
    means = np.full(2, 0.001)
    run = marginal_claims(np.full((20, 2, CHAINS), 0.001), 400, np.zeros(2), np.ones(2))
    assert family.max_visits_from_arrivals(trace_of(), means, run) == np.inf
    assert family.max_visits_from_arrivals(trace_of(0, 0), means, run) == np.inf
    assert family.max_visits_from_arrivals(trace_of(4, 0), means, run) == 400 * CHAINS / 10
    visits = family.max_visits_from_arrivals(trace_of(4, 2, 0), means, run)
    assert visits == 400 * CHAINS / 20
    np.testing.assert_allclose(error_bounds(visits), 2 * UNSEEN * 0.999 / visits, rtol=0.01)
    assert (error_bounds() <= error_bounds(visits)).all()
    assert (9 * error_bounds() < error_bounds(visits / 10)).all()


@pytest.mark.parametrize(
    ("method", "options"), [("dhmc", {}), ("block_gibbs", {}), ("block_gibbs", {"marginals": "empirical"})]
)
def test_methods_watch_their_burn_in_and_claim_by_it(monkeypatch, method: str, options: dict[str, str]) -> None:
    traces: list[Trace] = []

    def claims(visits: float) -> np.ndarray:
        monkeypatch.setattr(family, "max_visits_from_arrivals", lambda trace, *_: (traces.append(trace), visits)[1])
        model = generators.grid(2, 2)
        return spinbench.run(model, method, "numpy", 100, log_z="none", checkpoints=1, **options).marginals_error_bound

    alone, limited = claims(np.inf), claims(30.0)
    assert [arrival.steps for arrival in traces[-1].arrivals] == [3, 6, 11]
    assert all(((arrival.values >= 0) & (arrival.values <= 1)).all() for arrival in traces[-1].arrivals)
    assert (limited > np.maximum(alone, UNSEEN * 0.4 / 30)).all()
