"""Bucket elimination in compiled code: plain sums, or logarithms where those may underflow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.exact import buckets, tree_kernels
from spinbench.backends.numba.exact.order_search import search_order
from spinbench.reference.bucket_tree import BucketTree
from spinbench.reference.elimination import Elimination
from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.order import Order
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError

_SAMPLES = 2**22  # states drawn at once


class CompiledTree(Elimination):
    """In compiled code, no table stored."""

    entry_seconds = 6e-9
    variable_seconds = 1.5e-6

    def __init__(self, problem: Problem, order: Order) -> None:
        super().__init__(problem, order)
        self.seconds += 3e-5
        if order.complete:
            self.flat = problem.flat

    @staticmethod
    def _search(problem: Problem) -> Order:
        return search_order(problem.flat)

    @cached_property
    def _plan(self) -> tuple[tuple[IntArray, ...], IntArray, IntArray]:
        """states, start, scope, bucket and held as in `buckets`; offset; and the largest sizes (7,)."""
        plan = buckets
        n, tables = self.flat.states.size, self.flat.start.size - 1
        position = np.empty(n, dtype=np.int64)
        position[self.order.order] = np.arange(n)
        start = np.concatenate([self.flat.start, np.empty(n, dtype=np.int64)])
        used, scope = 4 * n + self.flat.scope.size, np.empty(0, dtype=np.int64)
        while used > scope.size:
            scope = np.empty(used, dtype=np.int64)
            scope[: self.flat.scope.size] = position[self.flat.scope]
            used = plan.separators(tables, start, scope, np.empty(n, np.int64), np.empty(n + tables, np.int64))
        states = self.flat.states[self.order.order]
        bucket, held = np.empty(n + 1, dtype=np.int64), np.empty(n + tables, dtype=np.int64)
        plan.fill_buckets(start, scope, bucket, held)
        message, most = np.empty(n), np.empty(7, dtype=np.int64)
        plan.room(tables, states, start, scope, bucket, held, message, most)
        offset = np.concatenate([self.flat.offset, self.flat.offset[-1] + np.cumsum(message).astype(np.int64)])
        return (states, start, scope, bucket, held), offset, most

    def _memory(self, marginals: bool) -> int:
        """All messages, once more for marginals, and room for a bucket at work."""
        if not self.flat.states.size:
            return 0
        (_, start, scope, *_), offset, most = self._plan
        values = int(self.flat.offset[-1])
        messages = int(offset[-1]) - values
        axes, pieces, patterns, block, base, states, small = map(int, most)
        work = pieces * (axes + 5) + patterns * block + 2 * base + 2 * block + small + axes * (states + 4)
        return 8 * (4 * values + messages * (2 if marginals else 1) + work + 8 * len(start) + len(scope))

    def _room(self) -> tuple[npt.NDArray[Any], ...]:
        """Room for a bucket at work, in the order in which the kernels take it."""
        axes, pieces, patterns, block, base, states, small = map(int, self._plan[2])
        n = self.flat.states.size
        return (
            np.empty(n, dtype=np.int64),
            np.empty(axes, dtype=np.int64),
            np.empty(small),
            np.empty(axes + 1, dtype=np.int64),
            np.empty(axes),
            np.empty((pieces, 5), dtype=np.int64),
            np.empty((pieces, axes), dtype=np.int64),
            np.empty((patterns, block), dtype=np.uint64),
            np.empty(block, dtype=np.uint64),
            np.empty(base),
            np.empty(block),
            np.empty(axes, dtype=np.int64),
            np.empty((axes, states)),
            np.empty(n),
        )

    def fallbacks(self) -> Iterator[Solver]:
        """The same elimination in logarithms."""
        yield BucketTree(self.problem, self.order)

    def _forward(self) -> tuple[float, tuple[npt.NDArray[Any], ...]]:
        """log Z, and what the kernels take.

        Raises:
            PrecisionError: plain sums might underflow.
        """
        if not self.flat.states.size:
            return self.flat.constant, ()
        values, reach, taken = self.flat.linear()
        plan, offset, _ = self._plan
        store = np.empty(int(offset[-1]))
        store[: values.size] = values
        shared = (*plan, store, offset, np.concatenate([reach, np.empty(self.flat.states.size)]), *self._room())
        log_z: float = tree_kernels.forward(*shared)
        if log_z == -math.inf:
            raise ZeroWeightError
        if math.isnan(log_z):
            raise PrecisionError("its factors are too strong for plain sums in float64")
        return log_z + taken + self.flat.constant, shared

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all buckets, and back for marginals."""
        log_z, shared = self._forward()
        if not marginals or not shared:
            return log_z, np.empty(0) if marginals else None
        _, offset, most = self._plan
        prior = np.empty(int(offset[-1] - self.flat.offset[-1]))
        at = np.cumsum(self.flat.states)
        flat = np.empty(int(at[-1]))
        tree_kernels.backward(*shared, prior, np.empty(int(most[4])), flat, (at - self.flat.states)[self.order.order])
        return log_z, flat

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Each variable given those eliminated after it, many draws at a time."""
        _, shared = self._forward()
        n = self.flat.states.size
        states = np.empty((count, n), dtype=np.int64)
        if not n:
            return states
        chunk = max(1, min(count, _SAMPLES // n, 512))
        weights = np.empty((int(self.flat.states.max()), chunk))
        for begin in range(0, count, chunk):
            many = min(chunk, count - begin)
            drawn = np.empty((n, many), dtype=np.int64)
            tree_kernels.draw(*shared[:15], rng.random((n, many)), weights, drawn)
            states[begin : begin + many, self.order.order] = drawn.T
        return states
