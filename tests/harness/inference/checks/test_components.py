"""Parts of a support that no change of a single variable joins are found, and runs that miss them are not believed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.inference.budget import Budget
from spinbench.inference.checks import disconnected_support
from spinbench.inference.checks.disconnected_support import separate_components
from spinbench.inference.checks.missed_modes import is_long
from spinbench.inference.checks.probes import Content
from spinbench.models import FactorGraph


def island(bonus: float, variables: int = 6) -> FactorGraph:
    """All states are allowed but the neighbours of (1, …, 1), which weighs e^bonus."""
    table = np.zeros((2,) * variables)
    for v in range(variables):
        table[tuple(0 if u == v else 1 for u in range(variables))] = -np.inf
    table[(1,) * variables] = bonus
    return FactorGraph.from_log_tables((2,) * variables, [(tuple(range(variables)), table)])


def two_codes(q: int, pairs: int) -> FactorGraph:
    """All variables have the same state, of q: as many components of one state."""
    same = np.where(np.eye(q), 0.0, -np.inf)
    return FactorGraph.from_log_tables((q,) * (pairs + 1), [((v, v + 1), same) for v in range(pairs)])


@pytest.mark.parametrize("variables", [6, 15])
def test_all_components_of_few_states_are_known(variables: int) -> None:
    (found,) = separate_components(Content(island(2.0, variables)), 0)
    assert found.log_weight == pytest.approx(2.0)
    np.testing.assert_allclose(found.law, np.tile([0.0, 1.0], variables))


def test_states_that_agree_are_components() -> None:
    assert len(separate_components(Content(two_codes(3, 2)), 0)) == 2
    assert separate_components(Content(FactorGraph.from_log_tables((2, 3), [((0, 1), np.zeros((2, 3)))])), 0) == ()


def test_components_of_many_states_are_followed_to_their_ends() -> None:
    found = disconnected_support._search_components(two_codes(3, 30), 0)
    assert sorted(tuple(each.law[:3].tolist()) for each in found) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    connected = FactorGraph.from_log_tables((2,) * 12, [((v, v + 1), [[0.0, 0.0], [0.0, -np.inf]]) for v in range(11)])
    assert disconnected_support._search_components(connected, 0) == ()


@pytest.mark.parametrize("method", ["gibbs", "metropolis", "zanella"])
@pytest.mark.parametrize("bonus", [0.0, 3.0])
def test_no_run_is_believed_that_leaves_an_island_out(method: str, bonus: float) -> None:
    model, seeds = island(bonus), 4
    exact: Any = spinbench.exact(model).marginals
    for seed in range(seeds):
        found: Any = spinbench.run(model, method, "numpy", 300, chains=16, seed=seed)
        off = np.abs(found.marginals - exact) / found.marginals_se
        assert found.status != "ok" or off.max() < 4


def test_short_runs_are_probed_where_variables_are_few() -> None:
    assert is_long(Budget(samples=100), 8, 16)
    assert not is_long(Budget(samples=100), 8, 17)


def test_pooled_wells_of_a_short_run_are_found() -> None:
    entries = [
        ((0, 1), {(1, 0): -8.9, (1, 1): -2.9}),
        ((1, 2), {(1, 0): -14.2, (1, 1): -14.2}),
        ((0, 3, 4), {(0, 1, 1): 11.5, (1, 0, 0): 15.2}),
        ((0, 1, 4), {(0, 0, 1): 8.0, (1, 1, 0): 7.7}),
    ]
    sizes, tables = (2, 2, 3, 2, 2), []
    for scope, weights in entries:
        states = itertools.product(*(range(sizes[v]) for v in scope))
        tables.append((scope, [weights.get(state, 0.0) for state in states]))
    model = FactorGraph.from_log_tables(sizes, tables)
    for seed in range(3):
        found = spinbench.run(model, "zanella", "numpy", 500, chains=16, seed=seed, simplify=False)
        assert found.status != "ok"
