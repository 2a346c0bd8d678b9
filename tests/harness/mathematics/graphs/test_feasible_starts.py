"""Starts of positive weight, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.graphs import feasible_starts as module
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.models import FactorGraph


def graph(seed: int, zeros: float) -> FactorGraph:
    """Seven variables of 2 and 3 states in random factors of order 1 to 3, of which so many entries are zero."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=7).tolist()
    factors = []
    for _ in range(9):
        scope = rng.permutation(7)[: rng.integers(1, 4)].tolist()
        table = rng.normal(size=[sizes[v] for v in scope])
        table[rng.random(table.shape) < zeros] = -np.inf
        table.flat[rng.integers(table.size)] = 0.0
        factors.append((scope, table))
    return FactorGraph.from_log_tables(sizes, factors)


def possible(model: FactorGraph) -> set[tuple[int, ...]]:
    states = np.stack(np.meshgrid(*map(np.arange, model.cardinalities), indexing="ij"), axis=-1).reshape(-1, 7)
    return set(map(tuple, states[model.log_weight(states) > -np.inf].tolist()))


@pytest.mark.parametrize("zeros", [0.3, 0.6])
def test_starts_are_possible_and_all_possible_states_occur(zeros: float) -> None:
    for seed in range(12):
        model = graph(seed, zeros)
        allowed = possible(model)
        if not allowed:
            with pytest.raises(ModelError, match="Z = 0"):
                feasible_starts(model, 1, seed)
            continue
        starts = set(map(tuple, feasible_starts(model, 300, seed).T.tolist()))
        assert starts <= allowed
        if len(allowed) < 20:
            assert starts == allowed


def test_a_chain_starts_alike_beside_any_number_of_others() -> None:
    model = graph(1, 0.3)
    assert (feasible_starts(model, 3, 5) == feasible_starts(model, 8, 5)[:, :3]).all()
    assert (feasible_starts(model, 8, 5) != feasible_starts(model, 8, 6)).any()


def queens(size: int) -> FactorGraph:
    """In each row one queen, none of which attacks another."""
    rows, columns = np.triu_indices(size, 1), np.subtract.outer(np.arange(size), np.arange(size))
    tables = [np.where((columns == 0) | (abs(columns) == j - i), -np.inf, 0.0) for i, j in zip(*rows, strict=True)]
    return FactorGraph.from_log_tables([size] * size, zip(zip(*rows, strict=True), tables, strict=True), name="queens")


def holes(count: int) -> FactorGraph:
    """One variable more than there are states, all of them different."""
    table = np.where(np.eye(count) > 0, -np.inf, 0.0)
    pairs = [((i, j), table) for i in range(count + 1) for j in range(i)]
    return FactorGraph.from_log_tables([count] * (count + 1), pairs, name="holes")


def test_searches_that_fail_go_back_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RESTART", 2)
    descents = []
    descend = module._Search._descend
    monkeypatch.setattr(module._Search, "_descend", lambda *given: descents.append(descend(*given)) or descents[-1])
    model = queens(6)
    starts = feasible_starts(model, 16, 0)
    assert np.isfinite(model.log_weight(starts.T)).all()
    assert len(np.unique(starts, axis=1).T) == 4  # all that there are
    assert descents.count(None) > 0
    with pytest.raises(ModelError, match="Z = 0"):
        feasible_starts(holes(3), 1, 0)


def test_a_search_gives_up_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    with pytest.raises(UnsupportedError, match=r"holes: no state .* in 3 tries"):
        feasible_starts(holes(5), 1, 0)
