"""Exact sums over the counts of exchangeable variables ("lifted" inference), any model that has some.

n exchangeable variables of K states have C(n + K - 1, K - 1) compositions, count vectors that say how many of them are
in which state, instead of K^n states. The composition of each class becomes one variable, with the log of the
multinomial coefficient as its own table; a variable that is like no other is a class of one. What is left is a smaller
factor graph, which elimination sums. Niepert and Van den Broeck, "Tractability through exchangeability", AAAI 2014;
Milch, Zettlemoyer, Kersting, Haimes, Kaelbling, "Lifted probabilistic inference with counting formulas", AAAI 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.exchangeable.class_tables import (
    Classes,
    classes_of,
    compositions,
    log_multiplicities,
    log_weights,
    num_compositions,
)
from spinbench.reference.exchangeable.inner_variables import (
    MAX_NEIGHBOURS,
    InnerVariable,
    inner_variables,
    pairs_without,
    sum_out,
)
from spinbench.reference.exchangeable.symmetry import exchangeable_classes, least_classes, tables_by_shape
from spinbench.reference.network import FloatArray, IntArray, Scope, merge_tables, split
from spinbench.reference.orders.order import elimination_order, pairs_of
from spinbench.reference.problem import NetworkProblem, NotApplicableError, Problem
from spinbench.reference.solver import Solver, draw_states

MIN_DEGREE = 8
"""Neighbours from which counting may beat elimination: a variable of fewer goes at 2^8 entries if it is binary."""
MAX_CLASSES = 2000
"""Classes whose elimination order takes a second to find, or less."""
SAMPLE = 4 * MAX_CLASSES
"""Variables that are compared first, of many, to see whether there are more classes than that."""

_REFUSAL = "exchangeable variables, and this model has "


class Exchangeable(Solver):
    """Models in which some variables can be permuted, such as complete and complete bipartite graphs of equal tables.

    Attributes:
        classes: which variables are exchangeable, and the tables of each class and between classes.
        inner: the variables that are summed out before.
    """

    name = "exchangeable"
    width: int

    def __init__(self, problem: Problem, classes: Classes, inner: list[InnerVariable], constant: float) -> None:
        self.problem, self.classes, self.inner, self.constant = problem, classes, inner, constant
        cards = [num_compositions(n, k) for n, k in zip(classes.sizes, classes.states, strict=True)]
        scopes = [tuple(sorted(set(table.classes))) for table in classes.tables]
        self.entries = sum(math.prod(cards[c] for c in scope) for scope in scopes)
        self.count_entries = sum(n * k for n, k in zip(cards, classes.states, strict=True))
        self.count_order = elimination_order(cards, pairs_of(scopes))
        self.width, self.complete = self.count_order.width, self.count_order.complete
        self.seconds = math.inf
        if self.complete:
            sums = (
                2 * self.count_order.entries + min(self.entries + self.count_entries, 2**62)
            ) * BucketTree.entry_seconds
            self.seconds = 1e-3 + sums + 2e-4 * len(cards) + 1e-5 * len(inner)

    @classmethod
    def build(cls, problem: Problem) -> Exchangeable:
        """Applies where some variables are exchangeable once those of at most two neighbours are summed out."""
        inner = inner_variables(len(problem.cardinalities), problem.pairs)
        if not inner.any() and _least_classes(problem) == len(inner):
            raise NotApplicableError(f"{_REFUSAL}none")
        removed, network = sum_out(problem.flat, inner) if inner.any() else ([], problem.flat)
        tables = tables_by_shape(network)
        labels = np.full(len(inner), -1, dtype=np.int64)
        labels[~inner] = np.unique(exchangeable_classes(tables, network.states)[~inner], return_inverse=True)[1]
        left, count = len(inner) - len(removed), int(labels.max(initial=-1)) + 1
        if count == left:
            raise NotApplicableError(f"{_REFUSAL}none of more than two neighbours")
        if count > MAX_CLASSES:
            raise NotApplicableError(
                f"at most {MAX_CLASSES} classes of exchangeable variables, and this model has {count}"
            )
        return cls(problem, classes_of(labels, tables, network.states), removed, network.constant)

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Whether elimination needs no help, or too few variables can be alike, which is seen before any table."""
        size, pairs = len(problem.cardinalities), problem.pairs
        degrees = np.bincount(pairs.ravel(), minlength=size)
        left = degrees > MAX_NEIGHBOURS
        count = int(left.sum())
        least = max(2, count - MAX_CLASSES)  # of variables that are worth being merged
        if (degrees >= MIN_DEGREE).sum() < least:
            return True
        if count < size:
            pairs = pairs_without(inner_variables(size, pairs), pairs)
            if (np.bincount(pairs.ravel(), minlength=size) >= MIN_DEGREE).sum() < least:
                return True
        if count <= SAMPLE:
            return False
        chosen = np.zeros(size, dtype=bool)
        chosen[np.random.default_rng(0).choice(np.flatnonzero(left), SAMPLE, replace=False)] = True
        return least_classes(pairs, np.ones(len(pairs)), chosen) > MAX_CLASSES

    def memory(self, *, marginals: bool) -> int:
        """The tables over counts, what their elimination takes, and the compositions."""
        if not self.complete:
            return 8 * self.count_order.least_entries
        kept = self.count_order.entries if marginals else 0.0
        cliques = 2 * 2.0 ** min(self.count_order.log2_largest, 1000.0) + kept
        return 8 * (self.entries + int(cliques) + 5 * self.count_entries)

    @cached_property
    def counts(self) -> list[IntArray]:
        """(compositions, states) of each class."""
        return [compositions(n, k) for n, k in zip(self.classes.sizes, self.classes.states, strict=True)]

    def _count_tree(self) -> BucketTree:
        """The elimination of the classes' compositions."""

        def tables() -> Iterator[tuple[Scope, FloatArray]]:
            for c, counts in enumerate(self.counts):
                yield (c,), log_multiplicities(counts)
            for table in self.classes.tables:
                yield tuple(dict.fromkeys(table.classes)), log_weights(table, [self.counts[c] for c in table.classes])

        network = merge_tables(tuple(map(len, self.counts)), tables(), self.constant)
        return BucketTree(NetworkProblem(network, self.problem.name), self.count_order)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Eliminates the counts; a variable's probabilities are its class's expected counts, over its size."""
        tree = self._count_tree()
        log_z, flat = tree.solve(marginals=marginals)
        if flat is None:
            return log_z, None
        single = split(flat, tuple(map(len, self.counts)))
        means = [p @ counts / n for p, counts, n in zip(single, self.counts, self.classes.sizes, strict=True)]
        found = [means[c] if c >= 0 else np.empty(0) for c in self.classes.labels.tolist()]
        joint = tree.joint_tables() if self.inner else {}
        states: dict[Scope, FloatArray] = {(c,): mean for c, mean in enumerate(means)} | {(): np.ones(())}
        inner_means: dict[tuple[Scope, int], FloatArray] = {}  # thousands of inner variables share their conditionals
        for v, neighbours, conditional in self.inner:
            classes = tuple(self.classes.labels[list(neighbours)].tolist())
            if (classes, id(conditional)) not in inner_means:
                if classes not in states:
                    states[classes] = self._pair_states(classes, joint)
                inner_means[classes, id(conditional)] = np.tensordot(states[classes], conditional, axes=len(classes))
            found[v] = inner_means[classes, id(conditional)]
        return log_z, np.concatenate(found)

    def _pair_states(self, classes: Scope, joint: dict[Scope, FloatArray]) -> FloatArray:
        """(K, K') joint probabilities of two different variables of these classes, from those of compositions."""
        first, second = (self.counts[c] / self.classes.sizes[c] for c in classes)
        if classes[0] == classes[1]:
            n, p = self.classes.sizes[classes[0]], joint[classes[:1]]
            return np.asarray((n * first.T @ (p[:, None] * first) - np.diag(p @ first)) / (n - 1))
        ascending = joint[tuple(sorted(classes))]
        return np.asarray(first.T @ (ascending if classes[0] < classes[1] else ascending.T) @ second)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the counts, then which variables of a class are in which state, then the inner variables."""
        drawn = self._count_tree().sample(count, rng)
        states = np.empty((count, len(self.classes.labels)), dtype=np.int64)
        for c, counts in enumerate(self.counts):
            members = np.flatnonzero(self.classes.labels == c)
            ranks = rng.random((count, len(members))).argsort(axis=1).argsort(axis=1)
            ends = np.cumsum(counts[drawn[:, c]], axis=1)
            states[:, members] = (ranks[:, :, None] >= ends[:, None, :-1]).sum(axis=2)
        for v, neighbours, conditional in self.inner:
            given = conditional[tuple(states[:, u] for u in neighbours)]
            states[:, v] = draw_states(given.reshape(-1, conditional.shape[-1]).T, count, rng)
        return states


def _least_classes(problem: Problem) -> int:
    """A lower bound that is had at once, for finite couplings of binary variables; 0 for other models."""
    try:
        pairwise = problem.pairwise
    except NotApplicableError:
        return 0
    return least_classes(pairwise.edges, pairwise.couplings, np.ones(pairwise.size, dtype=bool))
