"""Starts of positive weight, and linear forms modulo a prime that they satisfy, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.graphs import feasible_starts as module
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.mathematics.graphs.modular_starts import modular_starts
from spinbench.mathematics.graphs.starts import parity_starts
from spinbench.models import FactorGraph
from tests.helpers.planted_parities import planted_forms


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


def holes(count: int) -> FactorGraph:
    """One variable more than there are states, all of them different."""
    table = np.where(np.eye(count) > 0, -np.inf, 0.0)
    pairs = [((i, j), table) for i in range(count + 1) for j in range(i)]
    return FactorGraph.from_log_tables([count] * (count + 1), pairs, name="holes")


def test_a_search_gives_up_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    with pytest.raises(UnsupportedError, match=r"holes: no state .* in 3 tries"):
        feasible_starts(holes(5), 1, 0)


def check(scope: np.ndarray, odd: int) -> tuple[list[int], np.ndarray]:
    """A factor that asks for an odd or even sum."""
    sums = np.indices((2,) * len(scope)).sum(axis=0) % 2
    return scope.tolist(), np.where(sums == odd, 0.0, -np.inf)


def checks(n: int, count: int, order: int, seed: int, planted: bool = True) -> FactorGraph:
    """Random parities, which hold of one state at least if it is planted."""
    rng = np.random.default_rng(seed)
    x = rng.integers(2, size=n)
    factors = []
    for _ in range(count):
        scope = rng.choice(n, order, replace=False)
        factors.append(check(scope, int(x[scope].sum() % 2 if planted else rng.integers(2))))
    return FactorGraph.from_log_tables([2] * n, factors, name="checks")


def mixed(seed: int) -> FactorGraph:
    """Eight variables, two of them of one and three states, in parities and in factors with a zero or two."""
    rng = np.random.default_rng(seed)
    sizes = np.array([2, 2, 2, 2, 2, 2, 1, 3])
    factors = [check(rng.choice(6, rng.integers(2, 5), replace=False), int(rng.integers(2))) for _ in range(3)]
    for _ in range(6):
        scope = rng.choice(8, rng.integers(1, 4), replace=False)
        table = rng.normal(size=sizes[scope])
        table.flat[rng.permutation(table.size)[: rng.integers(1, 3)]] = -np.inf
        table.flat[rng.integers(table.size)] = 0.0
        factors.append((scope.tolist(), table))
    return FactorGraph.from_log_tables(sizes.tolist(), factors)


def states(model: FactorGraph) -> np.ndarray:
    """All of them, (S, N)."""
    every = np.meshgrid(*map(np.arange, model.cardinalities), indexing="ij")
    return np.stack(every, axis=-1).reshape(-1, model.num_variables)


def test_starts_beside_other_zeros_are_those_of_enumeration() -> None:
    possible = 0
    for seed in range(60):
        model = mixed(seed)
        allowed = set(map(tuple, states(model)[model.log_weight(states(model)) > -np.inf].tolist()))
        if not allowed:
            with pytest.raises(ModelError, match="Z = 0"):
                feasible_starts(model, 1, seed)
            continue
        starts = set(map(tuple, feasible_starts(model, 60, seed).T.tolist()))
        assert starts <= allowed
        assert len(allowed) > 6 or starts == allowed
        possible += 1
    assert 20 < possible < 60


def test_parities_are_solved_and_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search alone finds none of these in 100,000 tries."""
    monkeypatch.setattr(module, "MAX_CHOICES", 100)
    model = checks(100, 98, 4, 1)
    starts = feasible_starts(model, 4, 0)
    assert np.isfinite(model.log_weight(starts.T)).all()
    assert len(np.unique(starts, axis=1).T) > 1
    with pytest.raises(ModelError, match="Z = 0"):
        feasible_starts(checks(100, 130, 4, 1, planted=False), 1, 0)


@pytest.mark.parametrize(("q", "odd"), [(3, 0), (3, 2), (5, 0), (5, 3), (7, 4)])
def test_a_planted_state_is_found(q: int, odd: int) -> None:
    model, planted = planted_forms(q, 60, 120, 2.0, odd)
    x = modular_starts(factor_tables(model), q, 4, np.random.default_rng(0))
    assert x.shape == (model.num_variables, 4)
    weights = model.log_weight(x.T)
    assert weights.max() >= model.log_weight(np.array([planted + [0] * bool(odd)])).item() - 1e-9


def test_a_planted_parity_is_found_beside_a_variable_of_three_states() -> None:
    model, planted = planted_forms(2, 60, 120, 2.0, odd=3)
    x = parity_starts(factor_tables(model), 4, np.random.default_rng(0))[:-1]
    whole = np.concatenate([x, np.zeros((1, 4), dtype=x.dtype)])
    assert model.log_weight(whole.T).max() >= model.log_weight(np.array([[*planted, 0]])).item() - 1e-9


def test_forms_that_forbid_states_are_avoided_and_what_nothing_settles_is_random() -> None:
    table = np.where(np.add.outer(np.arange(3), np.arange(3)) % 3 == 1, 0.0, -np.inf)
    model = FactorGraph.from_log_tables([3, 3, 3, 2], [([0, 1], table)])
    x = modular_starts(factor_tables(model), 3, 400, np.random.default_rng(0))
    assert ((x[0] + x[1]) % 3 == 1).all()
    assert (x[3] == 0).all()
    for row in x[:3]:
        assert np.bincount(row, minlength=3).min() > 90
