"""Where the wall time of a cell goes, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# In the order in which a cell goes through them. A record holds the seconds of each under "stages".
#
# "record" are those of the record before, which the same process wrote: a record cannot hold its own.
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
# What the harness adds to a cell beside starting processes and imports; the other stages are what was asked for.
OVERHEAD = ("compose", "lookup", "metrics", "exchange", "record")


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
