"""Before a run counts: everything is compiled, the time of a step is measured, and a budget too short is refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from spinbench.api import Engine, Method, State, Tables, Tier, Trace
from spinbench.api.old_members import predict_planning
from spinbench.errors import BudgetError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.budget import Budget, step_updates
from spinbench.inference.schedule import BATCH_SECONDS, LOADING
from spinbench.models import Model

# Number of timed batches, as long as they take less than `MEASURING` of the budget (all of it if they do not count as
# samples).
MEASURED = 3
MEASURING = 0.5
# Seconds for which a step that seems too slow is timed again; also what a first call may take beyond the budget.
BRIEF = 0.3
# Smallest time of a variable's update: a step with too many updates for the budget is not begun.
UPDATE_SECONDS: dict[Tier, float] = {"native": 3e-9, "generic": 2e-8}
# Longest batch that measures the time of a step: an iteration that has converged makes no steps and takes no time.
MAX_STEPS = 2**20
# Cost in steps of calling each function once, and the share of a budget in seconds that these calls may take.
OF_EACH, BESIDE = 10, 0.05
# Largest share of a budget in seconds for planning.
PLANNING = 0.5
WarmUp = Callable[[Engine, State, int, Trace], tuple[State, int]]


class Pilot(NamedTuple):
    """What came of it, in seconds.

    Attributes:
        seconds_per_step: of the budget; 0 where it is not needed.
        compile_seconds: of first calls.
        seconds: that count as the run's: of an engine that compiles nothing all calls but the first are alike.
        cpu: of `seconds` those of the CPUs.
        state: where it begins, if it is there already.
    """

    seconds_per_step: float = 0.0
    compile_seconds: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    state: State = None


def preflight(
    engine: Engine, budget: Budget, iterates: bool, *, start: np.ndarray, seed: int, warm_up: WarmUp
) -> Pilot:
    """Try an engine on states that are thrown away.

    Args:
        engine: that compiles, unless it has an attribute `compiles` that is false.
        budget: of the run to come.
        iterates: whether none of its steps is to be thrown away, and the run finds out how long they take.
        start, seed, warm_up: as of `drive`.

    Raises:
        BudgetError: the seconds are over before an engine that compiles nothing has made a step.
    """
    compiles, first = getattr(engine, "compiles", True), deadline.Stopwatch(counts_compilation=True)
    if not compiles and (iterates or budget.seconds is None):
        return Pilot()
    try:
        with first:
            state = engine.init(seed, start)
            prepare = compiles and getattr(engine, "prepare", None)
            if prepare:
                state = prepare(state)
            with deadline.within(max(budget.seconds or math.inf, LOADING)):
                if not compiles:
                    engine.advance(copy.deepcopy(state), 1)
                elif prepare:
                    state, _ = warm_up(engine, state, 1, Trace({}))
                else:
                    state = _call_each_once(engine, state, warm_up)
    except deadline.OverdueError:
        raise BudgetError(f"a budget of {budget} ended within the first step; give more seconds") from None
    if budget.seconds is None or iterates:
        return Pilot(compile_seconds=first.seconds)
    if compiles:
        max_seconds = max(MEASURING * budget.seconds, BRIEF)
        return Pilot(_seconds_per_step(engine, state, budget, max_seconds), first.seconds)
    # The call took longer than loading alone can.
    if first.cpu > BRIEF:
        return Pilot(first.spent, seconds=first.seconds, cpu=first.cpu, state=state)
    measured = deadline.Stopwatch(counts_compilation=True)
    with measured:
        per_step = _seconds_per_step(engine, copy.deepcopy(state), budget, MEASURING * budget.seconds)
    if OF_EACH * per_step <= BESIDE * budget.seconds:
        with first:
            _call_each_once(engine, engine.init(seed, start), warm_up)
    return Pilot(per_step, first.seconds, measured.seconds, measured.cpu, state)


@contextmanager
def planning(method: Method, model: Model, budget: Budget | None) -> Iterator[None]:
    """Inside, plans are made.

    Raises:
        UnsupportedError: this is seen to take more than half as long as the run itself, beforehand or while it does.
    """
    if budget is None or budget.seconds is None:
        yield
        return
    room = PLANNING * budget.seconds
    try:
        with deadline.within(room, LOADING):
            deadline.require(predict_planning(method, model))
            yield
    except deadline.OverdueError as overdue:
        takes = f"more than {format_seconds(max(room, LOADING))}"
        if overdue.args:
            takes = f"about {format_seconds(overdue.args[0])}"
        raise UnsupportedError(
            f"{method.name}: planning takes {takes} for {model.name}, and a budget of {budget} was given; "
            "give more seconds, or count samples"
        ) from None


def check_step(method: Method, tables: Tables, tier: Tier, budget: Budget, chains: int) -> None:
    """Raises BudgetError where a step is of so many updates that it takes longer than the budget, however fast."""
    if budget.seconds is None:
        return
    least = step_updates(method, tables) * chains * UPDATE_SECONDS[tier]
    if least > budget.seconds:
        raise BudgetError(
            f"{method.name}: a budget of {budget} is too short: a sample of {chains} chains takes at least "
            f"{format_seconds(least)}; give more seconds, or fewer chains"
        )


def shortest_batch(engine: Engine) -> float:
    """Seconds of a batch of a run whose budget is one, by an engine's own word where a call of it costs much."""
    return float(getattr(engine, "batch_seconds", BATCH_SECONDS))


def _call_each_once(engine: Engine, state: State, warm_up: WarmUp) -> State:
    """Call every function once, so that it is compiled, and what it loads is there."""
    state = engine.warm(state, 1)
    for last in (False, True):
        state = engine.adapt(state, last)
    engine.look(state)
    engine.slope(state)
    state, _ = engine.temper(state, np.array([0.5]), 1)
    state, _ = warm_up(engine, state, 1, Trace({}))
    return engine.advance(state, 1)[0]


def _seconds_per_step(engine: Engine, state: State, budget: Budget, max_seconds: float) -> float:
    """Measured with growing batches until one takes BATCH_SECONDS.

    The median of a few: a batch that was interrupted once tells too long a time, while on a machine that stays busy
    most are, and burn-in will be. What a batch waited, up to BRIEF, does not keep another from being measured.
    """
    assert budget.seconds is not None
    steps, watch, times = 1, deadline.Stopwatch(counts_compilation=True), list[float]()
    while not times or (min(watch.spent, max(watch.cpu, watch.spent - BRIEF)) < max_seconds and len(times) < MEASURED):
        with watch:
            state, _ = engine.advance(state, steps)
        times.append(watch.last_spent)
        if times[-1] < min(shortest_batch(engine), budget.seconds / 10) and steps < MAX_STEPS:
            times.clear()
            steps *= 2
    return sorted(times)[(len(times) - 1) // 2] / steps
