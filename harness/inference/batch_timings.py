"""What a run took: wall and CPU seconds of its parts and of each batch; and where it stood on its way.

Other programs stop a process now and then, and leave its caches cold. A low quantile over batches is that of the
batches which were not disturbed; where these are longer than a turn on the processor, hardly one is, but CPU seconds
leave the waiting out. Their mean over all batches holds what a quantile hides: work that falls due every tenth step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import truediv

from spinbench.api import Estimate
from spinbench.foundation.platforms import one_blas_thread

# Quantiles of the batches' step times that a result reports.
QUANTILES = (0.1, 0.25, 0.5)
# Bytes of merged batches that a checkpoint stores for its estimate; a result has about a dozen checkpoints.
MAX_BYTES = 2**20
# Bytes of the unmerged batches, which all checkpoints of a run share.
MAX_SHARED_BYTES = 2**23
# Largest number of variables for which a checkpoint stores the plan, which its estimate needs.
MAX_VARIABLES = 1024


@dataclass(frozen=True)
class Seconds:
    """Wall-clock of the parts of a run, each synchronised with the device.

    Attributes:
        plan: the method's work on the model alone (layouts, factorisations).
        compile: tables to the device, and the first call of every function.
        burn_in: dropped samples, adaptation included.
        run: kept samples.
        transfer: the share of compile, burn_in and run that went into moving tables, states and statistics between
            host and device; 0 for native kernels, which work where the arrays are.
    """

    plan: float = 0.0
    compile: float = 0.0
    burn_in: float = 0.0
    run: float = 0.0
    transfer: float = 0.0

    @property
    def total(self) -> float:
        """All of it; `transfer` is within the others."""
        return self.plan + self.compile + self.burn_in + self.run


@dataclass(frozen=True)
class Laps:
    """The measured batches of a run.

    Attributes:
        count: batches.
        wall, cpu: first decile, quartile and median over batches of wall and of CPU seconds a step.
        mean_cpu: CPU seconds a step, over all batches. CPU seconds are those of the process.
    """

    count: int
    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    mean_cpu: float

    @classmethod
    def of_batches(cls, batches: Sequence[tuple[int, float, float]]) -> Laps:
        """The summary of at least one batch: (steps, wall seconds, CPU seconds) of each."""
        steps, wall, cpu = zip(*batches, strict=True)
        mean = math.fsum(cpu) / sum(steps)
        return cls(len(batches), _quantiles(map(truediv, wall, steps)), _quantiles(map(truediv, cpu, steps)), mean)


def _quantiles(values: Iterable[float]) -> tuple[float, ...]:
    """Those of `np.quantile`, which takes as long as a small model's whole answer."""
    ordered = sorted(values)
    last = len(ordered) - 1
    quantiles = []
    for q in QUANTILES:
        low, share = int(q * last), q * last % 1.0
        quantiles.append(ordered[low] + share * (ordered[min(low + 1, last)] - ordered[low]))
    return tuple(quantiles)


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

    def __reduce__(self) -> tuple[object, ...]:
        return Checkpoint, (self.seconds, self.samples, self.estimate)
