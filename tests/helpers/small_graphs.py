"""Small factor graphs for samplers, with their laws: K 1-3, orders 0-3, zeros, scopes unsorted and there twice."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import spinbench
from spinbench.inference import binding
from spinbench.models import FactorGraph

SCOPES = [[], [4], [1, 0], [0, 1], [3, 2], [5, 0, 3], [3, 5, 1], [4, 5], [4, 1]]


def graph(sizes: list[int], scopes: list[list[int]], seed: int, zeros: float) -> FactorGraph:
    """Random factors, of which so many entries are zero, though not those of the states 0 and 1."""
    rng = np.random.default_rng(seed)
    tables = []
    for scope in scopes:
        table = 0.8 * rng.normal(size=[sizes[v] for v in scope])
        lost = np.array(rng.random(table.shape) < zeros * (len(scope) > 1))
        lost[(slice(0, 2),) * len(scope)] = False
        tables.append((scope, np.where(lost, -np.inf, table)))
    return FactorGraph.from_log_tables(sizes, tables, log_constant=0.4)


MODELS = {
    "zeros": graph([3, 2, 1, 3, 2, 3], SCOPES, 1, 0.5),
    "bits": graph([2] * 6, [[2, 0, 1], [1, 3], [3, 5, 4], [4], [5, 0]], 3, 0.0),
}


def parted() -> FactorGraph:
    """x_0 = x_1 = x_2, which single variables do not change, and x_3 beside x_2."""
    equal = np.full((2, 2, 2), -np.inf)
    equal[0, 0, 0], equal[1, 1, 1] = 0.0, 1.0
    return FactorGraph.from_log_tables([2, 2, 2, 2], [([0, 1, 2], equal), ([2, 3], np.eye(2))])


@cache
def law(name: str) -> tuple[np.ndarray, np.ndarray, float]:
    """States (N, S), in C order, their probabilities, and log Z."""
    cards = MODELS[name].cardinalities
    states = np.indices(cards).reshape(len(cards), -1)
    weights = MODELS[name].log_weight(states.T)
    log_z = float(np.logaddexp.reduce(weights))
    return states, np.exp(weights - log_z), log_z


def marginals(name: str) -> np.ndarray:
    """Of all states of all variables."""
    states, p, _ = law(name)
    return np.concatenate([np.bincount(own, p, k) for own, k in zip(states, MODELS[name].cardinalities, strict=True)])


def flat(values: Any) -> np.ndarray:
    """Values in the layout of `Estimate`, of all states; those of both states of a binary model are alike."""
    return np.concatenate(values) if isinstance(values, list) else np.stack([values, values], axis=1).ravel()


@cache
def bound(name: str, backend: str, method: Any) -> tuple[Any, Any]:
    """(tables, engine)."""
    tables = method.plan(MODELS[name])
    return tables, binding.bind(method, backend, MODELS[name], tables, precision="float64").engine


def exact_start(name: str, chains: int) -> np.ndarray:
    """(N, C) int8 exact draws."""
    states, p, _ = law(name)
    return states[:, np.random.default_rng(6).choice(len(p), size=chains, p=p)].astype(np.int8)


def check_run(name: str, method: str, backend: str, samples: int, **settings: Any) -> Any:
    """A run that is believed, and right within what it claims. The result."""
    found = spinbench.run(MODELS[name], method, backend, samples, chains=32, seed=3, **settings)
    assert found.status == "ok"
    p, claimed = flat(found.marginals), flat(found.marginals_se)
    if not isinstance(found.marginals, list):
        p[::2] = 1 - p[::2]
    assert claimed.max() < 0.05
    np.testing.assert_array_less(np.abs(p - marginals(name)), 3 * claimed + 1e-9)
    return found
