"""What the eliminations in NumPy and in compiled code share: the order, and what it says about their cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np

from spinbench.reference.elimination.slices import slice_elimination
from spinbench.reference.network import FloatArray
from spinbench.reference.orders.order import HOPELESS, Order
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver
from spinbench.reference.sparse.arrays import ON_ARRAYS
from spinbench.reference.sparse.tables import Loops
from spinbench.reference.sparse.tree import SparseTree, has_zeros


class Elimination(Solver):
    """Elimination of any discrete model along the problem's order.

    Attributes:
        entry_seconds, log_z_entry_seconds: of an entry of the cliques' tables, with marginals and without.
        variable_seconds: of a variable.
        loops: over what zeros leave possible.
        planned: whether the order is within reach, so that memory is that of its plan.
        room: large arrays by name, which one slice after another works in; new pages take longer than what is done
            with them.
    """

    name = "bucket_tree"
    width: int
    entry_seconds: ClassVar[float]
    log_z_entry_seconds: ClassVar[float]
    variable_seconds: ClassVar[float]
    loops: ClassVar[Loops] = ON_ARRAYS

    def __init__(self, problem: Problem, order: Order) -> None:
        self.problem = problem
        self.order = order
        self.width = order.width
        self.complete = order.complete
        self.planned = order.complete and order.log2_total < HOPELESS
        self.seconds = self.predict_seconds(marginals=True)
        self.room: dict[str, FloatArray] | None = None

    def empty(self, name: str, size: int) -> FloatArray:
        """An array, of `room` where there is one, with whatever it holds."""
        if self.room is None:
            return np.empty(size)
        if name not in self.room or self.room[name].size < size:
            self.room[name] = np.empty(size)
        return self.room[name][:size]

    @classmethod
    def build(cls, problem: Problem) -> Self:
        """Applies to every problem; an order that is out of reach shows in `memory`."""
        return cls(problem, problem.order)

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the entries of the cliques."""
        rate = self.entry_seconds if marginals else self.log_z_entry_seconds
        return self.order.entries * rate + len(self.problem.cardinalities) * self.variable_seconds

    def memory(self, *, marginals: bool) -> int:
        """What is kept, and room for a bucket at work; a lower limit where the order is out of reach."""
        return self._memory(marginals) if self.planned else 8 * self.order.least_entries

    def fallbacks(self) -> Iterator[Solver]:
        """Over what zeros leave possible, where whole tables are too large."""
        if self.planned and has_zeros(self.problem):
            yield SparseTree(self.problem, self.order, self.loops)

    def slice(self, max_bytes: int, *, marginals: bool) -> Solver | None:
        """The same a slice at a time."""
        return slice_elimination(self, max_bytes, marginals=marginals) if self.planned else None

    @abstractmethod
    def _memory(self, marginals: bool) -> int:
        """The same for a planned order."""
