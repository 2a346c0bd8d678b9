"""Bounds on log Z that need no method: what a few heavy states weigh, and what no state can weigh more than."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spinbench.api.bounds import Bound
from spinbench.inference.probing.weighed import below as weighed
from spinbench.inference.starts import random_start
from spinbench.mathematics.rounding import work_of
from spinbench.models import FactorGraph, Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

CHAINS = 16
SWEEPS = 30
"""At most; each ends at a state that no change of one variable makes heavier."""


def above(model: Model) -> Bound:
    """Every factor's largest entry, and as many states as there are."""
    if isinstance(model, PairwiseModel):
        most = float(np.maximum(model.biases, 0.0).sum() + np.maximum(model.couplings, 0.0).sum())
    else:
        most = sum(float(factor.log_table.max()) for factor in model.factors)
    states = sum(math.log(card) for card in model.cardinalities)
    slack = work_of(model).allowance()
    return Bound(model.log_constant + most + states + slack, "upper", "certified", by="largest entries")


def below(model: Model, seed: int) -> Iterator[Bound]:
    """Z is at least what different states weigh together, the heavier the better.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        UnsupportedError: none was found.
    """
    for chains in (1, CHAINS):  # where there are zeros, each is a search
        states = random_start(model, chains, seed).astype(np.int64)
        yield weighed(model, states)
    if isinstance(model, PairwiseModel) and model.groups:
        return  # a change of one unit breaks a group
    for climbed in _climbing(model, states):
        yield weighed(model, climbed)


def _climbing(model: Model, states: IntArray) -> Iterator[IntArray]:
    """One variable after another takes its best state given the others; after each sweep, where they are."""
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
            total += part if others else part[:, None]
        return np.asarray(total.argmax(axis=0))
