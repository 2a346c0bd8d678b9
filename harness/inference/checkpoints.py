"""Where a run stood on its way; of small models the estimate is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spinbench.api import Estimate
from spinbench.foundation.threads import one_blas_thread

# Of joined batches that a checkpoint keeps to be estimated from, one of a dozen of a result.
MAX_BYTES = 2**20
# The same of batches as they are, which all checkpoints of a run share.
MAX_SHARED_BYTES = 2**23
# Of larger models the plan, without which nothing is estimated, is too much to keep.
MAX_VARIABLES = 1024


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood: seconds since the start of burn-in (estimating is not counted), samples, the estimate.

    With a budget in seconds, those of large models after the first are left out where estimating here and at the end
    would take longer, all in all, than a quarter (`schedule.ESTIMATING`) of the run so far.

    Attributes:
        source: the estimate, or what makes it.
    """

    seconds: float
    samples: int
    source: Estimate | Callable[[], Estimate] = field(repr=False)

    @cached_property
    def estimate(self) -> Estimate:
        """Made when it is first asked for, where the model is small and the run had no time for it or took none."""
        if isinstance(self.source, Estimate):
            return self.source
        with one_blas_thread():
            return self.source()

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpoint, (self.seconds, self.samples, self.estimate)
