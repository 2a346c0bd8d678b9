"""The most memory that a process held while something ran in it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


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
        self.before_bytes, self._known = _told("VmRSS"), _told("VmHWM")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        peak, now = _told("VmHWM"), _told("VmRSS")
        if peak is None or self._known is None or self.before_bytes is None or now is None:
            return
        if self._anew or peak > self._known or self._known <= max(self.before_bytes, now):
            self.peak_bytes = max(peak, self.before_bytes, now)  # the kernel counts a peak roughly


def _told(name: str) -> int | None:
    """Bytes that the system tells under a name."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    except (OSError, ValueError, StopIteration):
        return None
