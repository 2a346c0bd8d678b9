"""Costs of two commits by pairs: a process of each measures the same cell by turns, on one core.

A sweep measures the seeds of two commits minutes apart, and the speed of a machine moves meanwhile. Turns of some tens
of milliseconds see the same machine. What is left is by how much two processes of one program differ, as their code and
arrays lie in other places: both are started anew several times, and the scatter over starts is the error.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.history.regression_test.formatting import format_place
from spinbench.history.regression_test.measurements import Place
from spinbench.measuring import isolation, measure

Cell = Mapping[str, Any]

# Starts of both processes for each cell, and the fewest that tell how much starts scatter: log ratios of single starts
# of one program spread by 3 %, so that the mean of eight is good to 1 %.
STARTS, FEWEST_STARTS = 8, 4
# Seconds and turns of a start. Single turns spread by 10 to 20 %, the mean of some dozens by less than starts do.
START_SECONDS, FEWEST_TURNS = 4.0, 6
# CPU seconds that a turn should take: short beside the time in which the machine's speed changes, long beside a timer's
# resolution.
TURN_SECONDS = 0.05


class _NoCostError(Exception):
    """A side did not tell what a step costs; the message says why."""


def measure_pairs(
    pythons: tuple[Path, Path],
    cells: Mapping[Place, tuple[Cell, Cell]],
    seconds: float,
    report: Callable[[Place, list[float]], object],
) -> tuple[dict[Place, list[float]], list[str]]:
    """Logarithms of head's over base's CPU seconds of a step, one for each start of both.

    Args:
        pythons: interpreters of the environments of base and head.
        cells: the configurations of each cell at base and at head, those first that matter most.
        seconds: after which no further start is made.
        report: told of each cell that is measured.

    Ctrl-C ends the measurement as the time's end does, once there is a cell with enough starts.

    Returns:
        The cells with enough starts, and a sentence for each that could not be measured.
    """
    ratios: dict[Place, list[float]] = {}
    refusals = []
    end = time.monotonic() + seconds
    core = isolation.CoreLock()
    try:
        for place, sides in cells.items():
            logs: list[float] = []
            try:
                while len(logs) < STARTS and time.monotonic() < end:
                    _measure_start(pythons, sides, core.number, logs)
            except (_NoCostError, isolation.WorkerDiedError) as error:
                refusals.append(f"{format_place(place)} was not measured by pairs: {error}")
                continue
            except KeyboardInterrupt:
                if not ratios and len(logs) < FEWEST_STARTS:
                    raise
                end = time.monotonic()
            if len(logs) >= FEWEST_STARTS:
                ratios[place] = logs
                report(place, logs)
    finally:
        core.release()
    return ratios, refusals


def _measure_start(pythons: tuple[Path, Path], cells: tuple[Cell, Cell], core: int, log_ratios: list[float]) -> None:
    """Append the log ratio in one process of each side: the mean over turns without their outer quarters.

    Turns that an interrupt cuts short count, if they are enough.
    """
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(contextlib.closing(isolation.Worker(core, cell["backend"]["device"], python=python)))
            for python, cell in zip(pythons, cells, strict=True)
        ]
        for worker, cell in zip(workers, cells, strict=True):
            _step_seconds(worker, cell)  # compiles
        samples = cells[0]["budget"]["samples"]
        step = max(_step_seconds(worker, cell) for worker, cell in zip(workers, cells, strict=True))
        samples = max(samples, math.ceil(TURN_SECONDS / max(step, 1e-9)))
        costs: list[list[float]] = [[], []]
        end = time.monotonic() + START_SECONDS
        try:
            while len(costs[0]) < FEWEST_TURNS or time.monotonic() < end:
                turn = len(costs[0])
                for side in (0, 1) if turn % 2 == 0 else (1, 0):
                    cell = {**cells[side], "seed": turn, "budget": {**cells[side]["budget"], "samples": samples}}
                    costs[side].append(_step_seconds(workers[side], cell))
        finally:
            turns = min(map(len, costs))
            if turns >= FEWEST_TURNS:
                logs = np.sort(np.log(costs[1][:turns]) - np.log(costs[0][:turns]))
                outer = turns // 4
                log_ratios.append(float(logs[outer : turns - outer].mean()))


def _step_seconds(worker: isolation.Worker, cell: Cell) -> float:
    """CPU seconds of a step, the mean over a run.

    Raises:
        _NoCostError: the cell fails or is refused, or its run does not tell.
        WorkerDiedError: the process ended.
    """
    answer = worker.measure(cell, measure.TIME_LIMIT)
    if answer["status"] != "ok":
        raise _NoCostError(answer["error"])
    entry = answer["metrics"]["step_cpu_seconds"]
    if not (value := entry.get("value")):
        raise _NoCostError(entry.get("failed") or "its steps take no time")
    return float(value)
