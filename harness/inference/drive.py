"""The one loop that runs everything: burn-in, then batches until the budget is spent, with checkpoints on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from spinbench.api import Engine, Estimate, State
from spinbench.api.burn_in import Arrival
from spinbench.api.trace import Trace
from spinbench.errors import BudgetError
from spinbench.foundation import deadline
from spinbench.inference.budget import Budget
from spinbench.inference.checkpoints import MOST_VARIABLES, Checkpoint, later
from spinbench.inference.laps import Laps, LapTimes
from spinbench.inference.looks import Clock, Estimates, Looks, Questions, RunClock
from spinbench.inference.trials import BATCH_SECONDS, LOADING, WarmUp, shortest, tried

BRIEF = 2e-3
"""Seconds in which nothing is compiled, nor compiled code found on disk."""
LONG = 60.0
"""Seconds from which the compilation of a whole answer is a part that may be told with it: it takes up to twenty."""
MOST_BURN_IN = 0.3
"""Of a budget in seconds, where burn-in was planned to take a tenth of it, but its steps turn out to be slow; and what
it may wait for others without ending the run later."""
LATE = 1.3
"""Of a budget in seconds, which nothing is begun that is expected to end beyond."""
MAX_BYTES, FEWEST_KEPT = 64 * 2**20, 2
"""Of the trajectory's estimates, of four numbers a variable each; and checkpoints, however large they are."""
WINDOWS = (0.125, 0.25, 0.5, 1.0)
"""Ends of the burn-in's windows, after each of which settings may be adapted."""


@dataclass
class Run:
    """What `drive` and `answer_at_once` return; `state` is the engine's last, of `drive` alone."""

    trace: Trace
    estimate: Estimate
    burn_in: int
    burn_in_seconds: float
    run_seconds: float
    compile_seconds: float
    laps: Laps | None = None
    trajectory: list[Checkpoint] = field(default_factory=list)
    state: State = None


