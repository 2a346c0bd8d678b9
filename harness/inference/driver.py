"""The one loop that runs everything: burn-in, then batches until the budget is spent, with checkpoints on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from spinbench.api import Engine, Estimate, State, Trace
from spinbench.api.burn_in import WINDOWS as WINDOWS
from spinbench.api.burn_in import Arrival
from spinbench.foundation.deadline import Stopwatch
from spinbench.inference.batch_timings import MAX_BYTES, MAX_SHARED_BYTES, MAX_VARIABLES, Checkpoint, Laps
from spinbench.inference.budget import Budget
from spinbench.inference.observers import Snapshots, StoppingRule
from spinbench.inference.preflight import WarmUp, preflight, shortest_batch
from spinbench.inference.schedule import SampleSchedule, Schedule, TimeSchedule

# Seconds in which nothing can be compiled or loaded from the disk: a first call as short as this is the answer.
BRIEF = 2e-3
# Longest first call in seconds that is repeated to measure its compilation, which takes twenty at most.
LONG = 60.0
# Limits of the estimates along a trajectory (four numbers per variable), and the number of checkpoints that are kept
# whatever their size.
MAX_TRAJECTORY_BYTES, MIN_CHECKPOINTS = 64 * 2**20, 2


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
    pilot = preflight(engine, budget, trace.counts_iterations, start=start, seed=seed, warm_up=warm_up)
    clock = Stopwatch(pilot.seconds, pilot.cpu)
    schedule: Schedule
    if budget.samples is not None:
        schedule = SampleSchedule(budget, trace)
    else:
        schedule = TimeSchedule(budget, trace, clock, pilot.seconds_per_step, shortest_batch(engine))
    with clock:
        state = pilot.state if pilot.state is not None else engine.init(seed, start)
    trace.seconds = budget.seconds
    with schedule.first_sample():
        state, burn_in = _burn_in(engine, state, clock, schedule, trace, warm_up)
    schedule.extend_after_burn_in(burn_in)
    run = Run(trace, Estimate(), burn_in, clock.seconds, 0.0, pilot.compile_seconds)
    max_checkpoints = max(MAX_TRAJECTORY_BYTES // (4 * 8 * max(len(start), 1)), MIN_CHECKPOINTS)
    due = schedule.checkpoints(min(checkpoints, max_checkpoints))
    snapshots = Snapshots(budget, engine, state, start, seed, trace)
    stopping_rule, final = StoppingRule(budget), None
    laps: list[tuple[int, float, float]] = []
    for steps in schedule.batches():
        before, rest, wall, cpu = trace.samples, steps, 0.0, 0.0
        while rest:
            with clock, nullcontext() if before else schedule.first_sample():
                state, statistics, some = snapshots.advance(engine, state, rest, trace)
            trace.add(statistics, some, joined=rest < steps)
            rest, wall, cpu = rest - some, wall + clock.last, cpu + clock.last_cpu
            if trace.samples >= snapshots.next:
                with clock:
                    snapshots.take(engine, state, trace)
        laps.append((max(trace.samples - before, 1), wall, cpu))
        if due and schedule.progress >= due[0]:
            due = [t for t in due if t > schedule.progress]
            run.trajectory += _checkpoints(trace, clock.seconds, estimate, schedule, len(start))
        if trace.samples >= stopping_rule.next and schedule.may_estimate():
            with schedule.estimating(trace):
                final = estimate(trace)
            if stopping_rule.is_reached(final, trace.samples):
                break
            final = None
        if finished(trace):
            break
    run.run_seconds, run.laps, run.state = clock.seconds - run.burn_in_seconds, Laps.of_batches(laps), state
    run.compile_seconds += clock.compiled
    if run.trajectory and run.trajectory[-1].samples == trace.samples:
        run.trajectory.pop()
    run.estimate = final or estimate(trace)
    run.trajectory.append(Checkpoint(clock.seconds, trace.samples, run.estimate))
    return run


def answer_at_once(
    engine: Engine, trace: Trace, estimate: Callable[[Trace], Estimate], *, start: np.ndarray, seed: int
) -> Run:
    """Of methods one `advance` of which is the whole answer: the first call compiles, the second is timed.

    What takes longer than `LONG` is not done twice, and compilation that nobody tells of then counts as running; nor is
    what takes less than `BRIEF`, in which nothing compiles.
    """
    first = clock = Stopwatch()
    state = engine.init(seed, start)
    with first:
        _, statistics = engine.advance(state, 1)
    if BRIEF <= first.seconds < LONG:
        # Repeated without compilation: the same answer, whatever the first call took.
        state, clock = engine.init(seed, start), Stopwatch()
        with clock:
            _, statistics = engine.advance(state, 1)
    trace.add(statistics, 1)
    answer = estimate(trace)
    compiling = first.compiled + max(first.seconds - clock.seconds, 0.0)
    laps = Laps.of_batches([(1, clock.last, clock.last_cpu)])
    return Run(trace, answer, 0, 0.0, clock.seconds, compiling, laps, [Checkpoint(clock.seconds, 1, answer)])


def _burn_in(
    engine: Engine, state: State, clock: Stopwatch, schedule: Schedule, trace: Trace, warm_up: WarmUp
) -> tuple[State, int]:
    """The method's own warm-up, then windows that are cut, by the pace so far, where they turn out to take too long."""
    with clock:
        state, warm_up_steps = warm_up(engine, state, schedule.burn_in, trace)
    done, since, total = 0, clock.spent, max(schedule.burn_in - warm_up_steps, 0)
    for end in WINDOWS:
        steps = int(total * end) - done
        if steps and done and schedule.end_of_burn_in < np.inf:
            pace = (clock.spent - since) / done
            steps = min(steps, max(0, int((schedule.end_of_burn_in - clock.spent) / max(pace, 1e-9))))
        with clock:
            if steps:
                state = engine.warm(state, steps)
            state = engine.adapt(state, end == WINDOWS[-1])
        done += steps
        if trace.watched is not None and steps and end < WINDOWS[-1]:
            with clock:
                state, statistics = engine.advance(state, 1)
            done += 1
            trace.arrivals.append(Arrival(done, np.array(statistics[trace.watched], dtype=np.float64)))
    return state, warm_up_steps + done


def _checkpoints(
    trace: Trace, seconds: float, estimate: Callable[[Trace], Estimate], schedule: Schedule, variables: int
) -> list[Checkpoint]:
    """One, estimated when it is asked for, where the run has no time for that, or takes none of its own, and what it
    keeps is little; none where it is much and there is no time."""
    view = trace.coarse()
    max_bytes = MAX_SHARED_BYTES if view is trace else MAX_BYTES
    is_small = variables <= MAX_VARIABLES and 8 * view.numbers * len(view.counts) <= max_bytes
    has_time = schedule.may_estimate()
    if is_small and (isinstance(schedule, SampleSchedule) or not has_time):
        return [Checkpoint(seconds, trace.samples, partial(estimate, view.as_it_is()))]
    if not has_time:
        return []
    with schedule.estimating(view):
        return [Checkpoint(seconds, trace.samples, estimate(view))]
