"""Where a run stood on its way; what it would have answered there is found when somebody asks, where that is kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.foundation.threads import one_blas_thread

MAX_BYTES = 64 * 2**20
"""Of what the checkpoints of all runs keep to be estimated from; beyond, the oldest are."""
MOST_OF_ONE = 1 / 8
"""Of it for a single checkpoint."""
MOST_VARIABLES = 1024
"""Of larger models the plan, without which nothing is estimated, is too much to keep."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood: seconds since the start of burn-in (estimating is not counted), samples, the estimate.

    With a budget in seconds, checkpoints after the first are left out where estimating here and at the end would take
    longer, all in all, than a quarter (`looks.ESTIMATING`) of the run so far.

    Attributes:
        told: the estimate, or what makes it.
    """

    seconds: float
    samples: int
    told: Estimate | Callable[[], Estimate] = field(repr=False)

    @property
    def estimate(self) -> Estimate:
        """Made when it is first asked for, where the budget was in samples and the model is small."""
        if not isinstance(self.told, Estimate):
            with one_blas_thread():
                object.__setattr__(self, "told", self.told())
            _WAITING.drop(id(self))
        assert isinstance(self.told, Estimate)
        return self.told

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpoint, (self.seconds, self.samples, self.estimate)


class _Waiting:
    """Checkpoints that are still there and nobody has asked, from the oldest on."""

    def __init__(self) -> None:
        self._points: dict[int, tuple[weakref.ref[Checkpoint], int]] = {}
        self._bytes = 0

    def add(self, point: Checkpoint, size: int) -> None:
        """With so many bytes; others are asked where these are too many."""
        key = id(point)
        self._points[key] = weakref.ref(point, lambda _: self.drop(key)), size
        self._bytes += size
        while self._bytes > MAX_BYTES and self._points:
            oldest, (found, _) = next(iter(self._points.items()))
            if (other := found()) is not None:
                with suppress(Exception):  # which it raises again where it is asked
                    _ = other.estimate
            self.drop(oldest)

    def drop(self, key: int) -> None:
        """It is gone, or has its estimate."""
        _, size = self._points.pop(key, (None, 0))
        self._bytes -= size


_WAITING = _Waiting()


def later(seconds: float, samples: int, view: Trace, estimate: Callable[[Trace], Estimate]) -> Checkpoint | None:
    """A checkpoint that is estimated when it is asked; None where there is no room to keep what it takes.

    Args:
        seconds, samples: of the checkpoint.
        view: of the trace.
        estimate: of a view.
    """
    size = 8 * view.numbers * len(view.counts)
    if size > MOST_OF_ONE * MAX_BYTES:
        return None
    point = Checkpoint(seconds, samples, partial(estimate, view.as_it_is()))
    _WAITING.add(point, size)
    return point
