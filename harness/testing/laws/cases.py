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

from spinbench.models import FactorGraph, Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]
# Separates the random numbers of initial states from those of chains with the same seed.
START_STREAM = 0x57A7


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
class SolvedModel:
    """A model with its exact answers.

    Attributes:
        model: the model.
        log_z: log of the partition function.
        marginals: p(s_i = 1) of binary variables; else the probabilities of all states, variable after variable.
        draw: (chains, seed) to exact draws (N, chains), of models where these are asked for.
    """

    model: Model
    log_z: float
    marginals: FloatArray
    draw: Callable[[int, int], npt.NDArray[np.int8]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Law(SolvedModel):
    """A small model with its joint law.

    Attributes:
        states: (S, N) int8, all states, the first variable's changing fastest.
        probabilities: (S,) float64.
    """

    states: npt.NDArray[np.int8]
    probabilities: FloatArray

    def exact_draws(self, count: int, seed: int) -> npt.NDArray[np.int8]:
        """(N, count) independent exact draws."""
        chosen = _start_rng(seed).choice(len(self.states), size=count, p=self.probabilities)
        return np.ascontiguousarray(self.states[chosen].T)

    def uniform_states(self, count: int, seed: int) -> npt.NDArray[np.int8]:
        """(N, count) uniform bits."""
        size = (self.model.num_variables, count)
        return _start_rng(seed).integers(0, 2, size=size, dtype=np.int8)


def _start_rng(seed: int) -> np.random.Generator:
    """None of a plugin that seeds NumPy's generator with its seed: what a start is drawn with must not drive steps."""
    return np.random.default_rng((seed, START_STREAM))


@cache
def law(case: str) -> Law:
    """The law of the case of this name."""
    return enumerate_law(CASES[case].build())


def enumerate_law(model: Model, evidence: Mapping[int, int] | None = None) -> Law:
    """The law of a small model by the sum over all states, the states of some variables being known."""
    sizes = model.cardinalities
    states = np.indices(sizes[::-1], dtype=np.int8).reshape(len(sizes), -1)[::-1].T
    weights = model.log_weight(states)
    for variable, state in (evidence or {}).items():
        weights = np.where(states[:, variable] == state, weights, -np.inf)
    log_z = float(np.logaddexp.reduce(weights))
    probabilities = np.exp(weights - log_z)
    probabilities /= probabilities.sum()
    marginals = probabilities @ indicators(states, all(k == 2 for k in sizes))
    return Law(model, log_z, marginals, states=states, probabilities=probabilities)


def indicators(states: npt.NDArray[np.integer], binary: bool) -> FloatArray:
    """(S, number of marginals) whether each of all states (S, N) counts for each marginal: p(s_i = 1) of binary
    variables, else the probabilities of all states, variable after variable."""
    if binary:
        return states.astype(np.float64)
    columns = [states[:, v, None] == np.arange(states[:, v].max() + 1) for v in range(states.shape[1])]
    return np.concatenate(columns, axis=1).astype(np.float64)


def _random_model(name: str, n: int, edges: npt.ArrayLike, bias: float, coupling: float, seed: int) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    pairs = np.asarray(edges)
    return PairwiseModel.from_edges(
        bias * rng.normal(size=n), pairs, coupling * rng.normal(size=len(pairs)), log_constant=0.25, name=name
    )


def _complete_edges(n: int) -> npt.NDArray[np.int64]:
    return np.argwhere(np.triu(np.ones((n, n)), 1))


def _zero_couplings_model() -> PairwiseModel:
    """Two fields are so strong that a sigmoid which is cut short shows."""
    edges = [(0, 1), (1, 2), (0, 3), (3, 4)]
    return PairwiseModel.from_edges([0.3, -2.0, 0.0, 3.0, 22.0, -21.0], edges, [0.0] * 4, name="zero couplings")


def _strongly_coupled_model() -> PairwiseModel:
    """Couplings of either sign, fields near zero: no state has all of the mass, but chains hardly move."""
    rng = np.random.default_rng(14)
    edges = _complete_edges(6)
    couplings = 6.0 * rng.normal(size=len(edges))
    biases = _mirror_symmetric_biases(edges, couplings) + 0.5 * rng.normal(size=6)
    return PairwiseModel.from_edges(biases, edges, couplings, name="strong couplings")


def _hugely_coupled_model() -> PairwiseModel:
    """Frustrated ±50 without a field: a few ground states, mirror images of each other, share all of the mass."""
    edges = _complete_edges(5)
    couplings = 50.0 * np.array([1, -1, 1, 1, 1, 1, -1, -1, 1, 1])
    return PairwiseModel.from_edges(_mirror_symmetric_biases(edges, couplings), edges, couplings, name="huge couplings")


def _mirror_symmetric_biases(edges: npt.NDArray[np.int64], couplings: FloatArray) -> FloatArray:
    """Biases with which a state and its mirror image are equally likely: a = -½W1."""
    return np.asarray(-0.5 * np.bincount(edges.ravel(), np.repeat(couplings, 2)))


SPARSE = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (4, 6), (6, 7)]
DISCONNECTED = [(0, 1), (1, 2), (0, 2), (4, 5)]

CASES = {
    case.name: case
    for case in (
        Case(
            "one variable",
            lambda: PairwiseModel.from_edges([0.7], [], [], log_constant=-2.0, name="one variable"),
            coupled=False,
        ),
        Case("zero couplings", _zero_couplings_model, coupled=False),
        Case("dense", lambda: _random_model("dense", 6, _complete_edges(6), 0.6, 0.8, 11), "random"),
        Case("sparse", lambda: _random_model("sparse", 8, SPARSE, 0.8, 1.4, 12), "random"),
        Case("disconnected", lambda: _random_model("disconnected", 7, DISCONNECTED, 1.0, 1.2, 13)),
        Case("strong couplings", _strongly_coupled_model),
        Case("huge couplings", _hugely_coupled_model),
    )
}


def three_state_model() -> FactorGraph:
    """Two variables of three states and one of two; units of which exactly one is 1 once it is made pairwise."""
    rng = np.random.default_rng(15)
    scopes = [(0,), (1,), (2,), (0, 1), (1, 2)]
    cardinalities = [3, 3, 2]
    tables = [(scope, 0.7 * rng.normal(size=[cardinalities[v] for v in scope])) for scope in scopes]
    return FactorGraph.from_log_tables(cardinalities, tables, log_constant=0.5, name="three states")


def higher_order_model() -> FactorGraph:
    """Five binary variables with factors of orders 3 and 5, which no pairwise model has."""
    rng = np.random.default_rng(16)
    tables = [(scope, rng.normal(size=(2,) * len(scope))) for scope in ((0, 1, 2), (1, 2, 3), (4, 2, 0, 3, 1))]
    return FactorGraph.from_log_tables([2] * 5, tables, name="orders three and five")


def ring_model() -> FactorGraph:
    """Five binary variables in a ring, in tables of pairs."""
    rng = np.random.default_rng(27)
    tables = [((v, (v + 1) % 5), rng.normal(size=(2, 2))) for v in range(5)]
    return FactorGraph.from_log_tables([2] * 5, tables, name="ring of five")
