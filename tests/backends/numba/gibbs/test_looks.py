"""Looks that are made within a call are those that are made between calls."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.gibbs.lanes import run_lanes
from spinbench.backends.numba.tables.kernel import GraphKernel
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph
from spinbench.models.generators import grid, sherrington_kirkpatrick

RNG = np.random.default_rng(4)
FACTORS = FactorGraph.from_log_tables(
    [3, 2, 4, 3], [((v, (v + 1) % 4), RNG.normal(size=size)) for v, size in enumerate([(3, 2), (2, 4), (4, 3), (3, 3)])]
)
KERNELS: list[tuple[type[Any], Any, Gibbs]] = [
    (GibbsKernel, grid(5, 4, seed=1), Gibbs()),
    (GibbsKernel, grid(5, 4, seed=1), Gibbs(marginals="empirical", scan="raster")),
    (GibbsKernel, sherrington_kirkpatrick(16, seed=1), Gibbs()),
    (GraphKernel, FACTORS, Gibbs()),
    (GraphKernel, FACTORS, Gibbs(marginals="empirical")),
]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("chains", [16, 70])
@pytest.mark.parametrize(("kind", "model", "method"), KERNELS)
def test_looks_within_a_call_are_those_between_calls(kind, model, method, chains: int, precision: Any) -> None:
    kernel = kind(method, NumbaBackend(precision=precision), model, method.plan(model))
    start = np.zeros((len(model.cardinalities), chains), dtype=np.int8)
    state, other = (kernel.init(3, start) for _ in range(2))
    assert kernel.look_steps(state)
    state, statistics, seen = kernel.advance_and_look(state, 17, 3, 5)
    looks, sums = [], []
    for steps in (3, 5, 5, 4):
        other, part = kernel.advance(other, steps)
        looks.append({name: values.copy() for name, values in kernel.look(other).items()})
        sums.append(part)
    assert seen.keys() == looks[0].keys()
    for name, values in seen.items():
        np.testing.assert_array_equal(values, [look[name] for look in looks[:3]])
    for name, values in statistics.items():
        np.testing.assert_allclose(values, sum(part[name] for part in sums), rtol=1e-5)
    np.testing.assert_array_equal(kernel.states(state), kernel.states(other))
    assert kernel.look(state)["log_r"].tolist() == kernel.look(other)["log_r"].tolist()


@pytest.mark.parametrize("settings", [{"log_z": "none"}, {"log_z": "chib"}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("model", [grid(5, 4, seed=1), FACTORS], ids=["grid", "factors"])
def test_what_looks_between_calls_says_so(model, settings: dict[str, Any]) -> None:
    method = Gibbs(**settings)
    kind = GraphKernel if model is FACTORS else GibbsKernel
    kernel = kind(method, NumbaBackend(), model, method.plan(model))
    assert not kernel.look_steps(kernel.init(0, np.zeros((len(model.cardinalities), 16), dtype=np.int8)))


def test_states_that_are_kept_leave_log_z_as_it_is() -> None:
    model = grid(4, 4, seed=0)
    results = [spinbench.run(model, "gibbs", "numba", 3000, **options) for options in ({}, {"keep": 7})]
    assert results[0].log_z == results[1].log_z
    assert results[0].log_z_se == results[1].log_z_se


RING = FactorGraph.from_log_tables([3] * 12, [((v, (v + 1) % 12), RNG.normal(size=(3, 3))) for v in range(12)])
RUNS: list[tuple[Any, str]] = [
    (grid(4, 4, seed=0), "numba"),
    (RING, "numba"),
    (sherrington_kirkpatrick(12, seed=1), "numba"),
    (grid(4, 4, seed=0), "numpy"),
    (grid(4, 4, seed=0), "jax"),
]


@pytest.mark.parametrize(("model", "backend"), RUNS, ids=["grid", "factors", "dense", "grid on numpy", "grid on jax"])
def test_the_standard_error_of_log_z_halves_where_a_run_gets_four_times_as_long(model, backend: str) -> None:
    """To 0.4 to 0.6, and it is what log Z is off by."""
    log_z, medians, scores = spinbench.exact(model).log_z, [], []
    for samples in (1000, 4000) if backend == "numpy" else (2000, 8000, 32_000):
        runs = [spinbench.run(model, "gibbs", backend, samples, seed=seed) for seed in range(6)]
        results = [result for result in runs if result.evidence["log_z"].level == "converged"]
        assert len(results) >= 5  # one in 200 is beyond its error bound, which a probe may see
        medians.append(np.median([result.log_z_se for result in results]))
        scores += [(result.log_z - log_z) / result.log_z_se for result in results]
    assert all(0.4 < long / short < 0.6 for short, long in pairwise(medians))
    assert 0.67 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_looks_and_climbs_run_the_sweeps_that_are_compiled_already() -> None:
    model, method = sherrington_kirkpatrick(16, seed=1), Gibbs()
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    state, _ = kernel.advance(kernel.init(0, np.zeros((16, 16), dtype=np.int8)), 1)
    compiled = set(run_lanes.signatures)
    state, _, _ = kernel.advance_and_look(state, 4, 2, 2)
    state, slopes = kernel.temper(state, np.array([0.3, 0.6]), 3)
    assert set(run_lanes.signatures) == compiled
    assert slopes.shape == (3, 2, 16)


@pytest.mark.parametrize("many", [2**18, 1])
def test_a_climb_does_not_depend_on_how_many_states_are_copied(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """The slope after a sweep is of the states that the next one begins with."""
    monkeypatch.setattr("spinbench.backends.numba.gibbs.looks.MAX_STATES", many)
    model, method = sherrington_kirkpatrick(16, seed=1), Gibbs()
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    state = kernel.init(0, np.zeros((16, 16), dtype=np.int8))
    state, slopes = kernel.temper(state, np.array([0.3, 0.6]), 5)
    log_weights = model.log_weight(kernel.states(state).T) - model.log_constant
    np.testing.assert_allclose(slopes[-1, -1], log_weights, rtol=1e-12)
