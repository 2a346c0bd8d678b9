"""An engine that computes nothing: it counts what it is asked for, on a clock that it moves itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.foundation import deadline
from spinbench.inference.budget import Budget
from spinbench.inference.driver import Run, drive
from tests.helpers.clock import Clock

START = np.zeros((2, 3), dtype=np.int8)


@dataclass
class FakeEngine:
    """Of two variables and three chains.

    Attributes:
        clock: what its steps move.
        seconds, warm_seconds: of a step, and of one of burn-in where that is another.
        compile_seconds: of the first step.
        pieces: of a call; before each of several it asks whether it is to end.
        slowdown: of the steps from the second start on, the first being what is tried.
        waits: seconds for others, by the number of the call that warms or advances.
        end: steps after which an iteration takes no more.
        shows: whether there is anything to look at.
        compiles, prepare: as of engines.
        runs: what was asked for since each start.
    """

    clock: Clock = field(default_factory=Clock)
    seconds: float = 0.0
    warm_seconds: float | None = None
    compile_seconds: float = 0.0
    pieces: int = 1
    slowdown: float = 1.0
    waits: Mapping[int, float] = field(default_factory=dict)
    end: int = 10**9
    shows: bool = False
    compiles: bool = True
    prepare: Callable[[Any], Any] | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0

    def init(self, seed: int, start: np.ndarray) -> dict[str, Any]:
        self.runs.append({"warm": 0, "adapt": [], "steps": 0, "climbed": 0, "asked": []})
        return self.runs[-1]

    def warm(self, state: dict[str, Any], steps: int) -> dict[str, Any]:
        self._work(steps, self.seconds if self.warm_seconds is None else self.warm_seconds)
        state["warm"] += steps
        return state

    def adapt(self, state: dict[str, Any], last: bool) -> dict[str, Any]:
        state["adapt"].append((state["warm"], last))
        return state

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        taken = min(steps, self.end - state["steps"])
        self._work(max(taken, 1), self.seconds)
        state["asked"].append(steps)
        state["steps"] += taken
        return state, {"s": np.full(START.shape, float(steps)), "iterations": np.full(3, float(state["steps"]))}

    def look(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"steps": np.full(3, float(state["steps"]))} if self.shows else {}

    def temper(self, state: dict[str, Any], betas: np.ndarray, sweeps: int) -> tuple[dict[str, Any], np.ndarray]:
        state["climbed"] += sweeps * len(betas)
        return state, np.zeros((sweeps, len(betas), 3))

    def slope(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"slope": np.full(3, float(state["steps"]))}

    def _work(self, steps: int, seconds: float) -> None:
        self.calls += 1
        self.clock.wait(self.waits.get(self.calls, 0.0))
        if self.compile_seconds and self.calls == 1:
            self.clock.sleep(self.compile_seconds)
            deadline.add_compilation(self.compile_seconds, self.compile_seconds)
        if len(self.runs) > 1:
            seconds *= self.slowdown
        for _ in range(self.pieces):
            if self.pieces > 1:
                deadline.check()
            self.clock.sleep(seconds * steps / self.pieces)


def estimate_mean(trace: Trace) -> Estimate:
    """1 for each variable, however the steps are cut into batches."""
    return Estimate(marginals=trace.mean("s").mean(axis=-1))


def run_chains(budget: Budget, engine: FakeEngine, *, batches: int = 0, **options: Any) -> Run:
    """A run of samples; options are those of `drive`."""
    options = {"estimate": estimate_mean, "trace": Trace({"s": "sum"}, batches), "start": START} | options
    return drive(engine, budget=budget, seed=0, **options)


def run_iteration(budget: Budget, engine: FakeEngine, **options: Any) -> Run:
    """A run that counts its own steps, and is estimated by nothing."""
    trace = Trace({"iterations": "last"})
    return run_chains(budget, engine, **{"trace": trace, "estimate": lambda trace: Estimate()} | options)
