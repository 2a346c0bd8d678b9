"""Where a run stood on its way; what it would have answered there is found when somebody asks, where that is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.foundation.threads import one_blas_thread
from spinbench.inference.budget import Budget

MAX_BYTES = 32 * 2**20
"""Of what all checkpoints of a run keep to be estimated from."""
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
        assert isinstance(self.told, Estimate)
        return self.told

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpoint, (self.seconds, self.samples, self.estimate)


class Deferred:
    """What may be estimated later: not in a budget of seconds, of which estimates are told to take their share.

    Args:
        budget: of the run.
        variables: of its model.
    """

    def __init__(self, budget: Budget, variables: int) -> None:
        self._room = MAX_BYTES if budget.seconds is None and variables <= MOST_VARIABLES else 0

    def takes(self, view: Trace) -> bool:
        """Whether there is room for one more view, which is then taken."""
        size = 8 * view.numbers * len(view.counts)
        fits = size <= self._room
        self._room -= size if fits else 0
        return fits
