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


def parity(n: int, odd: tuple[int, ...]) -> FactorGraph:
    """Parities of three successive variables around a ring."""
    entries = np.indices((2, 2, 2)).sum(axis=0) % 2
    factors = [([i, (i + 1) % n, (i + 2) % n], np.where(entries == (i in odd), 0.0, -np.inf)) for i in range(n)]
    return FactorGraph.from_log_tables([2] * n, factors, name="parities")


def test_searches_that_fail_go_back_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of parities nothing is seen before the last but one variable is chosen: most first choices are wrong."""
    monkeypatch.setattr(module, "FIRST_RESTART", 2)
    model = parity(9, (0, 1, 2))
    starts = feasible_starts(model, 16, 0)
    assert np.isfinite(model.log_weight(starts.T)).all()
    assert len(np.unique(starts, axis=1).T) == 4
    with pytest.raises(ModelError, match="Z = 0"):
        feasible_starts(parity(9, (0,)), 1, 0)


def test_a_search_gives_up_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    with pytest.raises(UnsupportedError, match=r"parities: no state .* in 3 tries"):
        feasible_starts(parity(9, (0,)), 1, 0)