def drive(
    engine: Engine,
    trace: Trace,
    estimate: Callable[[Trace], Estimate],
    budget: Budget,
    *,
    start: np.ndarray,
    seed: int,
    warm_up: WarmUp = lambda engine, state, steps, trace: (state, 0),
    finished: Callable[[Trace], bool] = lambda trace: False,
    checkpoints: int = 12,
) -> Run:
    """Advance `engine` until `budget` is spent, or its tolerance is reached.

    Args:
        engine: a bound program or kernel.
        trace: an empty trace with the method's reductions; the run has at least as many batches as it is made for.
        estimate: the method's estimate of a trace.
        budget: samples or seconds.
        start: (N, C) int8 states to start from.
        seed: of all random numbers.
        warm_up: as `Method.warm_up`, of its tables.
        finished: asked after each batch whether to stop before the budget is spent.
        checkpoints: at most so many entries of the trajectory, spaced geometrically; fewer of models of many variables.

    Raises:
        BudgetError: the seconds end before the first sample, or are seen to be too few for it.
    """
    trial = tried(engine, budget, trace.counted_by is not None, start=start, seed=seed, warm_up=warm_up)
    per_step, clock, estimating = trial.per_step, RunClock(trial.seconds, trial.busy), Estimates(budget)
    if _late(budget, clock.seconds - clock.waited + per_step):
        raise BudgetError(f"a budget of {budget} is too short: a sample takes {per_step:.3g} s; give more seconds")
    with clock:
        state = trial.state if trial.state is not None else engine.init(seed, start)
    total = _burn_in_steps(budget, per_step)
    trace.seconds = budget.seconds
    with _in_time(budget, clock):
        with clock:
            state, done = warm_up(engine, state, total, trace)
        state, warmed = _burn_in(engine, state, max(total - done, 0), clock, _end_of_burn_in(budget), trace)
    burn_in = done + warmed
    budget = _rest(budget, clock, burn_in, per_step)
    run = Run(trace, Estimate(), burn_in, clock.seconds, 0.0, trial.compile_seconds)
    most = min(checkpoints, max(MAX_BYTES // (4 * 8 * max(len(start), 1)), FEWEST_KEPT))
    due, times = _checkpoints(budget, clock.seconds, most), LapTimes()
    looks, questions, final = Looks(budget.samples), Questions(budget.until), None
    may_wait = budget.seconds is None and len(start) <= MOST_VARIABLES  # in seconds, estimates have their share of them
    for steps in _batches(budget, per_step, trace, clock, estimating, shortest(engine)):
        before = trace.samples
        with times(steps), clock, _in_time(budget, clock) if not before else nullcontext():
            state, statistics = engine.advance(state, steps)
        trace.add(statistics, steps)
        times.steps[-1] = max(trace.samples - before, 1)
        if looks.due(trace):
            with clock:
                looks.take(engine, state, trace)
        progress = trace.samples if budget.samples is not None else clock.seconds
        if due and progress >= due[0]:
            due = [t for t in due if t > progress]
            if estimating.due(clock, trace):
                view = trace.coarse()
                point = later(clock.seconds, trace.samples, view, estimate) if may_wait else None
                if point is None:
                    with estimating(view, trace):
                        point = Checkpoint(clock.seconds, trace.samples, estimate(view))
                run.trajectory.append(point)
        if questions.due(trace.samples) and estimating.due(clock, trace):
            with estimating(trace, trace):
                final = estimate(trace)
            if questions.reached(final, trace.samples):
                break
            final = None
        if finished(trace):
            break
    run.run_seconds, run.laps = clock.seconds - run.burn_in_seconds, times.laps()
    run.compile_seconds += clock.compiled
    if run.trajectory and run.trajectory[-1].samples == trace.samples:
        run.trajectory.pop()
    run.estimate, run.state = estimate(trace) if final is None else final, state
    run.trajectory.append(Checkpoint(clock.seconds, trace.samples, run.estimate))
    return run


def answer_at_once(
    engine: Engine, trace: Trace, estimate: Callable[[Trace], Estimate], *, start: np.ndarray, seed: int
) -> Run:
    """Of methods one `advance` of which is the whole answer: the first call compiles, the second is timed.

    What takes longer than `LONG` is not done twice, and compilation that nobody tells of then counts as running; nor is
    what takes less than `BRIEF`, in which nothing compiles.
    """
    state = engine.init(seed, start)
    first, clock, times = RunClock(), RunClock(), LapTimes()
    with times(1), first:
        state, statistics = engine.advance(state, 1)
    if BRIEF <= first.seconds < LONG:
        state, times = engine.init(seed, start), LapTimes()  # the same answer, however long the first took
        with times(1), clock:
            state, statistics = engine.advance(state, 1)
    else:
        clock = first
    trace.add(statistics, 1)
    found = estimate(trace)
    compiling = first.compiled + max(first.seconds - clock.seconds, 0.0)
    run = Run(trace, found, 0, 0.0, clock.seconds, compiling, times.laps())
    run.trajectory.append(Checkpoint(clock.seconds, 1, found))
    return run


def _burn_in_steps(budget: Budget, per_step: float) -> int:
    if budget.burn_in is not None:
        return budget.burn_in
    if budget.samples is not None:
        return math.ceil(budget.samples / 5)
    return max(1, round((budget.seconds or 0.0) / 10 / per_step))


def _end_of_burn_in(budget: Budget) -> float:
    """Seconds on the clock at which windows are cut, where how long they are was for the driver to say."""
    return math.inf if budget.seconds is None or budget.burn_in is not None else MOST_BURN_IN * budget.seconds


def _burn_in(engine: Engine, state: State, total: int, clock: Clock, until: float, trace: Trace) -> tuple[State, int]:
    """At most `total` steps; what takes longer than it was thought to is cut before `until` by the pace so far."""
    done, since = 0, clock.seconds
    for end in WINDOWS:
        steps = math.floor(total * end) - done
        if steps and done and until < math.inf:
            pace = (clock.seconds - since) / done
            steps = min(steps, max(0, int((until - clock.seconds) / max(pace, 1e-9))))
        with clock:
            state = engine.warm(state, steps) if steps else state
            state = engine.adapt(state, end == WINDOWS[-1])
        done += steps
        if trace.watched is not None and steps and end < WINDOWS[-1]:
            with clock:
                state, seen = engine.advance(state, 1)
            done += 1
            trace.arrivals.append(Arrival(done, np.array(seen[trace.watched], dtype=np.float64)))
    return state, done


@contextmanager
def _in_time(budget: Budget, clock: Clock) -> Iterator[None]:
    """Until there is a sample, what is still running when the budget is over is given up, where loops ask for it.

    Raises:
        BudgetError: it was.
    """
    if budget.seconds is None:
        yield
        return
    try:
        with deadline.within(max(LATE * budget.seconds - clock.busy, LOADING)):
            yield
    except deadline.OverdueError:
        raise BudgetError(f"a budget of {budget} ended before the first sample; give more seconds") from None


def _late(budget: Budget, seconds: float) -> bool:
    return budget.seconds is not None and seconds > LATE * budget.seconds


def _rest(budget: Budget, clock: Clock, burn_in: int, per_step: float) -> Budget:
    """The budget after burn-in: it ends later by what was waited while others had the machine, where that is much.

    Raises:
        BudgetError: it is spent.
    """
    if budget.seconds is None:
        return budget
    waited = min(clock.waited, max(0.0, clock.seconds - MOST_BURN_IN * budget.seconds))
    end = budget.seconds + waited
    later = replace(budget, seconds=end)
    if clock.seconds >= end or _late(later, clock.seconds + per_step):
        raise BudgetError(
            f"a budget of {budget} ended within burn-in ({burn_in} samples took {clock.seconds:.3g} s); "
            "give more seconds or less burn_in"
        )
    return later


def _batches(
    budget: Budget, per_step: float, trace: Trace, clock: Clock, estimating: Estimates, least: float
) -> Iterator[int]:
    """Steps of each batch, of `least` seconds in a budget of seconds, until the budget is spent."""
    if budget.seconds is not None and trace.counted_by:
        yield from _growing(budget.seconds, trace, clock, estimating)
        return
    if budget.samples is not None and budget.until is not None:
        yield from _short_first(budget.samples, trace)
        return
    lengths = _batch_lengths(budget, per_step, trace, least)
    while lengths and clock.seconds + estimating.owed(trace) < (budget.seconds or math.inf):
        if trace.samples and _late(budget, clock.with_another):
            return
        if trace.full:
            trace.merge()
            lengths = _doubled(lengths, budget)
        yield lengths.pop(0) if budget.samples is not None else lengths[0]


def _growing(seconds: float, trace: Trace, clock: Clock, estimating: Estimates) -> Iterator[int]:
    """Of an iteration: one step, and then twice as many until a batch takes BATCH_SECONDS, so that the first steps,
    which may be all, are timed where they count."""
    steps = 1
    while clock.seconds + estimating.owed(trace) < seconds:
        if trace.full:
            trace.merge()
        since = clock.seconds
        yield steps
        took = clock.seconds - since
        if took < BATCH_SECONDS and 2 * took <= seconds - clock.seconds:
            steps *= 2
        elif took > 2 * BATCH_SECONDS:
            steps = max(1, steps // 2)


def _short_first(samples: int, trace: Trace) -> Iterator[int]:
    """Of a run that may end long before its budget: single steps, twice as long after each merge of the trace."""
    steps = 1
    while trace.samples < samples:
        if trace.full:
            trace.merge()
            steps *= 2
        yield min(steps, samples - trace.samples)


def _batch_lengths(budget: Budget, per_step: float, trace: Trace, least: float) -> list[int]:
    """Lengths of the batches to come, equal to one step; for a budget in seconds one length, used again and again."""
    if budget.samples is None:
        seconds = min(least, 0.9 * (budget.seconds or 0.0) / max(trace.aimed, 1))
        return [max(1, round(seconds / max(per_step, 1e-9)))]
    batches = min(budget.samples, trace.enough)
    short, longer = divmod(budget.samples, batches)
    return [short + 1] * longer + [short] * (batches - longer)


def _doubled(lengths: list[int], budget: Budget) -> list[int]:
    """After a merge of the trace the batches to come must be twice as long, too."""
    if budget.samples is None:
        return [2 * lengths[0]]
    return [sum(lengths[i : i + 2]) for i in range(0, len(lengths), 2)]


def _checkpoints(budget: Budget, burn_in_seconds: float, count: int) -> list[float]:
    """Geometric: in samples from 1/1000 of them (at least 4), or in seconds of the budget, whose end is left out."""
    if budget.samples is not None:
        first, last = min(max(4.0, budget.samples / 1000), budget.samples), float(budget.samples)
    else:
        last = float(budget.seconds or 0.0)
        first = min(burn_in_seconds + last / 1000, last)
    return [float(t) for t in np.geomspace(first, last, max(count, 1))[: count - 1]]
