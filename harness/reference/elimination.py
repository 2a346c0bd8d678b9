"""What the bucket trees in NumPy and in compiled code share: the order, and what it says about their cost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

from spinbench.reference.order import Order, hopeless_order
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver
from spinbench.reference.sparse.tree import SparseTree, has_zeros


class Elimination(Solver):
    """Elimination of any discrete model along the best order found.

    Attributes:
        entry_seconds, variable_seconds: rough times, of an entry of the cliques' tables and of a variable.
    """

    name = "bucket_tree"
    width: int
    entry_seconds: ClassVar[float]
    variable_seconds: ClassVar[float]

    def __init__(self, problem: Problem, order: Order) -> None:
        self.problem = problem
        self.order = order
        self.width = order.width
        self.complete = order.complete
        self.seconds = math.inf
        if order.complete:
            self.seconds = order.entries * self.entry_seconds + len(order.order) * self.variable_seconds

    @classmethod
    def build(cls, problem: Problem) -> Self:
        """Applies to every problem; an order that is out of reach shows in `memory`."""
        return cls(problem, hopeless_order(problem) or cls._search(problem))

    @staticmethod
    @abstractmethod
    def _search(problem: Problem) -> Order:
        """The best order found."""

    def memory(self, *, marginals: bool) -> int:
        """What is kept, and room for a bucket at work; a lower limit where the search was given up."""
        return self._memory(marginals) if self.order.complete else 8 * self.order.least_entries

    def fallbacks(self) -> Iterator[Solver]:
        """Over what zeros leave possible, where whole tables are too large."""
        if self.order.complete and has_zeros(self.problem):
            yield SparseTree(self.problem, self.order)

    @abstractmethod
    def _memory(self, marginals: bool) -> int:
        """The same for a complete order."""
