"""Larger models, models of several states and models with zeros, whose answers are known without the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.testing.cases import enumerate_graph, potts

FloatArray = npt.NDArray[np.float64]
Tables = list[tuple[tuple[int, ...], FloatArray]]
SIDE = ((0, 0), (0, 1), (1, 0), (1, 1))
"""States of a rung."""


@dataclass(frozen=True, eq=False)
class Known:
    """A model with its answers.

    Attributes:
        model: the model.
        log_z: log of the partition function.
        marginals: p(s_i = 1) of binary variables; else the probabilities of all states, variable after variable.
    """

    model: Model
    log_z: float
    marginals: FloatArray


@cache
def known(name: str) -> Known:
    """The model of this name, one of `MODELS`."""
    return MODELS[name]()


def _ladder(rungs: int, name: str) -> Known:
    """Two rails and their rungs, and a variable that is apart, in random order; messages go from rung to rung."""
    rng = np.random.default_rng(17)
    biases, rung = 0.5 * rng.normal(size=(rungs, 2)), 0.7 * rng.normal(size=rungs)
    rails, apart = 0.7 * rng.normal(size=(rungs - 1, 2)), 0.4
    states = np.array(SIDE, dtype=np.float64)
    own = biases @ states.T + rung[:, None] * states.prod(axis=1)
    between = np.einsum("tr,ir,jr->tij", rails, states, states)
    ahead, back = np.zeros((rungs, 4)), np.zeros((rungs, 4))
    for t in range(1, rungs):
        ahead[t] = np.logaddexp.reduce((ahead[t - 1] + own[t - 1])[:, None] + between[t - 1], axis=0)
        u = rungs - 1 - t
        back[u] = np.logaddexp.reduce((back[u + 1] + own[u + 1])[None, :] + between[u], axis=1)
    joint = ahead + own + back
    log_z = float(np.logaddexp.reduce(joint[0]))
    place = rng.permutation(2 * rungs + 1)
    marginals = np.empty(2 * rungs + 1)
    marginals[place] = [*(np.exp(joint - log_z) @ states).ravel(), 1 / (1 + np.exp(-apart))]
    fields = np.empty(2 * rungs + 1)
    fields[place] = [*biases.ravel(), apart]
    left, right = place[0:-1:2], place[1::2]
    edges = np.concatenate(
        [np.column_stack(p) for p in ((left, right), (left[:-1], left[1:]), (right[:-1], right[1:]))]
    )
    model = PairwiseModel.from_edges(fields, edges, np.concatenate([rung, rails[:, 0], rails[:, 1]]), name=name)
    return Known(model, log_z + float(np.log1p(np.exp(apart))), marginals)


def _crowd(size: int) -> Known:
    """All pairs alike, of variables of two kinds: the law depends on two counts."""
    biases, coupling = np.array([0.9, -0.3]), -0.08
    counts = np.arange(size + 1)
    choose = _log_factorials(size)
    ways = choose[size] - choose[counts] - choose[size - counts]
    ones = counts[:, None] + counts[None, :]
    weights = ways[:, None] + ways[None, :] + coupling * ones * (ones - 1) / 2
    weights = weights + biases[0] * counts[:, None] + biases[1] * counts[None, :]
    log_z = float(np.logaddexp.reduce(weights, axis=None))
    p = np.exp(weights - log_z)
    means = np.array([p.sum(axis=1) @ counts, p.sum(axis=0) @ counts]) / size
    kinds = np.arange(2 * size) % 2
    edges = np.argwhere(np.triu(np.ones((2 * size, 2 * size)), 1))
    model = PairwiseModel.from_edges(biases[kinds], edges, np.full(len(edges), coupling), name=f"{2 * size}, dense")
    return Known(model, log_z, means[kinds])


def _log_factorials(most: int) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def _several_states() -> Known:
    """3, 9, 1 and 4 states, in a loop; scopes that are not in order, and one that comes twice."""
    rng = np.random.default_rng(18)
    sizes = [3, 9, 1, 4]
    scopes = [(0,), (3,), (1, 0), (1, 2), (3, 0), (1, 3), (0, 3), (3,)]
    tables = [(scope, 0.8 * rng.normal(size=[sizes[v] for v in scope])) for scope in scopes]
    return of_graph(
        FactorGraph.from_log_tables(sizes, tables, log_constant=-0.5, name="four variables of 1 to 9 states")
    )


def _zeros() -> Known:
    """States of no weight, some of them in pairs."""
    rng = np.random.default_rng(19)
    tables: list[tuple[tuple[int, ...], FloatArray]] = [
        (scope, rng.normal(size=(3, 3))) for scope in ((0, 1), (1, 2), (0, 2))
    ]
    tables[0][1][0, 1] = tables[1][1][2, 2] = -np.inf
    tables = [*tables, ((2,), np.array([0.3, -np.inf, -0.4]))]
    return of_graph(FactorGraph.from_log_tables([3, 3, 3], tables, name="zeros"))


def _zero_states() -> Known:
    """States of no weight that a pairwise model can leave out."""
    rng = np.random.default_rng(20)
    tables: Tables = [(scope, rng.normal(size=(3, 3))) for scope in ((0, 1), (1, 2))]
    tables = [*tables, ((1,), np.array([0.3, -np.inf, -0.4]))]
    return of_graph(FactorGraph.from_log_tables([3, 3, 3], tables, name="a state of no weight"))


def of_graph(graph: FactorGraph) -> Known:
    """The answers of a small graph, by enumeration."""
    log_z, marginals = enumerate_graph(graph)
    binary = all(k == 2 for k in graph.cardinalities)
    return Known(graph, log_z, np.array([p[1] for p in marginals]) if binary else np.concatenate(marginals))


MODELS: dict[str, Callable[[], Known]] = {
    "101 variables": lambda: _ladder(50, "101 variables"),
    "1001 variables": lambda: _ladder(500, "1001 variables"),
    "80 variables, dense": lambda: _crowd(40),
    "20 variables, dense": lambda: _crowd(10),
    "three states": lambda: of_graph(potts()),
    "one to nine states": _several_states,
    "zeros": _zeros,
    "a state of no weight": _zero_states,
}
SIZES = ("80 variables, dense", "101 variables", "1001 variables")
