"""Bucket elimination over an array namespace: JAX, PyTorch, CuPy, on the CPU or a GPU."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.orders.order import Order
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinbench.api import Array, Backend


@dataclass(frozen=True)
class ArrayTrees:
    """The kind of solver (`spinbench.reference.solvers.Kind`) that eliminates on a backend's device.

    Attributes:
        backend: of double precision; `spinbench.api.Backend` says what its members do.
    """

    backend: Backend
    can_sample: ClassVar[bool] = True

    def passed_by(self, problem: Problem) -> bool:
        """Never."""
        return False

    def build(self, problem: Problem) -> Solver:
        """For every problem."""
        return ArrayTree(problem, problem.order, self.backend)


class ArrayTree(BucketTree):
    """The passes of `BucketTree`, with its tables on a device and one compiled program a shape of clique."""

    entry_seconds, message_seconds, variable_seconds, log_z_share = 5e-8, 0.0, 3e-4, 1.0

    def __init__(self, problem: Problem, order: Order, backend: Backend) -> None:
        super().__init__(problem, order)
        self.on = backend
        self.backend = backend.name  # type: ignore[misc]

    def _memory(self, marginals: bool) -> int:
        """What `BucketTree` keeps, copies of the tables, and some cliques at work, as nothing is done in place."""
        largest = 8 * int(2.0 ** min(self.order.log2_largest, 60.0))
        return super()._memory(marginals) + 4 * largest + 16 * sum(t.size for t in self.network.tables.values())

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """As NumPy's, in the backend's double precision."""
        with self._scope():
            return super().solve(marginals=marginals)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        with self._scope():
            return super().sample(count, rng)

    def joint_tables(self) -> dict[Scope, FloatArray]:
        with self._scope():
            return super().joint_tables()

    def _scope(self) -> contextlib.AbstractContextManager[object]:
        """JAX's double precision and device; other backends need none."""
        scope: Callable[[], contextlib.AbstractContextManager[object]] = getattr(
            self.on, "scope", contextlib.nullcontext
        )
        return scope()

    def _transpose_table(self, scope: Scope) -> Array:
        return self.on.to_device(np.ascontiguousarray(super()._transpose_table(scope)))

    def _host(self, array: Array) -> FloatArray:
        return np.array(self.on.to_host(array))

    def _sum_axes(self, table: Array, axes: list[int]) -> Array:
        # At once, since what compiles does so for each shape.
        return table.sum(axis=tuple(axes)) if axes else table

    def _eliminate(self, v: int, pieces: list[tuple[Scope, Array]]) -> tuple[Array, Array]:
        clique = self.clique[v]
        whole = [self.on.xp.zeros(self._shape(clique), dtype=self.on.real)]
        views = [self._expand(table, scope, clique) for scope, table in pieces]
        return self._program(views or whole)

    @cached_property
    def _program(self) -> Callable[[list[Array]], tuple[Array, Array]]:
        xp = self.on.xp

        def eliminate(pieces: list[Array]) -> tuple[Array, Array]:
            """The log message of a bucket, and p(x_v | the others)."""
            table = pieces[0]
            for piece in pieces[1:]:
                table = table + piece
            peak = xp.max(table, axis=0)
            # -inf - -inf would be NaN.
            peak = xp.where(xp.isfinite(peak), peak, xp.zeros_like(peak))
            table = xp.exp(table - peak)
            total = xp.sum(table, axis=0)
            return xp.log(total) + peak, table / xp.where(total > 0, total, xp.ones_like(total))

        return self.on.compile(eliminate)
