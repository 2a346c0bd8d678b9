"""The lower bound of mini-buckets as a kernel: a step is a pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Kernel, Model, States
from spinbench.mathematics.rounding import work_of
from spinbench.methods.buckets.kernel import BucketKernel
from spinbench.methods.buckets.layout import problem_of
from spinbench.methods.buckets.orders import search_orders
from spinbench.methods.buckets.raising import Progress, Raising
from spinbench.methods.buckets.tuning import Code
from spinbench.methods.buckets.wmb import Tables
from spinbench.methods.buckets.wmb_lower import LowerMiniBuckets

# Seconds of the search for elimination orders, by predicted cost and not by the clock, so that every machine finds the
# same orders.
_SEARCH = 0.03


@dataclass
class LowerState:
    """One run: its chains, passes so far, the best that they told, and those to come."""

    chains: int
    passes: int
    progress: Progress
    coming: Iterator[Progress]
    ended: bool = False


class LowerKernel(Kernel[Tables, LowerState]):
    """In NumPy, float64 whatever precision is asked for."""

    code: ClassVar[Code] = BucketKernel.code
    compiles: ClassVar[bool] = False

    def __init__(self, method: LowerMiniBuckets, backend: Backend, model: Model, tables: Tables) -> None:
        problem = problem_of(model)
        orders = [each.order for each in search_orders(problem, _SEARCH, 0) if not each.lattice]
        limits = method.ibound, method.max_gib * 2**30
        self._raising = Raising(problem, orders, self.code, work_of(model), *limits)

    def init(self, seed: int, start: States) -> LowerState:
        return LowerState(start.shape[1], 0, Progress(-np.inf, 0, True), self._raising.iterate())

    def warm(self, state: LowerState, steps: int) -> LowerState:
        """As `advance`."""
        return self.advance(state, steps)[0]

    def advance(self, state: LowerState, steps: int) -> tuple[LowerState, dict[str, np.ndarray]]:
        for _ in range(steps):
            progress = next(state.coming, None)
            if progress is None:
                state.ended = True
                break
            state.progress = progress
            state.passes += 1
        ones = np.ones(state.chains)
        return state, {
            "bound": ones * state.progress.bound,
            "ibound": ones * state.progress.limit,
            "iterations": ones * state.passes,
            "ended": ones * state.ended,
        }
