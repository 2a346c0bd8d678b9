"""What a step cost: wall and CPU seconds of each batch of a run.

Other programs stop a process now and then, and leave its caches cold. A low quantile over batches is that of the
batches which were not disturbed; where these are longer than a turn on the processor, hardly one is, but CPU seconds
leave the waiting out. Their mean over all batches holds what a quantile hides: work that falls due every tenth step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

QUANTILES = (0.1, 0.25, 0.5)


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


@dataclass
class LapTimes:
    """Collects the batches' times.

    times = LapTimes()
    with times(steps):
        engine.advance(state, steps)
    """

    steps: list[int] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @contextmanager
    def __call__(self, steps: int) -> Iterator[None]:
        """Time a batch of so many steps."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        self.steps.append(steps)

    def laps(self) -> Laps:
        """The summary of at least one batch."""
        steps = np.array(self.steps)
        wall, cpu = (_quantiles(np.array(one) / steps) for one in (self.wall, self.cpu))
        return Laps(len(steps), tuple(wall.tolist()), tuple(cpu.tolist()), float(sum(self.cpu) / steps.sum()))


def _quantiles(values: FloatArray) -> FloatArray:
    """`QUANTILES` of values (B,), as of `np.quantile`, which takes as long as a small model's whole answer."""
    return np.asarray(np.interp(np.array(QUANTILES) * (len(values) - 1), np.arange(len(values)), np.sort(values)))
