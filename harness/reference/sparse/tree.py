"""Exact answers by elimination over what hard zeros leave possible: forward, the way back to marginals, and draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spinbench.foundation import deadline
from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.orders.order import Order, elimination_order
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError
from spinbench.reference.sparse.prediction import Size, estimate_size
from spinbench.reference.sparse.tables import (
    AnyInts,
    Table,
    TooManyError,
    growth,
    product,
    sum_out,
    table_of,
)

# Bytes of a row: its probability, its row in the parent, and the product it came from; 40 to 45 at 2^26 to 2^28 rows.
BYTES = 48
# Seconds per state of a variable in a row, and per variable, with marginals. On 9 models of UAI-2006 and UAI-2014 that
# take 0.1 to 4 s, measured over predicted time is 0.7 to 1.5.
_STATE_SECONDS, _VARIABLE_SECONDS = 2.3e-9, 8e-5
# An elimination ends after so many times its predicted seconds, and this many at least: where the states that estimates
# try contradict each other, as for independent sets of a 60 x 60 grid, the prediction of years is one of seconds.
OVERRUN, MIN_LIMIT_SECONDS = 20.0, 10.0
# Numbers in a block of draws, so that each of its arrays takes 8 MB, however many draws there are.
_DRAWN = 2**20


class Bucket(NamedTuple):
    """Of one variable.

    Attributes:
        states: (N,) of the variable, in each row.
        above: (N,) the row of its message to which each row adds up.
        conditional: (N,) its share of that row.
        links: buckets whose messages it takes, and (N,) the row of each.
    """

    states: AnyInts
    above: AnyInts
    conditional: FloatArray
    links: tuple[tuple[int, AnyInts], ...]


class Eliminated(NamedTuple):
    """All buckets, by their variables.

    Attributes:
        log_z: the sum.
        order: (n,) in which they were eliminated.
        cards: (n,) numbers of states.
        buckets: (n,) in the order of the variables.
        rows: in all.
    """

    log_z: float
    order: list[int]
    cards: tuple[int, ...]
    buckets: list[Bucket]
    rows: int


class Limits(NamedTuple):
    """Of an elimination: rows of all buckets together, and when the clock `deadline.now` says that it is too late."""

    max_rows: float
    end: float = math.inf


def eliminate(
    tables: Mapping[Scope, FloatArray],
    constant: float,
    cards: Sequence[int],
    order: Iterable[int],
    limits: Limits,
) -> Eliminated:
    """The sum over all variables.

    Args:
        tables: log tables by their scopes.
        constant: added to their sum.
        cards: numbers of states.
        order: all variables, those first that are eliminated first.
        limits: of rows, and of time.

    Raises:
        TooManyError: there would be more rows, or it is too late.
        ZeroWeightError: no state has positive weight.
    """
    listed = list(order)
    place = {v: k for k, v in enumerate(listed)}
    tables_of_bucket: list[list[Table]] = [[] for _ in listed]
    for scope, log_table in tables.items():
        tables_of_bucket[min(place[v] for v in scope)].append(table_of(scope, log_table))
    none = np.empty(0, dtype=np.int64)
    buckets: list[Bucket] = [Bucket(none, none, np.empty(0), ())] * len(listed)
    left = limits.max_rows
    for k, v in enumerate(listed):
        deadline.check()
        if deadline.now() > limits.end:
            raise TooManyError
        table = _multiply_tables(tables_of_bucket[k] or [table_of((v,), np.zeros(cards[v]))], cards, left)
        left -= len(table.logs)
        if left < 0:
            raise TooManyError
        message, above, conditional = sum_out(table, v, v, cards)
        buckets[v] = Bucket(table.states[table.scope.index(v)], above, conditional, table.links)
        tables_of_bucket[k] = []
        if message.scope:
            tables_of_bucket[min(place[u] for u in message.scope)].append(message)
        else:
            constant += float(message.logs[0])
    rows = sum(len(bucket.states) for bucket in buckets)
    return Eliminated(constant, listed, tuple(cards), buckets, rows)


def _multiply_tables(tables: list[Table], cards: Sequence[int], max_rows: float) -> Table:
    """The product, beginning with the largest table, always with what makes least of it."""
    rest = sorted(tables, key=lambda table: len(table.logs))
    merged = rest.pop()
    while rest:
        other = min(rest, key=lambda table: growth(merged, table, cards))
        rest = [table for table in rest if table is not other]
        merged = product(merged, other, cards, max_rows)
    if not len(merged.logs):
        raise ZeroWeightError
    return merged


def marginals_of(done: Eliminated) -> list[FloatArray]:
    """(K,) of each variable."""
    marginals: list[FloatArray] = [np.empty(0)] * len(done.cards)
    priors: dict[int, FloatArray] = {}
    for v in reversed(done.order):
        bucket = done.buckets[v]
        belief = bucket.conditional
        if v in priors:
            belief = bucket.conditional * priors.pop(v)[bucket.above]
        marginals[v] = _sum_by_place(bucket.states, belief, done.cards[v]) / belief.sum()
        for child, rows in bucket.links:
            priors[child] = _sum_by_place(rows, belief, int(done.buckets[child].above.max()) + 1)
    return marginals


def _sum_by_place(places: AnyInts, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(places, values, minlength=size), dtype=np.float64)


class Drawer:
    """Exact independent draws."""

    def __init__(self, done: Eliminated) -> None:
        self._done = done
        self._sorted_buckets = [_SortedBucket(bucket) for bucket in done.buckets]

    def draw(self, uniform: FloatArray) -> IntArray:
        """(n, count) states, from uniform numbers (n, count): each variable given those eliminated after it."""
        states = np.empty(uniform.shape, dtype=np.int64)
        separator_rows: dict[int, AnyInts] = {}
        none = np.zeros(uniform.shape[1], dtype=np.int64)
        for v in reversed(self._done.order):
            bucket = self._done.buckets[v]
            row = self._sorted_buckets[v].row(separator_rows.pop(v, none), uniform[v])
            states[v] = bucket.states[row]
            separator_rows |= {child: rows[row] for child, rows in bucket.links}
        return states


class _SortedBucket:
    """The rows of a bucket by the rows of its message."""

    def __init__(self, bucket: Bucket) -> None:
        self.order = np.argsort(bucket.above, kind="stable")
        self.ends = np.cumsum(np.bincount(bucket.above))
        self.shares = np.cumsum(bucket.conditional[self.order])

    def row(self, above: AnyInts, uniform: FloatArray) -> AnyInts:
        """One of those that add up to a row of the message."""
        end = self.ends[above]
        begin = np.where(above > 0, self.ends[above - 1], 0)
        low = np.where(begin > 0, self.shares[begin - 1], 0.0)
        target = low + uniform * (self.shares[end - 1] - low)
        # The cumulative sums run over all rows; rounding may lead to a row outside the requested range.
        at = np.clip(np.searchsorted(self.shares, target, side="right"), begin, end - 1)
        return np.asarray(self.order[at])


class SparseTree(Solver):
    """Along an order that was found for whole tables, where these are too large.

    How many rows are left is estimated, and looked at on the way, too.
    """

    name = "bucket_tree"
    detail = " over what its zeros leave possible"

    def __init__(self, problem: Problem, order: Order) -> None:
        self.problem, self.order, self.width = problem, order, order.width
        self.complete = order.complete
        self.seconds = _STATE_SECONDS * order.entries

    @classmethod
    def build(cls, problem: Problem) -> SparseTree:
        """Along the best order found."""
        if not has_zeros(problem):
            raise NotApplicableError("hard zeros, and this model has none")
        return cls(problem, elimination_order(problem.cardinalities, problem.pairs))

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the estimated size."""
        return _STATE_SECONDS * self._size.states + _VARIABLE_SECONDS * len(self.problem.cardinalities)

    def memory(self, *, marginals: bool) -> int:
        """Of the rows: estimated, and once it is done, counted."""
        rows = self._elimination.rows if "_elimination" in self.__dict__ else self._size.rows
        return BYTES * int(min(rows, 2.0**60))

    @cached_property
    def _size(self) -> Size:
        network = self.problem.network
        return estimate_size(network.tables, network.cardinalities, self.order.order.tolist())

    @cached_property
    def _elimination(self) -> Eliminated:
        network, order = self.problem.network, self.order.order.tolist()
        seconds = max(MIN_LIMIT_SECONDS, OVERRUN * self.predict_seconds(marginals=True))
        limits = Limits(self.most_bytes / BYTES, deadline.now() + min(self.most_seconds, seconds))
        try:
            return eliminate(network.tables, network.constant, network.cardinalities, order, limits)
        except TooManyError:
            raise PrecisionError("what its zeros leave possible takes more memory or time than is allowed") from None

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all buckets, and back for marginals."""
        done = self._elimination
        if not marginals:
            return done.log_z, None
        return done.log_z, np.concatenate([np.empty(0), *marginals_of(done)])

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Each variable given those eliminated after it, many draws at a time."""
        drawer, n = Drawer(self._elimination), len(self.problem.cardinalities)
        states = np.empty((count, n), dtype=np.int64)
        chunk = max(1, _DRAWN // max(n, 1))
        for begin in range(0, count, chunk):
            many = min(chunk, count - begin)
            states[begin : begin + many] = drawer.draw(rng.random((n, many))).T
        return states


def has_zeros(problem: Problem) -> bool:
    """Whether any entry of a table is a hard zero."""
    return bool(np.isneginf(problem.flat.values).any())
