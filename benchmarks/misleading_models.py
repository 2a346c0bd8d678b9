"""Models that are made to mislead samplers: states that no local move finds, islands, wells and symmetries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import spinbench
from spinbench.models import FactorGraph, Model, generators

# By transfer matrices in the basis of connectivities of a row (Fortuin and Kasteleyn, Physica 1972).
POTTS_LOG_Z = 343.35103903297


class Truth(NamedTuple):
    """Of a model. Attributes: marginals, of all states, or None; log_z: its value, or a lower bound of it."""

    marginals: np.ndarray | None
    log_z: float
    is_bound: bool = False


def planted_parities(rng: np.random.Generator, states: int, odd: int) -> tuple[Model, Truth]:
    """Linear forms of three variables modulo `states` that one state fulfils, of log weight 0, which no local move
    finds; and an odd variable of `odd` states, or none."""
    number, factors = 120, []
    planted = rng.integers(0, states, number)
    for _ in range(3 * number // 2):
        scope, weights = rng.choice(number, 3, replace=False), rng.integers(1, states, 3)
        value = np.tensordot(weights, np.indices((states,) * 3), 1) % states
        factors.append((scope.tolist(), np.where(value == weights @ planted[scope] % states, 0.0, -2.0)))
    if odd:
        factors.append(([0, number], rng.normal(0.0, 0.3, (states, odd))))
    model = FactorGraph.from_log_tables([*[states] * number, *filter(None, [odd])], factors)
    heaviest = np.array([[*planted, *end] for end in ([[k] for k in range(odd)] or [[]])])
    return model, Truth(None, float(np.logaddexp.reduce(model.log_weight(heaviest))), is_bound=True)


def planted_state(rng: np.random.Generator, weight: float) -> tuple[Model, Truth]:
    """24 variables in blocks of 8, each with one state of log weight `weight` among equal ones."""
    factors = []
    for first in range(0, 24, 8):
        table = np.zeros((2,) * 8)
        table[tuple(rng.integers(0, 2, 8))] = weight
        factors.append((range(first, first + 8), table))
    return solve(FactorGraph.from_log_tables([2] * 24, factors))


def island(rng: np.random.Generator, bonus: float) -> tuple[Model, Truth]:
    """Six binary variables, all states allowed but the neighbours of one, whose log weight is `bonus`."""
    center, table = rng.integers(0, 2, 6), np.zeros((2,) * 6)
    for v in range(6):
        table[tuple(np.where(np.arange(6) == v, 1 - center, center))] = -np.inf
    table[tuple(center)] = bonus
    return solve(FactorGraph.from_log_tables([2] * 6, [(range(6), table)]))


def symmetric_glass(rng: np.random.Generator) -> tuple[Model, Truth]:
    """A glass of 64 × 64 without fields: all marginals are 0.5, whatever a method has seen."""
    return solve(generators.planar_glass(64, 64, 1.0, seed=int(rng.integers(2**31))))


def potts(rng: np.random.Generator) -> tuple[Model, Truth]:
    """Ten states on a grid of 11 × 11, at the transition of first order of the infinite one."""
    edges, coupling = generators.grid(11, 11).edges.tolist(), np.log(1 + np.sqrt(10))
    model = FactorGraph.from_log_tables([10] * 121, [(edge, coupling * np.eye(10)) for edge in edges])
    return model, Truth(np.full(1210, 0.1), POTTS_LOG_Z)


def solve(model: Model) -> tuple[Model, Truth]:
    """The model and its exact answer."""
    exact = spinbench.exact(model)
    assert exact.log_z is not None
    return model, Truth(np.hstack(exact.marginals), exact.log_z)


MISLEADING: dict[str, Callable[[np.random.Generator], tuple[Model, Truth]]] = {
    **{f"parities mod {states}": partial(planted_parities, states=states, odd=0) for states in (2, 3, 5)},
    **{f"parities mod {states}, odd": partial(planted_parities, states=states, odd=5 - states) for states in (2, 3)},
    **{f"planted state {weight:g}": partial(planted_state, weight=weight) for weight in (5.0, 9.0)},
    **{f"island {bonus:g}": partial(island, bonus=bonus) for bonus in (-1.0, 0.0, 3.0)},
    **{"symmetric glass": symmetric_glass, "Potts": potts},
}
