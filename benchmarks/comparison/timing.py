"""Contenders take turns, and each of their calls is timed by both clocks."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from comparison.contender import Contender

SLOW = 10.0
"""CPU seconds of a first call from which it is not repeated: it is the measurement."""


@dataclass(eq=False)
class Series:
    """The timed calls of one contender.

    Attributes:
        wall, cpu: seconds by the clock on the wall, and of all threads of this process, one pair a call.
        first: CPU seconds of the first call, compilation included; it runs before the lock is taken.
        outputs: what the calls returned.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    first: float = float("nan")
    outputs: list[Any] = field(default_factory=list)

    def seconds(self, clock: str) -> float:
        """The best call."""
        return min(self.cpu if clock == "CPU" else self.wall)

    def median(self, clock: str) -> float:
        """The middle call."""
        return float(np.median(self.cpu if clock == "CPU" else self.wall))

    @property
    def cpu_per_wall(self) -> float:
        """Of all calls together: above 1 with several threads, below where something else held the core."""
        return sum(self.cpu) / sum(self.wall)


def once(contender: Contender, number: int, series: Series, *, first: bool) -> None:
    """One call; a first one is kept only where it is too slow to be repeated."""
    given = contender.prepare(number)
    wall, cpu = time.perf_counter(), time.process_time()
    output = contender.call(given)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if first:
        series.first = cpu
        if cpu < SLOW or contender.compiles:
            return
    if contender.own_seconds is not None:
        own = min(contender.own_seconds(output), wall)
        wall, cpu = own, cpu * own / wall
    series.wall.append(wall)
    series.cpu.append(cpu)
    series.outputs.append(contender.answer(output))


def first_turn(contenders: list[Contender], all_series: list[Series]) -> list[str]:
    """Each contender's first call, in order. Peers that fail are taken from both lists; sentences about them.

    Raises:
        Exception: what spinbench raised.
    """
    failed = []
    for contender, series in list(zip(contenders, all_series, strict=True)):
        try:
            once(contender, 0, series, first=True)
        except Exception as error:  # whatever another library may raise
            if contender.ours:
                raise
            failed.append(f"{contender.library} {contender.version} fails: {type(error).__name__}: {error}")
            contenders.remove(contender)
            all_series.remove(series)
    return failed


def turn(contenders: list[Contender], number: int, all_series: list[Series]) -> None:
    """Each contender once, in order; slow ones were measured by their first call."""
    for contender, series in zip(contenders, all_series, strict=True):
        if contender.compiles or series.first < SLOW:
            once(contender, number, series, first=False)


@contextlib.contextmanager
def alone(lock: Path | None) -> Iterator[None]:
    """Holds `lock` inside, for machines on which other measurements wait for it, too."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
