"""How the variables of a model follow from those that are left once everything trivial is taken out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.possible import possible_states
from spinbench.reference.network import FloatArray, IntArray, split


@dataclass(frozen=True, eq=False)
class Coding:
    """How the N variables of a model follow from the n variables that are left.

    Attributes:
        cardinalities: (n,) of the variables left, all >= 2.
        full: (N,) of the model's variables.
        source: (N,) the variable that decides, or -1 where the value is fixed.
        state: (N,) the state of `source` at which the variable is 1 (a member of a 1-of-K group), -1 where the
            variable follows `source`, or the fixed value.
        labels: for each variable left, the states (K,) of the model's variable that follows it.
        trivial: whether all variables are left as they are.
    """

    cardinalities: tuple[int, ...]
    full: tuple[int, ...]
    source: IntArray
    state: IntArray
    labels: tuple[IntArray, ...]
    trivial: bool

    @property
    def representatives(self) -> list[int]:
        """(n,) for each variable left one of the model's that follow it."""
        sources, first = np.unique(self.source, return_index=True)
        return [int(v) for v in first[sources >= 0]]

    @cached_property
    def maps(self) -> list[IntArray]:
        """Of each of the model's variables its state at each state of `source`, or its fixed one alone."""
        found = []
        for source, state in zip(self.source.tolist(), self.state, strict=True):
            if source < 0:
                found.append(state[None])
            elif state < 0:
                found.append(self.labels[source])
            else:
                found.append((self.labels[source] == state).astype(np.int64))
        return found

    def decode_states(self, states: npt.NDArray[np.integer]) -> IntArray:
        """(M, n) -> (M, N)."""
        x = np.asarray(states, dtype=np.int64)
        if self.trivial:
            return x
        out = np.empty((len(x), len(self.full)), dtype=np.int64)
        for v, (source, labels) in enumerate(zip(self.source.tolist(), self.maps, strict=True)):
            out[:, v] = labels[x[:, source]] if source >= 0 else labels[0]
        return out

    def decode_marginals(self, flat: FloatArray) -> FloatArray:
        """The probabilities of n variables, one after another -> those of N."""
        if self.trivial:
            return flat
        marginals, one = split(flat, self.cardinalities), np.ones(1)
        decoded = []
        for card, source, labels in zip(self.full, self.source.tolist(), self.maps, strict=True):
            decoded.append(np.bincount(labels, marginals[source] if source >= 0 else one, minlength=card))
        return np.concatenate(decoded)


def coding_of(model: Model) -> Coding:
    """States that hard zeros rule out are left out, and variables of one state; a 1-of-K group is one variable.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    return _group_coding(model) if isinstance(model, PairwiseModel) else _graph_coding(model)


def binary_coding(n: int) -> Coding:
    """Of n binary variables, all of which are left as they are."""
    cards = (2,) * n
    return Coding(cards, cards, np.arange(n), np.full(n, -1, dtype=np.int64), (np.arange(2),) * n, trivial=True)


def _group_coding(model: PairwiseModel) -> Coding:
    n = model.num_variables
    source, state = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    cards: list[int] = []
    group_of = {i: group for group in model.groups for i in group}
    for i in range(n):
        group = group_of.get(i, ())
        if len(group) == 1:
            state[i] = 1
        elif not group:
            source[i] = len(cards)
            cards.append(2)
        elif source[i] < 0:
            for k, member in enumerate(group):
                source[member], state[member] = len(cards), k
            cards.append(len(group))
    labels = tuple(np.arange(k) for k in cards)
    return Coding(tuple(cards), (2,) * n, source, state, labels, trivial=not model.groups)


def _graph_coding(model: FactorGraph) -> Coding:
    alive = [np.flatnonzero(mask).astype(np.int64) for mask in possible_states(model)]
    free = np.array([states.size > 1 for states in alive])
    source = np.where(free, np.cumsum(free) - 1, -1).astype(np.int64)
    state = np.array([-1 if states.size > 1 else states[0] for states in alive], dtype=np.int64)
    labels = tuple(states for states in alive if states.size > 1)
    cards = tuple(states.size for states in labels)
    return Coding(cards, model.cardinalities, source, state, labels, trivial=cards == model.cardinalities)
