"""Host tables for methods that pass messages or ascend coordinate by coordinate on factor graphs.

A model is *lowered* first (`graphs.lowering`): states that hard zeros rule out (generalised arc consistency)
disappear, and with them variables of one state; a 1-of-K group becomes one variable of K states; factors of order 1
go into the variables. What is left has finite messages, whatever zeros its tables hold.

A variable of K states has K - 1 *rows*, the log ratios of its states 1, …, K - 1 to state 0. Beliefs, fields and
messages are vectors over rows; a message of a factor to a variable has as many entries as the variable has rows. All
messages stand in one vector: first those of the pairs to their first ends, then to their second ends, then those of
each group, slot by slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# {shape (K_1, …, K_d): (variables (n, d), log tables (n, K_1, …, K_d))}.
Scopes = dict[tuple[int, ...], tuple[IntArray, FloatArray]]


class Pairs(NamedTuple):
    """Factors exp(w x_i x_j) of binary variables.

    Attributes:
        weights: (E,) float64, w.
        rows: (2, E) int64, rows of i and of j.
        neutral: (2, E) float64, the messages to i and to j that say nothing: uniform ones with the factor's table as
            it was given, w / 2 in a pairwise model, where that makes the choice of the states' names irrelevant.
    """

    weights: FloatArray
    rows: IntArray
    neutral: FloatArray


class Group(NamedTuple):
    """Factors of one shape.

    Attributes:
        log_tables: (n, K_1, …, K_d) float64, the largest entry of each factor 0, -inf at zeros.
        rows: (d, n) int64, the first row of each variable.
    """

    log_tables: FloatArray
    rows: IntArray


class Graph(NamedTuple):
    """A lowered model: p(x) = exp(constant + Σ_v theta_v(x_v) + Σ_f log_table_f(x_f)) / Z, theta_v(0) = 0.

    Attributes:
        theta: (R,) float64, by rows.
        pairs: pair factors of binary variables without zeros; what depends on one variable alone is in theta.
        groups: all other factors.
        constant: () float64.
        first: (n,) int64, the first row of each variable, all of two states or more.
        readout: int64, indices into (probabilities of all states of all variables, 0, 1): p(s = 1) of each
            variable of the model where all are binary, else p of each state of each variable.
        source: (R,) int64, the variable of the model whose start decides the start of a row.
        aim: (R,) int64, the state of that variable with which the row starts high.
        floor: () float64, what a message says of a state at least, relative to its likeliest: it stands for log 0, far
            below what finite weights can say. On loops, what zeros exclude would otherwise grow without end.
    """

    theta: FloatArray
    pairs: Pairs
    groups: tuple[Group, ...]
    constant: FloatArray
    first: IntArray
    readout: IntArray
    source: IntArray
    aim: IntArray
    floor: FloatArray

    @property
    def cardinalities(self) -> IntArray:
        """(n,) number of states."""
        return np.diff(np.append(self.first, len(self.theta))) + 1

    @property
    def variable(self) -> IntArray:
        """(R,) the variable of each row."""
        return np.repeat(np.arange(len(self.first)), self.cardinalities - 1)


class Incidence(NamedTuple):
    """Which messages reach which row.

    Attributes:
        target: (M,) int64, the row of each message entry.
        buckets: rows of similar degree: (n, width) int64 message entries, M where there are fewer.
        place: (R,) int64, position of a row in the concatenation of the buckets and a zero.
    """

    target: IntArray
    buckets: tuple[IntArray, ...]
    place: IntArray


def factors(graph: Graph) -> tuple[Group, ...]:
    """All factors in the order of their messages: the pairs, if any, as a group of shape (2, 2), then the groups.

    Of a pair's table the largest entry need not be 0.
    """
    if not len(graph.pairs.weights):
        return graph.groups
    tables = np.zeros((len(graph.pairs.weights), 2, 2))
    tables[:, 1, 1] = graph.pairs.weights
    return Group(tables, graph.pairs.rows), *graph.groups


def scopes(graph: Graph) -> Scopes:
    """All factors by shape, pairs among those of shape (2, 2), over the variables of the graph."""
    variable = graph.variable
    by_shape: Scopes = {}
    for group in factors(graph):
        shape, members = group.log_tables.shape[1:], variable[group.rows.T]
        tables = group.log_tables
        if shape in by_shape:
            members, tables = (
                np.concatenate([by_shape[shape][0], members]),
                np.concatenate([by_shape[shape][1], tables]),
            )
        by_shape[shape] = members, tables
    return by_shape


def incidence(graph: Graph) -> Incidence:
    """The index tables of message passing."""
    parts = [graph.pairs.rows.ravel()]
    for group in graph.groups:
        for rows, size in zip(group.rows, group.log_tables.shape[1:], strict=True):
            parts.append((rows[:, None] + np.arange(size - 1)).ravel())
    target = np.concatenate(parts)
    count = len(graph.theta)
    degree = np.bincount(target, minlength=count)
    start = np.cumsum(degree) - degree
    entries = np.append(np.argsort(target, kind="stable"), len(target))
    # Widths are powers of two: rows are padded to at most twice their degree, and few shapes have to be compiled.
    width = np.where(degree > 0, 2 ** np.ceil(np.log2(np.maximum(degree, 1))).astype(np.int64), 0)
    place = np.full(count, (width > 0).sum(), dtype=np.int64)
    buckets, filled = [], 0
    for w in np.unique(width[width > 0]).tolist():
        rows = np.flatnonzero(width == w)
        window = np.arange(w)
        present = window < degree[rows, None]
        buckets.append(entries[np.where(present, start[rows, None] + window, len(target))])
        place[rows] = filled + np.arange(len(rows))
        filled += len(rows)
    return Incidence(target, tuple(buckets), place)


def marginals(graph: Graph, model: Model, probabilities: FloatArray) -> FloatArray | list[FloatArray]:
    """What `Estimate.marginals` holds, from the probabilities (S,) of all states of the graph's variables."""
    values = np.append(probabilities, [0.0, 1.0])[graph.readout]
    if all(k == 2 for k in model.cardinalities):
        return values
    return np.split(values, np.cumsum(model.cardinalities)[:-1])
