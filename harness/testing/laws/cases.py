"""The small models on which every method is checked, with their joint law by enumeration.

The law is summed here, from `PairwiseModel.log_weight` alone, and not taken from `spinbench.reference`: the joint
distribution is needed as well, and method `exact`, which is the reference, is itself checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, PairwiseModel

FloatArray = npt.NDArray[np.float64]
OF_STARTS = 0x57A7


@dataclass(frozen=True)
class Case:
    """A model and how its chains start.

    Attributes:
        name: of the model.
        build: makes it.
        start: "random": uniform bits, then burn-in; "exact": exact draws, no burn-in, so that chains that hardly
            ever leave a mode still have the right law.
        coupled: whether any coupling differs from 0. Where none does, approximations have to be exact, too.
    """

    name: str
    build: Callable[[], PairwiseModel]
    start: Literal["random", "exact"] = "exact"
    coupled: bool = True


@dataclass(frozen=True, eq=False)
class Law:
    """A case's model with its joint law.

    Attributes:
        model: the model.
        states: (2^N, N) int8, all states.
        probabilities: (2^N,) float64.
        log_z: log of the partition function.
        marginals: (N,) float64 p(s_i = 1).
    """

    model: PairwiseModel
    states: npt.NDArray[np.int8]
    probabilities: FloatArray
    log_z: float
    marginals: FloatArray

    def draws(self, count: int, seed: int) -> npt.NDArray[np.int8]:
        """(N, count) independent exact draws."""
        chosen = _numbers(seed).choice(len(self.states), size=count, p=self.probabilities)
        return np.ascontiguousarray(self.states[chosen].T)

    def bits(self, count: int, seed: int) -> npt.NDArray[np.int8]:
        """(N, count) uniform bits."""
        size = (self.model.num_variables, count)
        return _numbers(seed).integers(0, 2, size=size, dtype=np.int8)


def _numbers(seed: int) -> np.random.Generator:
    """None of a plugin that seeds NumPy's generator with its seed: what a start is drawn with must not drive steps."""
    return np.random.default_rng((seed, OF_STARTS))


@cache
def law(case: str) -> Law:
    """The law of the case of this name."""
    model = CASES[case].build()
    n = model.num_variables
    states = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
    weights = model.log_weight(states)
    log_z = float(np.logaddexp.reduce(weights))
    probabilities = np.exp(weights - log_z)
    probabilities /= probabilities.sum()
    return Law(model, states, probabilities, log_z, probabilities @ states)


def _random(name: str, n: int, edges: npt.ArrayLike, bias: float, coupling: float, seed: int) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    pairs = np.asarray(edges)
    return PairwiseModel.from_edges(
        bias * rng.normal(size=n), pairs, coupling * rng.normal(size=len(pairs)), log_constant=0.25, name=name
    )


def _complete(n: int) -> npt.NDArray[np.int64]:
    return np.argwhere(np.triu(np.ones((n, n)), 1))


def _one_variable() -> PairwiseModel:
    return PairwiseModel.from_edges([0.7], [], [], log_constant=-2.0, name="one variable")


def _zero_couplings() -> PairwiseModel:
    """Two fields are so strong that a sigmoid which is cut short shows."""
    edges = [(0, 1), (1, 2), (0, 3), (3, 4)]
    return PairwiseModel.from_edges([0.3, -2.0, 0.0, 3.0, 22.0, -21.0], edges, [0.0] * 4, name="zero couplings")


def _strong_couplings() -> PairwiseModel:
    """Couplings of either sign, fields near zero: no state has all of the mass, but chains hardly move."""
    rng = np.random.default_rng(14)
    edges = _complete(6)
    couplings = 6.0 * rng.normal(size=len(edges))
    biases = _balanced(edges, couplings) + 0.5 * rng.normal(size=6)
    return PairwiseModel.from_edges(biases, edges, couplings, name="strong couplings")


