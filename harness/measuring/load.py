"""What a run took of the machine: CPU seconds, waiting, the most memory; and a yardstick before and after."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from spinbench.measuring.stages import scheduler_wait_seconds

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
N_LOOPS, N_CALLS, ARRAY_LENGTH = 5, 40, 4096


def time_yardstick_loop() -> float:
    """Wall seconds of a fixed NumPy loop, the least of five: they change with the machine, not with the program."""
    import numpy as np

    x = np.linspace(-1.0, 1.0, ARRAY_LENGTH)
    best = float("inf")
    for _ in range(N_LOOPS):
        since = time.perf_counter()
        for _ in range(N_CALLS):
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
        self.yardstick = (time_yardstick_loop(),)
        self._cpu, self._wall, self._waited = time.process_time(), time.perf_counter(), scheduler_wait_seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.wall_seconds = time.perf_counter() - self._wall
        self.cpu_seconds = time.process_time() - self._cpu
        after = scheduler_wait_seconds()
        if self._waited is not None and after is not None:
            self.waited_seconds = after - self._waited
        if error is None:
            self.yardstick = (*self.yardstick, time_yardstick_loop())


@dataclass
class Memory:
    """Around a run. Linux tells; elsewhere nothing is known.

    Attributes:
        before_bytes: resident when it began: the interpreter, libraries, and what earlier cells left.
        peak_bytes: the most that was resident at any time of it, of the whole process; memory of a GPU is not counted.
    """

    before_bytes: int | None = None
    peak_bytes: int | None = None

    def __enter__(self) -> Memory:
        self._anew = False
        with contextlib.suppress(OSError):  # else a peak is known if it is above that of all that ran before
            RESET.write_text("5", encoding="ascii")  # the peak begins anew; nothing else is touched
            self._anew = True
        self.before_bytes, self._known = _read_status_bytes("VmRSS"), _read_status_bytes("VmHWM")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        peak, now = _read_status_bytes("VmHWM"), _read_status_bytes("VmRSS")
        if peak is None or self._known is None or self.before_bytes is None or now is None:
            return
        if self._anew or peak > self._known or self._known <= max(self.before_bytes, now):
            self.peak_bytes = max(peak, self.before_bytes, now)  # the kernel counts a peak roughly


def _read_status_bytes(name: str) -> int | None:
    """Bytes that the system tells under a name."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, ValueError, StopIteration):
        return None
