"""Exact answers by elimination over what hard zeros leave possible."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.orders.order import Order, elimination_order
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, Solver
from spinbench.reference.sparse.arrays import ON_ARRAYS
from spinbench.reference.sparse.buckets import BYTES, Drawer, Eliminated, Limits, eliminate, marginals_of
from spinbench.reference.sparse.tables import Loops, TooManyError

_THINNED = 2.0**10
"""Times as many entries as rows of a table: of an order with more, most likely, too many rows are left."""
_ROW = 1e-7  # seconds
_DRAWN = 2**20  # states drawn at once


class SparseTree(Solver):
    """Along an order that was found for whole tables, where these are too large.

    How many rows are left shows only while they are made, and so does whether memory is enough for them: it is looked
    at on the way.
    """

    name = "bucket_tree"

    def __init__(self, problem: Problem, order: Order, loops: Loops = ON_ARRAYS) -> None:
        self.problem, self.order, self.width, self.loops = problem, order, order.width, loops
        self.complete = order.complete
        self.seconds = _ROW * order.entries

    @classmethod
    def build(cls, problem: Problem) -> SparseTree:
        """Along the best order found."""
        if not has_zeros(problem):
            raise NotApplicableError("hard zeros, and this model has none")
        return cls(problem, elimination_order(problem.cardinalities, problem.pairs))

    def predict_seconds(self, *, marginals: bool) -> float:
        """Of all the rows that memory has room for; of whole tables where there is no hope."""
        rows = self._most_rows if self._hopeful else math.inf
        return _ROW * min(self.order.entries, rows)

    @property
    def _hopeful(self) -> bool:
        return self.order.entries <= _THINNED * self._most_rows

    def memory(self, *, marginals: bool) -> int:
        """Nothing yet, or that of whole tables where there is no hope; once it is done, that of the rows."""
        if "_eliminated" in self.__dict__:
            return BYTES * self._eliminated.rows
        entries = int(min(self.order.entries, 2.0**60))
        return 0 if self._hopeful else 8 * entries

    @property
    def _most_rows(self) -> float:
        return self.most_bytes / BYTES

    @cached_property
    def _eliminated(self) -> Eliminated:
        network, order = self.problem.network, self.order.order.tolist()
        limits = Limits(self._most_rows)
        try:
            return eliminate(network.tables, network.constant, network.cardinalities, order, limits, self.loops)
        except TooManyError:
            raise PrecisionError("even what its zeros leave possible takes more memory than is allowed") from None

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all buckets, and back for marginals."""
        done = self._eliminated
        return done.log_z, np.concatenate([np.empty(0), *marginals_of(done)]) if marginals else None

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Each variable given those eliminated after it, many draws at a time."""
        drawer, n = Drawer(self._eliminated), len(self.problem.cardinalities)
        states = np.empty((count, n), dtype=np.int64)
        chunk = max(1, _DRAWN // max(n, 1))
        for begin in range(0, count, chunk):
            many = min(chunk, count - begin)
            states[begin : begin + many] = drawer.draw(rng.random((n, many))).T
        return states


def has_zeros(problem: Problem) -> bool:
    """Whether any entry of a table is a hard zero."""
    return bool(np.isneginf(problem.flat.values).any())
