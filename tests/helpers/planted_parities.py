"""Models with one planted state that no local move leads to."""

from __future__ import annotations

import numpy as np

from spinbench.models import FactorGraph


def planted_parities(variables: int, triples: int, beta: float) -> FactorGraph:
    """Random triples, of which each prefers the parity that it has in a random state, by `beta`."""
    rng = np.random.default_rng(variables + triples)
    planted = rng.choice([-1, 1], size=variables)
    sign = np.array([-1.0, 1.0])
    product = sign[:, None, None] * sign[:, None] * sign
    ends = np.concatenate([rng.permutation(variables) for _ in range(-(-3 * triples // variables) + 1)])
    scopes = [ends[3 * t : 3 * t + 3] for t in range(len(ends) // 3)]
    scopes = [scope for scope in scopes if len(set(scope.tolist())) == 3][:triples]
    factors = [(scope.tolist(), beta * planted[scope].prod() * product) for scope in scopes]
    return FactorGraph.from_log_tables([2] * variables, factors)


def planted_forms(
    states: int, variables: int, triples: int, beta: float, odd: int = 0
) -> tuple[FactorGraph, list[int]]:
    """Random triples, of which each prefers the value of a linear form modulo `states` that it has in one state.

    Args:
        states, variables, triples: how many.
        beta: by which other values weigh less.
        odd: states of one more variable beside two of the others; 0: there is none.

    Returns:
        The model, and the planted state of all but the odd variable; log p* = 0 there without it.
    """
    rng = np.random.default_rng(variables + triples)
    planted, factors = rng.integers(0, states, variables), []
    for _ in range(triples):
        scope, c = rng.choice(variables, 3, replace=False), rng.integers(1, states, 3)
        value = np.einsum("i,iabc->abc", c, np.indices((states,) * 3)) % states
        factors.append((scope.tolist(), np.where(value == c @ planted[scope] % states, 0.0, -beta)))
    if odd:
        factors += [([v, variables], 0.3 * rng.normal(size=(states, odd))) for v in (0, 1)]
    return FactorGraph.from_log_tables([states] * variables + [odd] * bool(odd), factors), planted.tolist()
