"""What samplers of the relaxation keep of their looks, and what burn-in tells of wells that runs hardly enter."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Arrival
from spinbench.api.trace import Trace
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.block_gibbs import BlockGibbsKernel, RelaxedKernel
from spinbench.backends.numba.relaxed.dhmc import DHMCKernel
from spinbench.mathematics.claims import UNSEEN, marginal_claims
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import generators
from spinbench.models.generators import grid

MODEL = grid(4, 4, seed=0, scale=1.0)
KERNELS: list[tuple[type[RelaxedKernel], Any]] = [
    (BlockGibbsKernel, BlockGibbs()),
    (BlockGibbsKernel, BlockGibbs(form="sparse")),
    (DHMCKernel, DHMC()),
    (DHMCKernel, DHMC(form="harmonium")),
]


@pytest.mark.parametrize("chains", [3, 16])
@pytest.mark.parametrize(("kind", "method"), KERNELS)
def test_looks_within_a_call_are_those_between_calls(kind: Any, method: Any, chains: int) -> None:
    kernel = kind(method, NumbaBackend(), MODEL, method.plan(MODEL))
    state, other = (kernel.adapt(kernel.init(3, np.zeros((16, chains), dtype=np.int8)), True) for _ in range(2))
    state, statistics, seen = kernel.advance_and_look(state, 17, 3, 5)
    looks, sums = [], []
    for steps in (3, 5, 5, 4):
        other, part = kernel.advance(other, steps)
        looks.append(kernel.look(other)["alpha"])
        sums.append(part["p"])
    np.testing.assert_allclose(seen["alpha"], looks[:3], rtol=1e-12)
    np.testing.assert_allclose(statistics["p"], sum(sums), rtol=1e-12)
    np.testing.assert_array_equal(kernel.look(state)["alpha"], looks[3])


def test_without_log_z_nothing_is_looked_at() -> None:
    method = DHMC(log_z="none")
    kernel = DHMCKernel(method, NumbaBackend(), MODEL, method.plan(MODEL))
    state = kernel.init(0, np.zeros((16, 4), dtype=np.int8))
    assert not kernel.look_steps(state)
    assert kernel.look(state) == {}


@pytest.mark.parametrize("method", ["block_gibbs", "dhmc"])
def test_the_standard_error_of_log_z_halves_where_a_run_gets_four_times_as_long(method: str) -> None:
    """To 0.4 to 0.6, and it is what log Z is off by."""
    log_z, medians, scores = spinbench.exact(MODEL).log_z, [], []
    for samples in (10_000, 40_000):
        results = [spinbench.run(MODEL, method, "numba", samples, seed=seed) for seed in range(8)]
        assert all(result.level == "converged" for result in results)
        medians.append(np.median([result.log_z_se for result in results]))
        scores += [(result.log_z - log_z) / result.log_z_se for result in results]
    assert all(0.4 < long / short < 0.6 for short, long in pairwise(medians))
    assert 0.67 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_draws_that_are_asked_for_are_those_that_estimators_get() -> None:
    for draws in (160, 3200):
        result = spinbench.run(MODEL, "block_gibbs", "numpy", 400, draws=draws, log_z="mirrored_in_sample")
        assert draws <= result.diagnostics["log_z_draws"] < 2 * max(draws, 256)


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
