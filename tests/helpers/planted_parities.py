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
