"""A model of classes of exchangeable variables as one over their counts: how many of each class are in which state."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from spinbench.reference.exchangeable.symmetry import Tables
from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.problem import NotApplicableError


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
    # of size + states - 1 places in a row, those that end a state's part
    ends = itertools.chain.from_iterable(itertools.combinations(range(size + states - 1), states - 1))
    bars = np.fromiter(ends, dtype=np.int64).reshape(-1, states - 1)
    return np.asarray(np.diff(bars, axis=1, prepend=-1, append=size + states - 1) - 1)


def log_multiplicities(counts: IntArray) -> FloatArray:
    """(compositions,) log of the number of states of a class that have these counts."""
    from scipy.special import gammaln

    return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))


def log_weights(table: ClassTable, counts: list[IntArray]) -> FloatArray:
    """The sum of a table over all tuples of its classes, for all compositions: (compositions of each class).

    Args:
        table: of several classes, of one, or of the pairs within one.
        counts: (compositions, states) of each axis.
    """
    zero = np.isneginf(table.log_table)
    finite = _contract(np.where(zero, 0.0, table.log_table), table.classes, counts)
    # a hard zero counts only where some tuple is in that state, so it is never multiplied
    if zero.any():
        finite[_contract(zero.astype(np.float64), table.classes, counts) > 0] = -np.inf
    return finite


def _contract(table: FloatArray, classes: Scope, counts: list[IntArray]) -> FloatArray:
    if len(set(classes)) < len(classes):
        within = counts[0].astype(np.float64)
        return np.asarray(((within @ table * within).sum(axis=1) - within @ np.diagonal(table)) / 2)
    for axis in counts:
        table = np.tensordot(table, axis.astype(np.float64), axes=(0, 1))  # the next axis comes first
    return table
