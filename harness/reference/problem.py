"""What the exact solvers work on: the model with everything trivial taken out, and the way back.

States that hard zeros rule out disappear, and with them variables of one state; a 1-of-K group of a
`PairwiseModel` becomes one variable of K states, so that the constraint costs nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.possible import possible_states

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Scope = tuple[int, ...]


class NotApplicableError(Exception):
    """A solver does not fit a problem; the message completes "needs …, and this model has …"."""


@dataclass(frozen=True, eq=False)
class Network:
    """log p(x) = constant + Σ tables + const.

    Attributes:
        cardinalities: (n,) all >= 2.
        tables: one float64 log table for each scope; scopes are ascending and not empty.
        constant: finite.
    """

    cardinalities: tuple[int, ...]
    tables: dict[Scope, FloatArray]
    constant: float


@dataclass(frozen=True, eq=False)
class Pairwise:
    """log p(s) = constant + a·s + Σ W_ij s_i s_j + const over s in {0,1}^n; edges i < j, unique, W_ij != 0."""

    biases: FloatArray
    edges: IntArray
    couplings: FloatArray
    constant: float

    @property
    def size(self) -> int:
        """n."""
        return self.biases.size

    @cached_property
    def degrees(self) -> IntArray:
        """(n,) number of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.size).astype(np.int64)

    @cached_property
    def fields(self) -> FloatArray:
        """(n,) h of the ±1 form h·σ + Σ J σσ with J = W / 4; below rounding error it is exactly zero."""
        pull, scale = np.zeros(self.size), np.abs(self.biases)
        for end in (0, 1):
            np.add.at(pull, self.edges[:, end], self.couplings)
            np.add.at(scale, self.edges[:, end], np.abs(self.couplings))
        h = self.biases / 2 + pull / 4
        h[np.abs(h) <= 8 * np.finfo(np.float64).eps * scale] = 0.0
        return h

    @property
    def spin_constant(self) -> float:
        """The constant of the ±1 form."""
        return self.constant + float(self.biases.sum()) / 2 + float(self.couplings.sum()) / 4

    def neighbours(self) -> list[list[int]]:
        """The adjacency list."""
        lists: list[list[int]] = [[] for _ in range(self.size)]
        for i, j in self.edges.tolist():
            lists[i].append(j)
            lists[j].append(i)
        return lists


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
    """

    cardinalities: tuple[int, ...]
    full: tuple[int, ...]
    source: IntArray
    state: IntArray
    labels: tuple[IntArray, ...]

    @cached_property
    def trivial(self) -> bool:
        """Whether all variables are left as they are."""
        return (
            self.cardinalities == self.full
            and bool((self.source == np.arange(len(self.full))).all())
            and bool((self.state < 0).all())
        )

    def decode_states(self, states: npt.NDArray[np.integer]) -> IntArray:
        """(M, n) -> (M, N)."""
        x = np.asarray(states, dtype=np.int64)
        if self.trivial:
            return x
        fixed = self.source < 0
        member = ~fixed & (self.state >= 0)
        out = np.empty((len(x), len(self.full)), dtype=np.int64)
        out[:, fixed] = self.state[fixed]
        for v in np.flatnonzero(~fixed & ~member):
            out[:, v] = self.labels[self.source[v]][x[:, self.source[v]]]
        out[:, member] = x[:, self.source[member]] == self.state[member]
        return out

    def decode_marginals(self, marginals: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
        """n vectors (K,) -> N vectors."""
        if self.trivial:
            return tuple(marginals)
        decoded = []
        for card, source, state in zip(self.full, self.source.tolist(), self.state.tolist(), strict=True):
            if source < 0:
                vector = np.zeros(card)
                vector[state] = 1.0
            elif state < 0:
                vector = np.zeros(card)
                vector[self.labels[source]] = marginals[source]
            else:
                others = float(np.delete(marginals[source], state).sum())
                vector = np.array([others, marginals[source][state]])
            decoded.append(vector)
        return tuple(decoded)


class Problem:
    """A model seen as a `Network` and, where it is one, as a `Pairwise` model; both made when first asked for.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.coding = _group_coding(model) if isinstance(model, PairwiseModel) else _graph_coding(model)

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return self.model.name

    @property
    def num_states(self) -> int:
        """Number of joint states (a Python integer, never overflows)."""
        return math.prod(k**count for k, count in Counter(self.coding.cardinalities).items())

    @cached_property
    def network(self) -> Network:
        """The general view."""
        if isinstance(self.model, PairwiseModel):
            return _lower_pairwise(self.model, self.coding)
        return _lower_graph(self.model, self.coding)

    @cached_property
    def _pairwise(self) -> Pairwise | None:
        if isinstance(self.model, PairwiseModel) and not self.model.groups:
            keep = self.model.couplings != 0
            edges, couplings = self.model.edges[keep], self.model.couplings[keep]
            return Pairwise(self.model.biases, edges, couplings, self.model.log_constant)
        return _pairwise_of(self.network)

    @property
    def pairwise(self) -> Pairwise:
        """The view of finite couplings between binary variables.

        Raises:
            NotApplicableError: there is none.
        """
        if self._pairwise is None:
            raise NotApplicableError("binary variables and finite pairwise couplings, and this model has others")
        return self._pairwise


