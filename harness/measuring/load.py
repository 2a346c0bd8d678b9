"""How busy the machine was while a cell ran: CPU seconds, seconds of waiting, and a yardstick before and after."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType

from spinbench.measuring.stages import waited

PORTIONS, ROUNDS, LENGTH = 5, 40, 4096


def yardstick() -> float:
    """Wall seconds of a fixed NumPy loop, the least of five: they change with the machine, not with the program."""
    import numpy as np

    x = np.linspace(-1.0, 1.0, LENGTH)
    best = float("inf")
    for _ in range(PORTIONS):
        since = time.perf_counter()
        for _ in range(ROUNDS):
            np.tanh(x)
        best = min(best, time.perf_counter() - since)
    return best


@dataclass
class Load:
    """Around a run.

    Attributes:
        cpu_seconds: of the process.
        wall_seconds: of the run.
        waited_seconds: for which the thread was ready while others had its processor; None where that is not known.
        yardstick: before and after.
    """

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    waited_seconds: float | None = None
    yardstick: tuple[float, ...] = ()

    def __enter__(self) -> Load:
        self.yardstick = (yardstick(),)
        self._cpu, self._wall, self._waited = time.process_time(), time.perf_counter(), waited()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.wall_seconds = time.perf_counter() - self._wall
        self.cpu_seconds = time.process_time() - self._cpu
        after = waited()
        if self._waited is not None and after is not None:
            self.waited_seconds = after - self._waited
        if error is None:
            self.yardstick = (*self.yardstick, yardstick())
