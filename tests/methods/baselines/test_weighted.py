"""Importance and rejection sampling: densities and bounds of proposals by enumeration, and exact draws."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from small_graphs import bound, keeps_law

import spinbench
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.baselines.proposals import Kind, build_proposal
from spinbench.methods.baselines.weight_moments import ORDERS, bound_missed_share, bound_moments
from spinbench.methods.baselines.weighted import Rejection
from spinbench.models import FactorGraph, generators

CARDS = (2, 3, 2, 3, 2)
SCOPES = {
    "tree": [(1, 0), (1, 2), (3, 1), (3, 4), (3,)],
    "loop": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 0), (1,)],
    "order three": [(2, 0, 1), (1, 3), (4, 2, 3), (0,), ()],
    "zeros": [(2, 0, 1), (1, 3), (4, 2, 3), (3, 1)],
    "apart": [(0, 1), (3,)],
}


def graph(kind: str) -> FactorGraph:
    rng = np.random.default_rng(7)
    factors = []
    for scope in SCOPES[kind]:
        table = rng.normal(size=[CARDS[v] for v in scope])
        if kind == "zeros":
            table.ravel()[rng.integers(0, table.size, 1 + table.size // 5)] = -np.inf
        factors.append((scope, table))
    return FactorGraph.from_log_tables(CARDS, factors, log_constant=2.0, name=kind)


STATES = np.stack(np.meshgrid(*map(np.arange, CARDS), indexing="ij"), axis=-1).reshape(-1, len(CARDS))


@pytest.mark.parametrize("kind", SCOPES)
@pytest.mark.parametrize("proposal", get_args(Kind))
def test_the_density_sums_to_one_and_weights_keep_their_bounds(kind: str, proposal: Any) -> None:
    model = graph(kind)
    tables = factor_tables(model)
    law = build_proposal(tables, proposal)
    above = [STATES[:, p] if p >= 0 else np.zeros(len(STATES), dtype=int) for p in law.parents]
    log_q = np.sum([law.logs[v][above[v], STATES[:, v]] for v in range(len(CARDS))], axis=0)
    assert np.exp(log_q).sum() == pytest.approx(1.0)
    weights = model.log_weight(STATES) - tables.log_constant - log_q
    assert weights.max() <= law.bounds[1] + 1e-9
    assert weights.min() >= law.bounds[0] - 1e-9
    if proposal == "bp_tree" and kind in ("tree", "apart"):
        assert law.bounds[1] - law.bounds[0] < 1e-9
        assert law.bounds[1] + tables.log_constant == pytest.approx(spinbench.exact(model).log_z)
    moments = [np.logaddexp.reduce(log_q + order * weights) for order in ORDERS]
    assert bound_moments(tables, law) == pytest.approx(np.array(moments))
    log_z = np.logaddexp.reduce(log_q + weights)
    heaviest = np.argsort(-weights)[:3]
    share = bound_missed_share(np.array(moments) - np.array(ORDERS) * log_z, float(np.exp(log_q[heaviest]).sum()))
    assert share >= np.exp(log_q + weights - log_z)[heaviest].sum() - 1e-9


def test_unlikely_states_of_large_weight_are_no_doubt_and_a_heavy_state_is() -> None:
    """Of the grid the largest weight is e^28 times the mean, and no draw meets it; the state has a third of Z."""
    table = np.zeros((2,) * 16)
    table[(1,) * 16] = 15 * np.log(2)
    levels = [
        spinbench.run(model, "importance", "numpy", 1000, proposal=proposal).evidence["log_z"].level
        for model, proposal in (
            (generators.grid(6, 6, 1.0, 1.5, seed=0), "bp_tree"),
            (FactorGraph.from_log_tables([2] * 16, [(range(16), table)]), "uniform"),
        )
    ]
    assert levels == ["converged", "doubtful"]


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_accepted_draws_have_the_exact_law(backend: str) -> None:
    model = graph("zeros")
    engine = bound(model, backend, Rejection())[1]
    state, accepted = engine.init(1, np.zeros((len(CARDS), 2000), dtype=np.int8)), []
    for _ in range(4):
        state, statistics = engine.advance(state, 1)
        x = np.array([part.argmax(axis=0) for part in np.split(statistics["s"], np.cumsum(CARDS)[:-1])])
        accepted.append(x[:, statistics["kept"] > 0])
    assert keeps_law(model, np.hstack(accepted))
