"""States that no change of a single variable makes heavier (iterated conditional modes; Besag, JRSS B 1986)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Largest number of sweeps; mostly a few reach a state that no single change makes heavier.
SWEEPS = 30


# Largest number of variables: on larger models the ascent takes minutes.
MOST_VARIABLES = 100_000


def ascend_to_maxima(model: Model, states: IntArray) -> IntArray:
    """(N, C) the states, or what they become when one variable after another takes its best state given the others.

    They stay as they are where the model has 1-of-K groups, or more than `MOST_VARIABLES` variables.
    """
    grouped = isinstance(model, PairwiseModel) and bool(model.groups)
    maxima = np.array(states, dtype=np.int64, order="C")
    if not grouped and model.num_variables <= MOST_VARIABLES:
        for _ in ascending(model, maxima):
            pass
    return maxima


def ascending(model: Model, states: IntArray) -> Iterator[IntArray]:
    """One variable after another takes its best state given the others; after each sweep, where they are.

    Args:
        model: without 1-of-K groups, which a change of one unit would break.
        states: (N, C), written into.
    """
    rises = _Fields(model) if isinstance(model, PairwiseModel) else _Tables(model)
    for _ in range(SWEEPS):
        before = states.copy()
        for v in range(len(states)):
            states[v] = rises.best(v, states)
        if (states == before).all():
            return
        yield states


class _Fields:
    """Of a pairwise model."""

    def __init__(self, model: PairwiseModel) -> None:
        self._biases, rows = model.biases, model.csr()
        ends = list(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True))
        self._rows = [(rows.indices[a:b], rows.data[a:b]) for a, b in ends]

    def best(self, v: int, states: IntArray) -> npt.NDArray[np.bool_]:
        near, couplings = self._rows[v]
        return np.asarray(self._biases[v] + couplings @ states[near] > 0)


class _Tables:
    """Of a factor graph."""

    def __init__(self, model: FactorGraph) -> None:
        self._holding: list[list[tuple[FloatArray, tuple[int, ...]]]] = [[] for _ in model.cardinalities]
        for factor in model.factors:
            for axis, v in enumerate(factor.scope):
                others = tuple(u for u in factor.scope if u != v)
                self._holding[v].append((np.moveaxis(factor.log_table, axis, 0), others))
        self._cards = model.cardinalities

    def best(self, v: int, states: IntArray) -> IntArray:
        total = np.zeros((self._cards[v], states.shape[1]))
        for table, others in self._holding[v]:
            part = table[(slice(None), *(states[u] for u in others))]
            total += part.reshape(len(part), -1)
        return np.asarray(total.argmax(axis=0))
