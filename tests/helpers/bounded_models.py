"""Random models to hold bounds against: weak to strong, pairwise and with factors, K-ary, with soft and hard zeros.

Models of one kind and size have tables of one shape, so that what is compiled for one serves all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.checks import largest_finite_magnitude

# Log weights that stand for zeros and are none; the last is the largest that float32 allows.
SOFT = (-30.0, -1e3, -1e5)
SCALES = (0.1, 0.5, 1.0, 3.0, 20.0)

PAIRS_OF_4 = list(itertools.combinations(range(4), 2))

Scope = tuple[int, ...]
Draw = Callable[[np.random.Generator], Model]


def pairwise(shape: np.random.Generator) -> Draw:
    """Eight binary variables, twelve couplings, soft zeros among both now and then."""
    edges = np.array(list(itertools.combinations(range(8), 2)))
    edges = edges[np.sort(shape.permutation(len(edges))[:12])]

    def draw(rng: np.random.Generator) -> Model:
        biases, weights = rng.choice(SCALES) * rng.normal(size=8), rng.choice(SCALES) * rng.normal(size=12)
        if rng.random() < 0.3:
            biases[rng.integers(8)], weights[rng.integers(12)] = rng.choice(SOFT, size=2)
        return PairwiseModel.from_edges(biases, edges, weights, log_constant=float(rng.normal()))

    return draw


def frustrated(shape: np.random.Generator) -> Draw:
    """The complete graph of four: neighbours must (almost) not be alike, and not all of them can differ."""

    def draw(rng: np.random.Generator) -> Model:
        alike = float(rng.choice(SOFT)) * rng.uniform(0.5, 1.0)
        pairs = [
            (pair, np.array([[alike, a], [a, alike]])) for pair, a in zip(PAIRS_OF_4, rng.normal(size=6), strict=True)
        ]
        return FactorGraph.from_log_tables([2] * 4, [*pairs, *(((v,), rng.normal(size=2)) for v in range(4))])

    return draw


def factors(states: int, order: int, zeros: float) -> Callable[[np.random.Generator], Draw]:
    """Six variables with fields; six factors of an order, a share of whose entries are hard zeros, of others soft."""

    def shaped(shape: np.random.Generator) -> Draw:
        alive = shape.integers(states, size=6)
        scopes: list[Scope] = [tuple(shape.permutation(6)[:order].tolist()) for _ in range(6)]
        hard = [shape.random((states,) * order) < zeros for _ in scopes]
        for scope, there in zip(scopes, hard, strict=True):
            there[tuple(alive[list(scope)])] = False

        def draw(rng: np.random.Generator) -> Model:
            scale = rng.choice(SCALES)
            tables: list[tuple[Scope, np.ndarray]] = [((v,), scale * rng.normal(size=states)) for v in range(6)]
            for scope, there in zip(scopes, hard, strict=True):
                table = scale * rng.normal(size=there.shape)
                soft = rng.random(table.shape) < 0.1
                table[soft] = rng.choice(SOFT, size=int(soft.sum()))
                tables.append((scope, np.where(there, -np.inf, table)))
            return FactorGraph.from_log_tables([states] * 6, tables, log_constant=float(rng.normal()))

        return draw

    return shaped


# From a graph's random numbers to models of that graph: scopes and hard zeros stay, all else is drawn again.
KINDS: Mapping[str, Callable[[np.random.Generator], Draw]] = {
    "pairwise": pairwise,
    "frustrated": frustrated,
    "pairs": factors(2, 2, 0.0),
    "pairs with zeros": factors(2, 2, 0.15),
    "triples": factors(2, 3, 0.0),
    "triples with zeros": factors(2, 3, 0.15),
    "K-ary": factors(3, 2, 0.0),
    "K-ary with zeros": factors(3, 2, 0.1),
}


def log_z(model: Model) -> tuple[float, float]:
    """log Z of all states, one by one in extended precision, and nats by which it may be off."""
    states = np.array(list(itertools.product(*(range(k) for k in model.cardinalities))))
    total = np.full(len(states), model.log_constant, dtype=np.longdouble)
    parts = _parts(model)
    for scope, table in parts:
        total += table[tuple(states[:, scope].T)].astype(np.longdouble)
    peak = total.max()
    found = peak + np.log(np.exp(total - peak).sum())
    size = abs(model.log_constant) + sum(largest_finite_magnitude(table) for _, table in parts) + math.log(len(states))
    return float(found), 4.0 * float(np.finfo(np.longdouble).eps) * len(states) * size + 1e-15 * abs(float(found))


def _parts(model: Model) -> list[tuple[Sequence[int], np.ndarray]]:
    if isinstance(model, FactorGraph):
        return [(list(factor.scope), factor.log_table) for factor in model.factors]
    fields = [([v], np.array([0.0, bias])) for v, bias in enumerate(model.biases)]
    pairs = zip(model.edges.tolist(), model.couplings.tolist(), strict=True)
    return [*fields, *((edge, np.array([[0.0, 0.0], [0.0, weight]])) for edge, weight in pairs)]