def _group_coding(model: PairwiseModel) -> Coding:
    n = model.num_variables
    if not model.groups:
        same, binary = np.arange(n), np.arange(2)
        return Coding((2,) * n, (2,) * n, same, np.full(n, -1, dtype=np.int64), (binary,) * n)
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
    return Coding(tuple(cards), (2,) * n, source, state, tuple(np.arange(k) for k in cards))


def _graph_coding(model: FactorGraph) -> Coding:
    alive = [np.flatnonzero(mask).astype(np.int64) for mask in possible_states(model)]
    free = np.array([states.size > 1 for states in alive])
    source = np.where(free, np.cumsum(free) - 1, -1).astype(np.int64)
    state = np.array([-1 if states.size > 1 else states[0] for states in alive], dtype=np.int64)
    labels = tuple(states for states in alive if states.size > 1)
    return Coding(tuple(states.size for states in labels), model.cardinalities, source, state, labels)


def _collect(cards: tuple[int, ...], pieces: Iterable[tuple[Scope, FloatArray]], constant: float) -> Network:
    """Sums tables of one scope, with axes in ascending order."""
    tables: dict[Scope, FloatArray] = {}
    for scope, table in pieces:
        if not scope:
            constant += float(table)
            continue
        key, turned = scope, table
        if any(a > b for a, b in pairwise(scope)):
            order = sorted(range(len(scope)), key=scope.__getitem__)
            key, turned = tuple(scope[i] for i in order), table.transpose(order)
        tables[key] = tables[key] + turned if key in tables else turned
    return Network(cards, tables, constant)


def _lower_graph(model: FactorGraph, coding: Coding) -> Network:
    sources = coding.source.tolist()
    whole = [s >= 0 and len(coding.labels[s]) == k for s, k in zip(sources, coding.full, strict=True)]

    def pieces() -> Iterable[tuple[Scope, FloatArray]]:
        for factor in model.factors:
            if all(whole[v] for v in factor.scope):
                yield tuple(sources[v] for v in factor.scope), factor.log_table
                continue
            index: list[IntArray] = []
            kept: list[int] = []
            for v in factor.scope:
                source = int(coding.source[v])
                index.append(coding.labels[source] if source >= 0 else coding.state[[v]])
                if source >= 0:
                    kept.append(source)
            table = factor.log_table[np.ix_(*index)]
            yield tuple(kept), table.reshape([len(coding.labels[u]) for u in kept])

    return _collect(coding.cardinalities, pieces(), model.log_constant)


def _lower_pairwise(model: PairwiseModel, coding: Coding) -> Network:
    source, state, cards = coding.source.tolist(), coding.state.tolist(), coding.cardinalities

    def indicator(i: int) -> tuple[Scope, FloatArray]:
        """s_i as a table over the variable that decides it."""
        if source[i] < 0:
            return (), np.array(float(state[i]))
        one = np.zeros(cards[source[i]])
        one[state[i] if state[i] >= 0 else 1] = 1.0
        return (source[i],), one

    def pieces() -> Iterable[tuple[Scope, FloatArray]]:
        for i, bias in enumerate(model.biases.tolist()):
            scope, one = indicator(i)
            yield scope, bias * one
        for (i, j), weight in zip(model.edges.tolist(), model.couplings.tolist(), strict=True):
            (left, one), (right, other) = indicator(i), indicator(j)
            if left and left == right:  # two members of a group are never 1 together
                continue
            yield left + right, weight * np.multiply.outer(one, other)

    return _collect(cards, pieces(), model.log_constant)


def _pairwise_of(network: Network) -> Pairwise | None:
    if any(k != 2 for k in network.cardinalities) or any(len(scope) > 2 for scope in network.tables):
        return None
    biases, constant = np.zeros(len(network.cardinalities)), network.constant
    edges: list[Scope] = []
    couplings: list[float] = []
    for scope, table in network.tables.items():
        if not np.isfinite(table).all():
            return None
        corner = float(table[(0,) * len(scope)])
        constant += corner
        if len(scope) == 1:
            biases[scope[0]] += table[1] - corner
            continue
        biases[scope[0]] += table[1, 0] - corner
        biases[scope[1]] += table[0, 1] - corner
        weight = float((table[1, 1] - table[1, 0]) - (table[0, 1] - table[0, 0]))
        if weight != 0:
            edges.append(scope)
            couplings.append(weight)
    return Pairwise(biases, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(couplings), constant)
