"""Parallel tempering: the law of each rung, where rungs lie, and what ladders may be believed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import graph, random_pairs

from spinbench.api import Trace
from spinbench.api.estimate import verdict
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference import binding
from spinbench.mathematics.claims import t_factor
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import replace_zeros
from spinbench.methods.tempering.estimates import Travel, common_drift, estimate_log_z_ratio
from spinbench.methods.tempering.ladders import Ladders, Rungs
from spinbench.methods.tempering.pilot import place_rungs
from spinbench.methods.tempering.pt import ParallelTempering
from spinbench.models import PairwiseModel

GRAPH = graph(
    [2, 3, 2, 3, 2, 2, 3], [[0, 1, 2], [4, 6, 3], [5, 1], [2, 6], [5, 3], [0], [2, 1, 0], [1, 5]], 4, 0.1, 1.5
)


@pytest.mark.parametrize("model", [GRAPH, random_pairs(6, 1.0, 1.5, 5)], ids=["tables", "pairs"])
def test_every_rung_keeps_its_law(model: Any) -> None:
    """Replicas drawn from p*^β at each rung stay so: the mean of log p* there is as it was."""
    method, ladders = ParallelTempering(rungs=4), 4096
    tables = method.plan(model)
    engine = binding.bind(method, "numpy", model, tables, precision="float64").engine
    states, weights = _states(model)
    rng = np.random.default_rng(1)
    key, index, state = engine.init(3, states[rng.integers(len(states), size=ladders)].T)
    laws = [np.exp(b * w - np.logaddexp.reduce(b * w)) for b, w in zip(tables.betas, weights, strict=True)]
    draws_by_rung = [states[rng.choice(len(states), size=ladders, p=law / law.sum())] for law in laws]
    initial = [engine.init(3, part.T)[2].x[:, -1] for part in draws_by_rung]
    state = state._replace(x=np.stack(initial, axis=1))
    chains = (key, index, state)
    for _ in range(6):
        chains, _ = engine.advance(chains, 1)
        log_weights = chains[2].last_swaps.at
        for r, law in enumerate(laws):
            values = weights[0]
            spread = np.sqrt(law @ values**2 - (law @ values) ** 2) / np.sqrt(ladders)
            assert abs(log_weights[r].mean() - law @ values) < 5 * spread


def _states(model: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """All states, and their log weights at each rung; hard zeros as the tables have them below β = 1."""
    grids = np.meshgrid(*(np.arange(k) for k in model.cardinalities), indexing="ij")
    states = np.stack([part.ravel() for part in grids], axis=1)
    exact = model.log_weight(states) - model.log_constant
    if isinstance(model, PairwiseModel):
        return states, [exact] * 4
    tables = factor_tables(model)
    lasting = replace_zeros(tables)[tables.positions(states.T)].sum(axis=0)
    return states, [lasting, lasting, lasting, np.where(np.isfinite(exact), lasting, -np.inf)]


def test_equal_temperatures_always_swap() -> None:
    backend = NumpyBackend()
    ladders, rng = Ladders(backend), np.random.default_rng(0)
    places = ladders.initial_places(3, np.zeros(5))
    rungs = Rungs(np.array([0.5, 0.5, 0.5]), np.zeros(2))
    _, statistics = ladders.swap_neighbours(rng.random((2, 5)), 0, rungs, places, rng.normal(size=(3, 5)), None)
    assert (statistics.rejected == 0).all()


def test_rungs_lie_at_equal_parts_of_the_barrier() -> None:
    betas = place_rungs(np.array([0.0, 0.5, 1.0]), np.array([0.0, 3.0, 4.0]), 0)
    assert len(betas) == 9
    assert betas[[0, 3, 6, -1]] == pytest.approx([0.0, 0.25, 0.5, 1.0], abs=1e-6)


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_ladders_on_their_way_do_not_know_log_z(drift: float) -> None:
    """All ladders move alike, so that they agree with each other; their halves do not."""
    rng, method = np.random.default_rng(0), ParallelTempering(rungs=2)
    model = GRAPH
    tables, trace = method.plan(model), Trace(method.reductions)
    for step in range(64):
        zeros = {name: np.zeros((1, 16)) for name in ("rejected", "levels")}
        bridges = {"up": 0.3 + drift * step / 640 + 0.02 * rng.normal(size=(1, 16)), "down": np.full((1, 16), 0.3)}
        p = np.clip(0.5 + 0.02 * rng.normal(size=(18, 16)), 0, 1)
        trace.add({"p": p, "trips": np.full(16, 5.0), "lost": np.zeros(16), **zeros, **bridges}, 1)
    assert ("log Z unresolved" in method.estimate(model, tables, trace).doubts) == (drift > 0)


def test_errors_of_log_z_are_those_of_batches_unless_ladders_are_apart() -> None:
    """64 independent batches of 16 ladders each: Student's t of so many stretches widens what they vary by, and few
    ladders' spread does not."""
    rng, reductions = np.random.default_rng(6), dict.fromkeys(("up", "down", "levels"), "sum")
    travel = Travel(0.4, 1000, 32, 1000, 0.9, 0.0)
    errors = []
    for _ in range(100):
        trace = Trace(reductions)
        for up in 0.5 + 0.04 * rng.normal(size=(64, 1, 16)):
            trace.add({"up": up, "down": np.full((1, 16), 0.5), "levels": np.zeros((1, 16))}, 1)
        errors.append(estimate_log_z_ratio(trace, travel).se)
    assert np.quantile(errors, [0.2, 0.8]) == pytest.approx(0.08 / 32 * t_factor(6.4 * 16 - 1), rel=0.1)


def test_claims_grow_by_what_ladders_have_in_common() -> None:
    """A move that all make together counts, one that some make and others make up for, nearly or all, does not."""
    late = np.repeat([0.0, 1.0], 8)[:, None, None]
    together, apart, nearly = 0.3 + 0.01 * np.arange(8), np.array([0.3, -0.3] * 4), np.array([0.5, -0.1] * 4)
    assert common_drift(late * together) == pytest.approx(together.mean(), rel=0.01)
    assert common_drift(late * apart) == common_drift(late * nearly) == 0.0


@pytest.mark.parametrize(("trips", "efficiency", "sufficient"), [(200, 0.3, False), (200, 0.8, True), (19, 1.0, False)])
def test_replicas_that_remember_have_to_come_round(trips: int, efficiency: float, sufficient: bool) -> None:
    """8 ladders of 25 rungs: 280 trips where sweeps mix slowly, 80 where they nearly draw states anew, 20 anyhow."""
    travel = Travel(12.0, trips, 200, trips / efficiency, 0.5, 0.0)
    assert travel.is_sufficient == sufficient
    assert travel.visits == trips
    assert travel._replace(barrier=0.4).is_sufficient


def test_estimates_see_what_was_lost() -> None:
    """A state of no weight at β = 1 in any kept step is a doubt."""
    model, method = GRAPH, ParallelTempering(rungs=2)
    tables, trace = method.plan(model), Trace(method.reductions)
    for _ in range(8):
        shapes = {"p": (18, 16), "up": (1, 16), "down": (1, 16), "rejected": (1, 16), "trips": (16,), "lost": (16,)}
        batch = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
        trace.add(batch | {"levels": np.zeros((1, 16))}, 1)
    assert "not mixed" in verdict(method.estimate(model, tables, trace))
