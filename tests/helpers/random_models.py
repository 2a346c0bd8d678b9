"""Random models of many kinds for the variational methods, all small enough to enumerate."""

from __future__ import annotations

import itertools

import numpy as np

from spinbench.models import FactorGraph, Model, PairwiseModel


def pairwise(rng: np.random.Generator, n: int, density: float, scale: float) -> PairwiseModel:
    """Gaussian biases and couplings on a random graph."""
    edges = np.argwhere(np.triu(rng.random((n, n)) < density, 1))
    a, w = scale * rng.normal(size=n), scale * rng.normal(size=len(edges))
    return PairwiseModel.from_edges(a, edges, w, log_constant=float(rng.normal()))


def grouped(rng: np.random.Generator) -> PairwiseModel:
    """Nine units with 1-of-K groups of 3, 2 and 1 members."""
    edges = np.argwhere(np.triu(rng.random((9, 9)) < 0.5, 1))
    w = rng.normal(size=len(edges))
    return PairwiseModel.from_edges(rng.normal(size=9), edges, w, groups=((0, 4, 7), (2,), (5, 8)))


def table(rng: np.random.Generator, shape: list[int], alive: list[int], zeros: float, scale: float = 1.0) -> np.ndarray:
    """Gaussian log weights with hard zeros, none at the state `alive`."""
    values = scale * rng.normal(size=shape)
    values = np.where(rng.random(shape) < zeros, -np.inf, values)
    values[tuple(alive)] = scale * rng.normal()
    return values


def graph(
    rng: np.random.Generator, n: int, factors: int, zeros: float, order: int = 3, scale: float = 1.0
) -> FactorGraph:
    """Cardinalities 1 to 4, orders 0 to `order`, repeated scopes, hard zeros; one state always has weight."""
    cards = rng.integers(1, 5, size=n).tolist()
    alive = [int(rng.integers(k)) for k in cards]
    tables = []
    for _ in range(factors):
        scope = rng.permutation(n)[: rng.integers(0, order + 1)].tolist()
        tables.append((scope, table(rng, [cards[v] for v in scope], [alive[v] for v in scope], zeros, scale)))
    return FactorGraph.from_log_tables(cards, tables, log_constant=float(rng.normal()))


def tree(rng: np.random.Generator, factors: int, zeros: float, order: int = 4) -> FactorGraph:
    """A factor graph without loops: every factor joins one variable of what is there with new ones."""
    cards = [int(rng.integers(1, 5))]
    alive = [0]
    tables = []
    for _ in range(factors):
        scope = [int(rng.integers(len(cards)))]
        for _ in range(int(rng.integers(0, order))):
            scope.append(len(cards))
            cards.append(int(rng.integers(1, 4)))
            alive.append(int(rng.integers(cards[-1])))
        scope = rng.permutation(scope).tolist()
        tables.append((scope, table(rng, [cards[v] for v in scope], [alive[v] for v in scope], zeros)))
    return FactorGraph.from_log_tables(cards, tables)


def many(count: int, seed: int, order: int = 3) -> list[Model]:
    """A mixture of all kinds with loops, from weak to strong."""
    rng = np.random.default_rng(seed)
    makers = itertools.cycle(
        [
            lambda: pairwise(rng, int(rng.integers(2, 10)), rng.uniform(0.2, 1.0), rng.uniform(0.1, 3.0)),
            lambda: graph(rng, int(rng.integers(2, 6)), int(rng.integers(1, 9)), 0.0, order, rng.uniform(0.1, 2.0)),
            lambda: graph(rng, int(rng.integers(2, 6)), int(rng.integers(1, 9)), 0.3, order),
            lambda: pairwise(rng, 8, 0.4, 20.0),
            lambda: grouped(rng),
        ]
    )
    return [next(makers)() for _ in range(count)]


def enumerate_all(model: Model) -> tuple[float, list[np.ndarray]]:
    """log Z and the marginals of all states of all variables, straight from `log_weight`."""
    states = np.array(list(itertools.product(*(range(k) for k in model.cardinalities))))
    weights = model.log_weight(states)
    log_z = float(np.logaddexp.reduce(weights))
    p = np.exp(weights - log_z)
    return log_z, [np.bincount(states[:, v], weights=p, minlength=k) for v, k in enumerate(model.cardinalities)]


def error(found: object, exact: list[np.ndarray]) -> float:
    """Largest total variation distance of single-variable marginals."""
    vectors = [np.array([1 - p, p]) for p in found] if isinstance(found, np.ndarray) else found
    return max(0.5 * float(np.abs(a - b).sum()) for a, b in zip(vectors, exact, strict=True))
