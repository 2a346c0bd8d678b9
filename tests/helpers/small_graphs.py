"""Small models for samplers, with their laws: K 1-3, orders 0-3, zeros, scopes unsorted and there twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from spinbench.inference import binding
from spinbench.models import FactorGraph, Model, PairwiseModel

SCOPES = [[], [4], [1, 0], [0, 1], [3, 2], [5, 0, 3], [3, 5, 1], [4, 5], [4, 1]]


def graph(sizes: list[int], scopes: list[list[int]], seed: int, zeros: float, scale: float = 0.8) -> FactorGraph:
    """Random factors, of which so many entries are zero, though not those of the states 0 and 1."""
    rng = np.random.default_rng(seed)
    tables = []
    for scope in scopes:
        table = scale * rng.normal(size=[sizes[v] for v in scope])
        lost = np.array(rng.random(table.shape) < zeros * (len(scope) > 1))
        lost[(slice(0, 2),) * len(scope)] = False
        tables.append((scope, np.where(lost, -np.inf, table)))
    return FactorGraph.from_log_tables(sizes, tables, log_constant=0.4)


def random_pairs(n: int, density: float, scale: float, seed: int, **more: Any) -> PairwiseModel:
    """Gaussian biases, and couplings on a random graph."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)) * scale, 1) * (rng.random((n, n)) < density)
    edges = np.argwhere(W)
    couplings = W[edges[:, 0], edges[:, 1]]
    return PairwiseModel.from_edges(scale * rng.normal(size=n), edges, couplings, log_constant=0.7, **more)


def attractive(edges: Any, couplings: Any, seed: int) -> PairwiseModel:
    """With fields that leave both states of each variable likely."""
    ends = np.asarray(edges)
    n = int(ends.max()) + 1
    biases = 0.5 * np.random.default_rng(seed).normal(size=n)
    biases -= 0.5 * np.bincount(ends.ravel(), np.repeat(couplings, 2), n)
    return PairwiseModel.from_edges(biases, ends, couplings)


MODELS = {
    "zeros": graph([3, 2, 1, 3, 2, 3], SCOPES, 1, 0.5),
    "states": graph([3, 2, 2, 4, 2], [[1, 0], [3], [4, 3], [2, 1, 4], [0, 2]], 2, 0.0),
    "bits": graph([2] * 6, [[2, 0, 1], [1, 3], [3, 5, 4], [4], [5, 0]], 3, 0.0),
}


def parted() -> FactorGraph:
    """x_0 = x_1 = x_2, which single variables do not change, and x_3 beside x_2."""
    equal = np.full((2, 2, 2), -np.inf)
    equal[0, 0, 0], equal[1, 1, 1] = 0.0, 1.0
    return FactorGraph.from_log_tables([2, 2, 2, 2], [([0, 1, 2], equal), ([2, 3], np.eye(2))])


def law(model: Model) -> tuple[np.ndarray, np.ndarray, float]:
    """States (N, S), in C order, their probabilities, and log Z."""
    states = np.indices(model.cardinalities).reshape(len(model.cardinalities), -1)
    weights = model.log_weight(states.T)
    log_z = float(np.logaddexp.reduce(weights))
    p = np.exp(weights - log_z)
    return states, p / p.sum(), log_z


def marginals(model: Model) -> np.ndarray:
    """Of all states of all variables."""
    states, p, _ = law(model)
    return np.concatenate([np.bincount(own, p, k) for own, k in zip(states, model.cardinalities, strict=True)])


def bound(model: Model, backend: str, method: Any, precision: Any = "float64") -> tuple[Any, Any]:
    """(tables, engine)."""
    tables = method.plan(model)
    return tables, binding.bind(method, backend, model, tables, precision=precision).engine


def exact_start(model: Model, chains: int, seed: int = 6) -> np.ndarray:
    """(N, C) int8 exact draws."""
    states, p, _ = law(model)
    return states[:, np.random.default_rng(seed).choice(len(p), size=chains, p=p)].astype(np.int8)


def chi_square(counts: np.ndarray, p: np.ndarray) -> float:
    """p-value of draws whose cells have these probabilities; rare cells are one, and impossible ones stay empty."""
    assert not counts[p == 0].any()
    expected = p * counts.sum()
    common = expected >= 10
    seen, wanted = (np.append(each[common], each[~common].sum()) for each in (counts, expected))
    there = wanted > 0
    if there.sum() < 2:
        return 1.0
    return float(stats.chisquare(seen[there], wanted[there] * seen[there].sum() / wanted.sum()).pvalue)


def keeps_law(model: Model, states: np.ndarray) -> bool:
    """Whether states (N, C) may be draws of a model's law."""
    p = law(model)[1]
    codes = np.ravel_multi_index(tuple(states.astype(np.int64)), tuple(model.cardinalities))
    return chi_square(np.bincount(codes, minlength=len(p)), p) > 1e-4
