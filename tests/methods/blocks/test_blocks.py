"""Blocks: which they are, the law at higher temperatures, and log Z where the mode cannot be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import bound, graph

import spinbench
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.blocks.blocks import Blocks
from spinbench.methods.blocks.planning import plan_covering_blocks, plan_disjoint_blocks
from spinbench.models import FactorGraph
from spinbench.reference.orders.order import pairs_of
from spinbench.testing.laws.cases import enumerate_law

SEVEN = [3, 2, 2, 3, 2, 3, 2]
SCOPES = [[0, 1], [2, 3, 4], [5], [6, 0, 2], [1, 5], [4, 0, 2], [2, 4, 0], [3, 6], [5, 6, 1]]
CHAINS = 4096


@pytest.mark.parametrize("backend", ["numpy", "jax", "numba"])
def test_zeros_have_a_floor_at_higher_temperatures(backend: str) -> None:
    """The law at β = .1, where a zero is the lowest finite entry less 25: p(feasible), and E[log p*] there."""
    model, beta = graph(SEVEN, SCOPES, 2, 0.25, 1.3), 0.1
    tables = factor_tables(model)
    entries = tables.values[tables.positions(np.indices(SEVEN).reshape(7, -1))]
    ends = zip(tables.offsets[:-1], tables.offsets[1:], strict=True)
    parts = [tables.values[a:b] for a, b in ends]
    floors = np.array([part[part > -np.inf].min() for part in parts]) - 25
    weights = beta * np.maximum(entries, floors[:, None]).sum(axis=0)
    p = np.exp(weights - np.logaddexp.reduce(weights))
    slopes = entries.sum(axis=0)
    feasible = np.isfinite(slopes)
    assert 0.02 < p[feasible].sum() < 0.98
    engine = bound(model, backend, Blocks(size=12))[1]
    _, slopes_by_rung = engine.temper(engine.init(0, np.zeros((7, CHAINS), dtype=np.int8)), np.array([0.0, beta]), 10)
    is_feasible = np.isfinite(slopes_by_rung[-1, 1])
    for values, exact in (
        (is_feasible, p[feasible].sum()),
        (np.where(is_feasible, slopes_by_rung[-1, 1], 0.0), p[feasible] @ slopes[feasible]),
    ):
        assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(CHAINS)


def test_states_from_which_the_mode_cannot_be_reached() -> None:
    """x0 = x1 with a third variable that is 0 in both or free: T(s* <- s) is 0 from some states; log Z holds."""
    equal = np.where(np.eye(2), 0.0, -np.inf)
    tables = [((v, v + 1), equal) for v in range(3)] + [((0, 4), np.array([[0.3, -np.inf], [0.2, 1.0]]))]
    tables += [((v, 4), np.array([[0.0, 0.4], [-0.2, 0.1]])) for v in (1, 2, 3)]
    model = FactorGraph.from_log_tables([2] * 5, tables)
    result = spinbench.run(model, Blocks(size=4), "numpy", budget=200, chains=16)
    resolved = "log Z unresolved" not in result.status
    assert not resolved or abs(result.log_z - enumerate_law(model).log_z) < 5 * result.log_z_se


@pytest.mark.parametrize("size", [4, 9, 30])
def test_plans_cover_all_with_bounded_buckets(size: int) -> None:
    model = graph(SEVEN, SCOPES, 5, 0.0)
    tables: Any = Blocks(size=size).plan(model)
    assert tables.cards.prod(axis=1).max() <= size
    cards, pairs = np.array(SEVEN), pairs_of(factor.scope for factor in model.factors)
    blocks = plan_covering_blocks(cards, pairs, size, 2)
    assert set().union(*blocks) == set(range(7))
    assert sorted(v for block in plan_disjoint_blocks(cards, pairs, size, blocks[0]) for v in block) == list(range(7))
    assert tables.share[: tables.starts[len(blocks)]].sum() == pytest.approx(7)
