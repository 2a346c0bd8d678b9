"""Exact answers by weighted model counting, for models whose hard zeros leave less than their width promises."""

from __future__ import annotations

import contextlib
import time
from typing import Any, ClassVar

import numpy as np

from spinbench.foundation import deadline, plugins
from spinbench.foundation.aside import DiedError, OverdueError, aside
from spinbench.reference.counting.counter import Task, work
from spinbench.reference.counting.encoding import Formula, encode
from spinbench.reference.network import FloatArray
from spinbench.reference.problem import MissingPackageError, NotApplicableError, Problem
from spinbench.reference.solver import GaveUpError, Solver

MIN_SECONDS = 10.0
"""Of other solvers, below which they go first: how long a count takes shows only when it is done."""
MAX_SECONDS = 60.0
"""For log Z, where no deadline ends it sooner."""
MARGINALS_OF_LOG_Z = 10.0
"""Times as long as log Z may all marginals take in any case."""
MAX_WAIT = 1e6
"""Seconds; what waits for processes takes no infinity."""
MIN_BYTES = 2**26
"""That a count takes; linkage_23 of UAI 2014, with a width of 33, takes no more."""
MAX_ENTRIES = 2**22
"""Of all tables: the encoding looks at each in Python."""
MIN_SHARE = 0.25
"""Of tables over several variables that have zeros: with fewer, counting is a slow elimination."""


class Ganak(Solver):
    """Ganak on the model's formula, in a process of its own, which ends with the time or the memory that is allowed.

    Attributes:
        most_seconds: for log Z; the deadline, where there is one, counts, too.
    """

    name = "ganak"
    backend: ClassVar[str] = "ganak"
    can_sample: ClassVar[bool] = False
    width = None
    seconds = MIN_SECONDS
    most_seconds = MAX_SECONDS

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @classmethod
    def build(cls, problem: Problem) -> Ganak:
        if not plugins.is_there("pyganak"):
            raise MissingPackageError("the package pyganak: pip install pyganak (Python 3.11 to 3.13)")
        if (entries := problem.flat.values.size) > MAX_ENTRIES:
            raise NotApplicableError(f"tables of {MAX_ENTRIES} entries in all, and this model has {entries}")
        return cls(problem)

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Whether too few tables have zeros."""
        flat = problem.flat
        if not np.isneginf(flat.values).any():
            return True
        several = np.diff(flat.start) > 1
        zeros = np.logical_or.reduceat(np.isneginf(flat.values), flat.offset[:-1])
        return bool((zeros & several).sum() < MIN_SHARE * several.sum())

    def predict_seconds(self, *, marginals: bool) -> float:
        """`seconds`, or what it may take where that is less."""
        return min(self.seconds, self.most_seconds)

    def memory(self, *, marginals: bool) -> int:
        """The least; the process ends where it needs more than is allowed."""
        return MIN_BYTES

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """log Z, and marginals where a count for each state fits into the time; else they are NaN."""
        begin = time.perf_counter()
        formula = encode(self.problem.network)
        limit = min(self.most_seconds, deadline.left())
        log_count = float(self._ask(formula, None, limit))
        seconds = time.perf_counter() - begin
        flat = None
        if marginals:
            room = min(max(MARGINALS_OF_LOG_Z * seconds, limit - seconds), deadline.left() - seconds)
            flat = self._marginals(formula, log_count, room)
        return formula.log_scale + log_count, flat

    def _marginals(self, formula: Formula, log_count: float, seconds: float) -> FloatArray:
        try:
            return np.asarray(self._ask(formula, log_count, seconds))
        except GaveUpError:
            return np.full(sum(self.problem.cardinalities), np.nan)

    def _ask(self, formula: Formula, log_count: float | None, seconds: float) -> Any:
        """What the child process answers."""
        task = Task(formula, log_count, seconds, self.most_bytes)
        try:
            with contextlib.closing(aside(work, task, min(seconds, MAX_WAIT))) as news:  # type: ignore[type-var]
                return next(each for each in news if each is not None)
        except OverdueError:
            raise GaveUpError(f"ganak had not finished counting after {seconds:.2g} s") from None
        except (DiedError, MemoryError):
            raise GaveUpError("ganak ended early, as it does where memory runs out (max_gib)") from None
