"""What a cell takes: wall time stage by stage; CPU seconds, waiting and memory of its run, beside a yardstick."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

# Stages of a cell, in order. A record holds the seconds of each under "stages"; those of "record" are of the record
# written before by the same process, since a record cannot hold its own.
STAGES = {
    "compose": "its configuration, by Hydra",
    "lookup": "whether it was measured before",
    "start": "a process for it, up to the imports that all cells need",
    "imports": "of its method and backend",
    "model": "built or read",
    "plan": "of the method",
    "compile": "and the first call",
    "burn_in": "samples that are dropped",
    "run": "samples that count",
    "estimate": "from the samples, at all checkpoints",
    "reference": "the exact answer, from the cache or solved",
    "metrics": "errors and the like",
    "mixing": "after how many sweeps chains have met, where that was asked for",
    "exchange": "with its process",
    "record": "written",
}
# Stages that are overhead of the harness, beside the start of processes and imports; the others were requested.
OVERHEAD = ("compose", "lookup", "metrics", "exchange", "record")
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# The yardstick is the fastest of N_LOOPS loops of N_CALLS calls over arrays of ARRAY_LENGTH numbers.
N_LOOPS, N_CALLS, ARRAY_LENGTH = 5, 40, 4096


class Stages:
    """Seconds of each stage, added up.

        stages = Stages()
        with stages("plan"):
            ...

    Attributes:
        seconds: by stage.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add what happens inside to a stage, whether it succeeds or not."""
        since = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - since)

    def add(self, name: str, seconds: float) -> None:
        """Add to a stage."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def scheduler_wait_seconds() -> float | None:
    """Seconds for which this thread was ready to run while others had its processor; None where that is not known."""
    try:
        text = Path("/proc/thread-self/schedstat").read_text(encoding="ascii")
        return int(text.split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return None


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
        # If the peak cannot be reset, it is only known if it exceeds that of everything before.
        with suppress(OSError):
            # "5" resets the peak of resident memory and nothing else.
            RESET.write_text("5", encoding="ascii")
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
            # The kernel's counter of the peak is approximate.
            self.peak_bytes = max(peak, self.before_bytes, now)


def _read_status_bytes(name: str) -> int | None:
    """Bytes that the system tells under a name."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, ValueError, StopIteration):
        return None