def _huge_couplings() -> PairwiseModel:
    """Frustrated ±50 without a field: a few ground states, mirror images of each other, share all of the mass."""
    edges = _complete(5)
    couplings = 50.0 * np.array([1, -1, 1, 1, 1, 1, -1, -1, 1, 1])
    return PairwiseModel.from_edges(_balanced(edges, couplings), edges, couplings, name="huge couplings")


def _balanced(edges: npt.NDArray[np.int64], couplings: FloatArray) -> FloatArray:
    """Biases with which a state and its mirror image are equally likely: a = -½W1."""
    return np.asarray(-0.5 * np.bincount(edges.ravel(), np.repeat(couplings, 2)))


SPARSE = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (4, 6), (6, 7)]
DISCONNECTED = [(0, 1), (1, 2), (0, 2), (4, 5)]

CASES = {
    case.name: case
    for case in (
        Case("one variable", _one_variable, coupled=False),
        Case("zero couplings", _zero_couplings, coupled=False),
        Case("dense", lambda: _random("dense", 6, _complete(6), 0.6, 0.8, 11), "random"),
        Case("sparse", lambda: _random("sparse", 8, SPARSE, 0.8, 1.4, 12), "random"),
        Case("disconnected", lambda: _random("disconnected", 7, DISCONNECTED, 1.0, 1.2, 13)),
        Case("strong couplings", _strong_couplings),
        Case("huge couplings", _huge_couplings),
    )
}


def potts() -> FactorGraph:
    """Two variables of three states and one of two; units of which exactly one is 1 once it is made pairwise."""
    rng = np.random.default_rng(15)
    scopes = [(0,), (1,), (2,), (0, 1), (1, 2)]
    cardinalities = [3, 3, 2]
    tables = [(scope, 0.7 * rng.normal(size=[cardinalities[v] for v in scope])) for scope in scopes]
    return FactorGraph.from_log_tables(cardinalities, tables, log_constant=0.5, name="three states")


def triples() -> FactorGraph:
    """Five binary variables with factors of orders 3 and 5, which no pairwise model has."""
    rng = np.random.default_rng(16)
    tables = [(scope, rng.normal(size=(2,) * len(scope))) for scope in ((0, 1, 2), (1, 2, 3), (4, 2, 0, 3, 1))]
    return FactorGraph.from_log_tables([2] * 5, tables, name="orders three and five")


def couples() -> FactorGraph:
    """Five binary variables in a ring, in tables of pairs."""
    rng = np.random.default_rng(27)
    tables = [((v, (v + 1) % 5), rng.normal(size=(2, 2))) for v in range(5)]
    return FactorGraph.from_log_tables([2] * 5, tables, name="ring of five")


def states_of(graph: FactorGraph) -> npt.NDArray[np.int64]:
    """(K_1, …, K_N, N), all states."""
    return np.stack(np.meshgrid(*(np.arange(k) for k in graph.cardinalities), indexing="ij"), axis=-1)


def joint_law(graph: FactorGraph, evidence: Mapping[int, int] | None = None) -> tuple[float, FloatArray]:
    """(log Z, probabilities (K_1, …, K_N)) of a small factor graph, some of its variables being known."""
    states = states_of(graph)
    weights = graph.log_weight(states)
    for variable, state in (evidence or {}).items():
        weights = np.where(states[..., variable] == state, weights, -np.inf)
    log_z = float(np.logaddexp.reduce(weights, axis=None))
    return log_z, np.exp(weights - log_z)


def enumerate_graph(graph: FactorGraph) -> tuple[float, list[FloatArray]]:
    """(log Z, marginals) of a small factor graph, by the sum over all states."""
    log_z, p = joint_law(graph)
    return log_z, marginals_of(p)


def marginals_of(p: FloatArray) -> list[FloatArray]:
    """(K_v,) of each variable, from their joint law."""
    axes = range(p.ndim)
    return [p.sum(axis=tuple(a for a in axes if a != v)) for v in axes]
