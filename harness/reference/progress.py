"""What is known of an exact answer before it is there, for those who wait: called from wherever it becomes known."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

from spinbench.foundation.remarks import format_seconds


class Progress(NamedTuple):
    """Slices of an elimination that are done, of those in all, one where it is whole.

    Attributes:
        done: so many.
        total: in all; 0 while an order is searched for that is better than the best so far.
        seconds_left: for the rest: as predicted, and once a slice is done at that pace; NaN of a solver that cannot
            predict it.
        bytes: memory that all take at their peak.
        width: of the best order so far.
        limit_seconds: after which a solver that cannot predict its time gives up.
    """

    done: int
    total: int
    seconds_left: float
    bytes: int
    width: int | None = None
    limit_seconds: float = math.inf

    def describe(self, planning_seconds: float) -> str:
        """In words; `planning_seconds` are those before it, of reading and planning."""
        memory, left = f"{self.bytes / 2**30:.2g} GiB", self.seconds_left
        if self.total == 0:
            best = f"the best so far has width {self.width} and would take {memory} and {format_seconds(left)}"
            return f"searching for an elimination order; {best}"
        if math.isnan(left):
            limit = "as long as it takes" if self.limit_seconds == math.inf else f"{self.limit_seconds:.3g} s at most"
            return f"{memory} or more, counting for {limit}"
        if self.total == 1:
            return f"{memory}, predicted to take {format_seconds(planning_seconds + left)}"
        return f"{memory}, {self.done} of {self.total} slices, about {left:.0f} s left"


# Listener of the current context.
PROGRESS: ContextVar[Callable[[Progress], None] | None] = ContextVar("progress", default=None)


def report_progress(progress: Progress) -> None:
    """Calls what listens."""
    if (listener := PROGRESS.get()) is not None:
        listener(progress)
