"""Simulated annealing by the sweeps of a sampler: down a geometric ladder of temperatures, again and again."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine
from spinbench.errors import BudgetError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.notebook.progress import followed
from spinbench.inference.stored_states.recorder import check_states
from spinbench.models import Model

RUNGS, FEWEST = 64, 8
"""Temperatures of a run down the ladder, and the fewest of them."""
CALL = 0.25
"""Seconds of sweeps, about, after which it is told how far a run is."""


@dataclass
class Annealed:
    """What runs down the ladder gave.

    Attributes:
        states: (N, C) of each run, in the end.
        sweeps: of all runs together.
        compile_seconds, run_seconds: of them.
    """

    states: list[npt.NDArray[np.int64]]
    sweeps: int
    compile_seconds: float
    run_seconds: float


def anneal(
    engine: Engine, model: Model, start: np.ndarray, hot: float, cold: float, budget: Budget, *, seed: int, who: str
) -> Annealed:
    """One run of so many sweeps, or runs of twice as many again and again while there are seconds.

    Args:
        engine, model: bound to each other; its `climb` sweeps at a temperature.
        start: (N, C) states.
        hot, cold: inverse temperatures of the ladder's ends.
        budget: sweeps of each chain, or seconds.
        seed: of all random numbers.
        who: method and backend, for the messages.

    Raises:
        UnsupportedError: the engine knows no temperatures, or does not tell states.
        InvalidResultError: what it tells are none.
        BudgetError: the seconds are over before a run can end.
    """
    found = Annealed([], 0, 0.0, 0.0)
    with followed(who, budget, lambda: found.sweeps, start.shape[1]):
        _run(engine, model, start, hot, cold, budget, found, seed=seed, who=who)
    return found


def _run(
    engine: Engine,
    model: Model,
    start: np.ndarray,
    hot: float,
    cold: float,
    budget: Budget,
    found: Annealed,
    *,
    seed: int,
    who: str,
) -> None:
    since = time.perf_counter()
    state = engine.init(seed, start)
    state, slopes = engine.climb(state, np.array([hot]), 1)
    if not slopes.shape[-1] or engine.states(state) is None:
        raise UnsupportedError(f"target='map' was given; {who} knows no temperatures to anneal by")
    compiled = time.perf_counter()
    state, _ = engine.climb(state, np.array([hot]), 1)
    per_sweep = time.perf_counter() - compiled
    found.sweeps, found.compile_seconds, found.run_seconds = 2, compiled - since, per_sweep
    at_once = max(1, math.ceil(CALL / max(per_sweep, 1e-9)))
    for rungs, sweeps in _plans(budget, per_sweep, found):
        begun = time.perf_counter()
        for betas, each in _calls(np.geomspace(hot, cold, rungs), sweeps, at_once):
            state, _ = engine.climb(state, betas, each)
            found.sweeps += each * len(betas)
        found.states.append(check_states(engine.states(state), model, who))
        found.run_seconds += time.perf_counter() - begun


def _plans(budget: Budget, per_sweep: float, found: Annealed) -> Iterator[tuple[int, int]]:
    """(rungs, sweeps of each chain) of each run."""
    if budget.seconds is None:
        sweeps = budget.samples or 1
        yield min(RUNGS, sweeps), sweeps
        return
    rungs = min(RUNGS, int(budget.seconds / (2 * max(per_sweep, 1e-9))))
    if rungs < FEWEST:
        raise BudgetError(
            f"a budget of {budget} is too short: a sweep takes {per_sweep:.3g} s, and a run down the temperatures at "
            f"least {FEWEST}; give more seconds or fewer chains"
        )
    sweeps, took = rungs, 0.0
    while found.run_seconds + took <= budget.seconds:
        before = found.run_seconds
        yield rungs, sweeps
        took = found.run_seconds - before
        if found.run_seconds + 2 * took <= budget.seconds:
            sweeps, took = 2 * sweeps, 2 * took


def _calls(betas: npt.NDArray[np.float64], sweeps: int, at_once: int) -> Iterator[tuple[npt.NDArray[np.float64], int]]:
    """Rungs of a run and sweeps at each of them, about `at_once` sweeps together and no less than a rung."""
    each, more = divmod(sweeps, len(betas))
    for part, count in ((betas[:more], each + 1), (betas[more:], each)):
        width = max(1, at_once // max(count, 1))
        for first in range(0, len(part), width):
            yield part[first : first + width], count
