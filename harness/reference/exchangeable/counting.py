"""Exact sums over the counts of exchangeable variables ("lifted" inference), any model that has some.

n exchangeable variables of K states have C(n + K - 1, K - 1) compositions, count vectors that say how many of them are
in which state, instead of K^n states. The composition of each class becomes one variable, with the log of the
multinomial coefficient as its own table; a variable that is like no other is a class of one. What is left is a smaller
factor graph, which elimination sums. Niepert and Van den Broeck, "Tractability through exchangeability", AAAI 2014;
Milch, Zettlemoyer, Kersting, Haimes, Kaelbling, "Lifted probabilistic inference with counting formulas", AAAI 2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.exchangeable.symmetry import (
    MAX_NEIGHBOURS,
    InnerVariable,
    Tables,
    exchangeable_classes,
    inner_variables,
    least_classes,
    pairs_without,
    sum_out,
    tables_by_shape,
)
from spinbench.reference.network import FloatArray, IntArray, Scope, flat_network, merge_tables, split
from spinbench.reference.orders.order import ENTRY_SECONDS, elimination_order, first_order, pairs_of
from spinbench.reference.problem import NetworkProblem, NotApplicableError, Problem
from spinbench.reference.solver import Solver, draw_states

# Degree from which counting may beat elimination: a binary variable with fewer neighbours is eliminated in 2^8 entries;
# and log2 of the entries that make up for a lower one, of variables of many states.
MIN_DEGREE, MIN_BITS = 8, 20
# Largest number of classes, whose elimination order is found in about a second.
MAX_CLASSES = 2000
# Number of variables up to which an elimination order is found in milliseconds.
FEW = 200
# Seconds per variable of comparing all of them: 13 ms for the 67 of CSP_12. A shorter elimination is preferred.
COMPARISON_SECONDS = 1e-4
# Measured over predicted seconds of `BucketTree` on tables of counts: 1.6 to 2.2 on networks of UAI-2006, whose cliques
# have some 20 axes of two compositions.
SUM_RATIO = 1.7
# Seconds per number of a composition, which Python makes one by one.
COUNT_SECONDS = 8e-8
# log2 of the most entries of a variable's table with its neighbours where it is summed out: more take seconds.
MAX_INNER_BITS = 22

_REFUSAL = "exchangeable variables, and this model has "


class ClassTable(NamedTuple):
    """The table that all tuples of variables of some classes share.

    Attributes:
        classes: of each axis; twice the same for the pairs within a class.
        log_table: over the states of one such tuple.
    """

    classes: Scope
    log_table: FloatArray


class Classes(NamedTuple):
    """Which variables are exchangeable, and what the model looks like from there.

    Attributes:
        labels: (n,) the class of each variable, -1 for those that are in none.
        sizes: (C,) variables of each class.
        states: (C,) states of each of its variables.
        tables: one for all tuples of the same classes.
    """

    labels: IntArray
    sizes: tuple[int, ...]
    states: tuple[int, ...]
    tables: list[ClassTable]


def classes_of(labels: IntArray, tables: list[Tables], states: IntArray) -> Classes:
    """The classes and their tables, one of each scope being given.

    Raises:
        NotApplicableError: some tuples of the same classes have a table, and others none.
    """
    sizes = tuple(np.bincount(labels[labels >= 0]).tolist())
    members = np.zeros(len(sizes), dtype=np.int64)
    members[labels[labels >= 0]] = np.flatnonzero(labels >= 0)
    # Sums of random codes identify the classes of a tuple in any order.
    code = np.random.default_rng(0).integers(0, 2**64, len(sizes), dtype=np.uint64)
    shared: dict[Scope, ClassTable] = {}
    tuples: dict[Scope, int] = {}
    for scopes, logs in tables:
        in_classes = labels[scopes]
        _, firsts, counts = np.unique(code[in_classes].sum(axis=1), return_index=True, return_counts=True)
        for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
            classes = tuple(in_classes[first].tolist())
            key = tuple(sorted(classes))
            shared.setdefault(key, ClassTable(classes, logs[first]))
            tuples[key] = tuples.get(key, 0) + count
    if any(count != _num_tuples(key, sizes) for key, count in tuples.items()):
        raise NotApplicableError("tables between all variables of two classes or between none, and this model differs")
    return Classes(labels, sizes, tuple(states[members].tolist()), list(shared.values()))


def _num_tuples(classes: Scope, sizes: tuple[int, ...]) -> int:
    """Of different variables, one of each of these classes."""
    return math.prod(math.comb(sizes[c], classes.count(c)) for c in set(classes))


def num_compositions(size: int, states: int) -> int:
    """Ways in which `size` variables are distributed to states."""
    return math.comb(size + states - 1, size)


def compositions(size: int, states: int) -> IntArray:
    """(`num_compositions`, states) how many variables are in each state."""
    # stars and bars: of size + states - 1 places, those of the bars between states
    ends = itertools.chain.from_iterable(itertools.combinations(range(size + states - 1), states - 1))
    bars = np.fromiter(ends, dtype=np.int64).reshape(-1, states - 1)
    return np.asarray(np.diff(bars, axis=1, prepend=-1, append=size + states - 1) - 1)


def log_multiplicities(counts: IntArray) -> FloatArray:
    """(compositions,) log of the number of states of a class that have these counts."""
    size = int(counts[0].sum())
    # SciPy's gammaln would take 0.3 s to import.
    log_factorials = np.array([math.lgamma(k + 1) for k in range(size + 1)])
    return np.asarray(log_factorials[size] - log_factorials[counts].sum(axis=1))


def log_weights(table: ClassTable, counts: list[IntArray]) -> FloatArray:
    """The sum of a table over all tuples of its classes, for all compositions: (compositions of each class).

    Args:
        table: of several classes, of one, or of the pairs within one.
        counts: (compositions, states) of each axis.
    """
    zero = np.isneginf(table.log_table)
    finite = _contract(np.where(zero, 0.0, table.log_table), table.classes, counts)
    # a hard zero only counts where some tuple is in its state: multiplying it by a count of 0 would give NaN
    if zero.any():
        finite[_contract(zero.astype(np.float64), table.classes, counts) > 0] = -np.inf
    return finite


def _contract(table: FloatArray, classes: Scope, counts: list[IntArray]) -> FloatArray:
    if len(set(classes)) < len(classes):
        within = counts[0].astype(np.float64)
        # Each pair is counted twice, and pairs of a variable with itself are subtracted.
        return np.asarray(((within @ table * within).sum(axis=1) - within @ np.diagonal(table)) / 2)
    for axis in counts:
        # Contracts the first axis; the next one becomes the first.
        table = np.tensordot(table, axis.astype(np.float64), axes=(0, 1))
    return table


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
        self.seconds = self.predict_seconds(marginals=True)

    @classmethod
    def build(cls, problem: Problem) -> Exchangeable:
        """Applies where some variables are exchangeable once those of at most two neighbours are summed out."""
        inner = inner_variables(len(problem.cardinalities), problem.pairs)
        view = problem.pairwise_view
        # A lower bound on the classes, in a few passes over the edges, before tables are hashed.
        if not inner.any() and view is not None and least_classes(view) == len(inner):
            raise NotApplicableError(f"{_REFUSAL}none")
        removed: list[InnerVariable] = []
        flat = problem.flat
        bits = np.log2(flat.states)
        bits += np.bincount(problem.pairs.ravel(), bits[problem.pairs[:, ::-1]].ravel(), len(bits))
        if (bits[inner] > MAX_INNER_BITS).any():
            raise NotApplicableError(
                f"tables of at most 2^{MAX_INNER_BITS} entries where variables are summed out first"
            )
        if inner.any():
            removed, network = sum_out(problem.network, inner)
            flat = flat_network(network)
        tables = tables_by_shape(flat)
        labels = np.full(len(inner), -1, dtype=np.int64)
        labels[~inner] = np.unique(exchangeable_classes(tables, flat.states)[~inner], return_inverse=True)[1]
        left, count = len(inner) - len(removed), int(labels.max(initial=-1)) + 1
        if count == left:
            raise NotApplicableError(f"{_REFUSAL}none of more than two neighbours")
        if count > MAX_CLASSES:
            raise NotApplicableError(
                f"at most {MAX_CLASSES} classes of exchangeable variables, and this model has {count}"
            )
        return cls(problem, classes_of(labels, tables, flat.states), removed, flat.constant)

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Whether elimination needs no help, or too few variables can be alike, which is seen before any table."""
        size, pairs = len(problem.cardinalities), problem.pairs
        degrees = np.bincount(pairs.ravel(), minlength=size)
        count = int((degrees > MAX_NEIGHBOURS).sum())
        # Variables with enough neighbours for merging to pay.
        least = max(2, count - MAX_CLASSES)
        bits = np.log2(problem.cardinalities)
        if ((degrees >= MIN_DEGREE) | ((degrees + 1) * bits >= MIN_BITS)).sum() < least:
            return True
        if count < size:
            pairs = pairs_without(inner_variables(size, pairs), pairs)
            degrees = np.bincount(pairs.ravel(), minlength=size)
            if ((degrees >= MIN_DEGREE) | ((degrees + 1) * bits >= MIN_BITS)).sum() < least:
                return True
        if size > FEW:
            return False
        return ENTRY_SECONDS * first_order(problem.cardinalities, problem.pairs).entries < COMPARISON_SECONDS * size

    def predict_seconds(self, *, marginals: bool) -> float:
        """Of the tables over counts, and of their elimination."""
        if not self.complete:
            return math.inf
        sums = SUM_RATIO * BucketTree.sum_seconds(self.count_order) * (1.0 if marginals else BucketTree.log_z_share)
        tables = min(self.entries, 2**62) * BucketTree.entry_seconds + min(self.count_entries, 2**62) * COUNT_SECONDS
        return 1e-3 + sums + tables + 2e-4 * len(self.classes.sizes) + 1e-5 * len(self.inner)

    def memory(self, *, marginals: bool) -> int:
        """The tables over counts, what their elimination takes, and the compositions."""
        if not self.complete:
            return 8 * self.count_order.least_entries
        stored_entries = self.count_order.entries if marginals else 0.0
        cliques = 2 * 2.0 ** min(self.count_order.log2_largest, 1000.0) + stored_entries
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
        if not marginals:
            return tree.solve(marginals=False)
        pairs = {self._classes_of(each.neighbours) for each in self.inner if len(each.neighbours) == MAX_NEIGHBOURS}
        log_z, flat, joint = tree.solve_with_joint({tuple(sorted(set(classes))) for classes in pairs})
        single = split(flat, tuple(map(len, self.counts)))
        means = [p @ counts / n for p, counts, n in zip(single, self.counts, self.classes.sizes, strict=True)]
        marginals_of_variables = [means[c] if c >= 0 else np.empty(0) for c in self.classes.labels.tolist()]
        states: dict[Scope, FloatArray] = {(c,): mean for c, mean in enumerate(means)} | {(): np.ones(())}
        # Conditionals are cached: thousands of inner variables share them.
        inner_means: dict[tuple[Scope, int], FloatArray] = {}
        for v, neighbours, conditional in self.inner:
            classes = self._classes_of(neighbours)
            if (classes, id(conditional)) not in inner_means:
                if classes not in states:
                    states[classes] = self._pair_states(classes, joint)
                inner_means[classes, id(conditional)] = np.tensordot(states[classes], conditional, axes=len(classes))
            marginals_of_variables[v] = inner_means[classes, id(conditional)]
        return log_z, np.concatenate(marginals_of_variables)

    def _classes_of(self, variables: Scope) -> Scope:
        return tuple(self.classes.labels[list(variables)].tolist())

    def _pair_states(self, classes: Scope, joint: dict[Scope, FloatArray]) -> FloatArray:
        """(K, K') joint probabilities of two different variables of these classes, from those of compositions."""
        first, second = (self.counts[c] / self.classes.sizes[c] for c in classes)
        if classes[0] == classes[1]:
            n, p = self.classes.sizes[classes[0]], joint[classes[:1]]
            # Pairs of a variable with itself, which have equal states, are subtracted.
            return np.asarray((n * first.T @ (p[:, None] * first) - np.diag(p @ first)) / (n - 1))
        ascending = joint[tuple(sorted(classes))]
        return np.asarray(first.T @ (ascending if classes[0] < classes[1] else ascending.T) @ second)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the counts, then which variables of a class are in which state, then the inner variables."""
        compositions = self._count_tree().sample(count, rng)
        states = np.empty((count, len(self.classes.labels)), dtype=np.int64)
        for c, counts in enumerate(self.counts):
            members = np.flatnonzero(self.classes.labels == c)
            # Ranks of random numbers are a random permutation: the lowest ranks get the first state.
            ranks = rng.random((count, len(members))).argsort(axis=1).argsort(axis=1)
            ends = np.cumsum(counts[compositions[:, c]], axis=1)
            states[:, members] = (ranks[:, :, None] >= ends[:, None, :-1]).sum(axis=2)
        for v, neighbours, conditional in self.inner:
            probabilities = conditional[tuple(states[:, u] for u in neighbours)]
            states[:, v] = draw_states(probabilities.reshape(-1, conditional.shape[-1]).T, count, rng)
        return states
