"""Contenders take turns, and each turn is timed by both clocks: one call, or as many as last `SHORTEST`."""

from __future__ import annotations

import contextlib
import fcntl
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from comparison.contender import Contender

SLOW = 10.0
"""CPU seconds of a first call from which it is not repeated: it is the measurement."""
SHORTEST = 0.02
"""Seconds that a turn lasts at least: a single short call would be timed with the caches as the others left them."""


@dataclass(eq=False)
class Series:
    """The timed turns of one contender.

    Attributes:
        wall, cpu: seconds of a call by the clock on the wall, and of all threads of this process: the means of a turn.
        first: CPU seconds of the first call, compilation included; it runs before the lock is taken.
        repeats: calls in a turn.
        outputs: what the last call of each turn returned.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    first: float = float("nan")
    repeats: int = 1
    outputs: list[Any] = field(default_factory=list)

    def seconds(self, clock: str) -> float:
        """Of a call, in the best turn."""
        return min(self.cpu if clock == "CPU" else self.wall)

    def median(self, clock: str) -> float:
        """Of a call, in the middle turn."""
        return float(np.median(self.cpu if clock == "CPU" else self.wall))

    @property
    def cpu_per_wall(self) -> float:
        """Of all turns together: above 1 with several threads, below where something else held the core."""
        return sum(self.cpu) / sum(self.wall)


def calls(contender: Contender, number: int, repeats: int) -> tuple[float, float, list[Any]]:
    """Wall-clock and CPU seconds of so many calls in a row, and what they returned."""
    given = [contender.prepare(number) for _ in range(repeats)]
    wall, cpu = time.perf_counter(), time.process_time()
    outputs = [contender.call(one) for one in given]
    return time.perf_counter() - wall, time.process_time() - cpu, outputs


def keep(contender: Contender, series: Series, wall: float, cpu: float, outputs: list[Any]) -> None:
    """A timed turn."""
    if contender.own_seconds is not None:
        own = min(sum(map(contender.own_seconds, outputs)), wall)
        wall, cpu = own, cpu * own / wall
    series.wall.append(wall / len(outputs))
    series.cpu.append(cpu / len(outputs))
    series.outputs.append(contender.answer(outputs[-1]))


def first_call(contender: Contender, series: Series) -> None:
    """The first call, which is a turn where it is too slow to be repeated, and how many calls the others have."""
    wall, series.first, outputs = calls(contender, 0, 1)
    if not repeated(contender, series):
        keep(contender, series, wall, series.first, outputs)
    elif contender.compiles or series.first < SHORTEST:
        series.repeats = calibrated(contender)


def calibrated(contender: Contender) -> int:
    """How many calls last `SHORTEST`."""
    repeats = 1
    while (spent := calls(contender, 0, repeats)[0]) < SHORTEST:
        repeats = max(2 * repeats, math.ceil(repeats * SHORTEST / spent))
    return repeats


def repeated(contender: Contender, series: Series) -> bool:
    """Whether it takes turns after its first call."""
    return contender.compiles or series.first < SLOW


def first_turn(contenders: list[Contender], all_series: list[Series]) -> list[str]:
    """Each contender's first call, in order. Peers that fail are taken from both lists; sentences about them.

    Raises:
        Exception: what spinbench raised.
    """
    failed = []
    for contender, series in list(zip(contenders, all_series, strict=True)):
        try:
            first_call(contender, series)
        except Exception as error:  # whatever another library may raise
            if contender.ours:
                raise
            failed.append(f"{contender.library} {contender.version} fails: {type(error).__name__}: {error}")
            contenders.remove(contender)
            all_series.remove(series)
    return failed


def turn(contenders: list[Contender], number: int, all_series: list[Series]) -> None:
    """Each contender's turn, in order; slow ones were measured by their first call."""
    for contender, series in zip(contenders, all_series, strict=True):
        if repeated(contender, series):
            keep(contender, series, *calls(contender, number, series.repeats))


@contextlib.contextmanager
def alone(lock: Path | None) -> Iterator[None]:
    """Holds `lock` inside, for machines on which other measurements wait for it, too."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
