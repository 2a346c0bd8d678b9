"""Budgets in seconds: what fits into them, what is refused in time, and what does not count."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.errors import BudgetError
from spinbench.foundation import deadline
from spinbench.inference import preflight
from spinbench.inference.budget import Budget
from spinbench.inference.driver import Run
from spinbench.inference.schedule import LATE
from tests.helpers.clock import Clock
from tests.helpers.fake_engine import FakeEngine, run_chains, run_iteration

INTERPRETED = {"compiles": False, "pieces": 100}
COMPILING = {"compile_seconds": 20.0, "pieces": 100}
WITHIN_BURN_IN = r"ended within burn-in .*; give more seconds or less burn_in"


@pytest.mark.parametrize(
    ("budget", "engine", "refusal", "busy"),
    [
        pytest.param(
            Budget(seconds=0.01, burn_in=100), {"seconds": 1e-3}, WITHIN_BURN_IN, 0.2, id="burn-in is too long"
        ),
        # what compiles, warm and advance, and what tells the time of a step
        pytest.param(Budget(seconds=1), {"seconds": 2}, "1 s is too short: a sample takes 2 s", 3 * 2, id="a sample"),
        pytest.param(Budget(seconds=1), {"seconds": 0.8}, WITHIN_BURN_IN, 4, id="a sample after burn-in"),
        pytest.param(
            Budget(seconds=1, burn_in=10),
            {"seconds": 1.2, "warm_seconds": 0.02},
            WITHIN_BURN_IN,
            4,
            id="a sample after a fast burn-in",
        ),
        pytest.param(
            Budget(seconds=0.1, burn_in=50),
            {"seconds": 5e-3, "waits": {6: 0.25}},
            WITHIN_BURN_IN,
            0.4,
            id="what computes, although burn-in waited",
        ),
        pytest.param(
            Budget(seconds=1), {"seconds": 5, **COMPILING}, "ended within the first step", 20 + 2 * LATE, id="compiling"
        ),
        pytest.param(Budget(seconds=1), {"seconds": 0.6, **INTERPRETED}, "give more seconds", LATE, id="interpreted"),
        pytest.param(
            Budget(seconds=1), {"seconds": 5, **INTERPRETED}, "give more seconds", LATE, id="interpreted, 5 s"
        ),
    ],
)
def test_seconds_too_few_are_refused(
    clock: Clock, budget: Budget, engine: dict[str, Any], refusal: str, busy: float
) -> None:
    with pytest.raises(BudgetError, match=refusal):
        run_chains(budget, FakeEngine(clock, **engine))
    assert clock.busy <= busy


def test_a_first_iteration_that_takes_too_long_is_given_up(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="ended before the first sample"):
        run_iteration(Budget(seconds=1.0, burn_in=0), FakeEngine(clock, 20.0, compiles=False, pieces=1000))
    assert clock.busy <= 1.05 * LATE


@pytest.mark.parametrize("step", [0.1, 0.4, 0.7, 1.0, 3.0])
def test_what_compiles_without_a_step_is_tried_for_half_of_the_budget_or_one_step(clock: Clock, step: float) -> None:
    with contextlib.suppress(BudgetError):
        run_chains(Budget(seconds=1.0), FakeEngine(clock, step, prepare=lambda state: state))
    assert clock.busy <= LATE + preflight.MEASURING + step  # the last to find out how long it takes


@pytest.mark.parametrize(("step", "samples"), [(0.6, 2), (0.7, 1), (0.3, 4), (1.2, 1)])
def test_no_sample_is_begun_that_would_end_late(clock: Clock, step: float, samples: int) -> None:
    assert run_chains(Budget(seconds=1.0, burn_in=0), FakeEngine(clock, step)).trace.samples == samples


@pytest.mark.parametrize(
    ("engine", "latest"),
    [
        pytest.param({"seconds": 1e-3}, 1.02, id="compiled"),
        pytest.param({"seconds": 0.01, **COMPILING}, 1.3, id="compiling"),
        pytest.param({"seconds": 0.01, **INTERPRETED}, 1.05, id="interpreted"),
        pytest.param({"seconds": 0.15, **INTERPRETED}, 1.2, id="interpreted, 0.15 s"),
        pytest.param({"seconds": 0.3, **INTERPRETED}, 1.4, id="interpreted, 0.3 s"),
    ],
)
def test_seconds_include_burn_in_and_end_in_time(clock: Clock, engine: dict[str, Any], latest: float) -> None:
    outcome = run_chains(Budget(seconds=1.0), made := FakeEngine(clock, **engine))
    total = outcome.burn_in_seconds + outcome.run_seconds
    assert 1.0 - 2 * made.seconds <= total <= latest
    assert outcome.burn_in >= 1
    assert outcome.trace.samples >= 1
    assert outcome.trajectory[-1].seconds == pytest.approx(total)
    if not made.compiles:
        assert outcome.compile_seconds + total == pytest.approx(clock.now)
        assert outcome.compile_seconds <= made.seconds + 1e-9
        assert clock.now <= latest


@pytest.mark.parametrize("told", [False, True])
def test_what_a_run_finds_out_on_the_way_that_it_has_to_compile_is_not_its_time(clock: Clock, told: bool) -> None:
    def warm_up(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
        if steps > 1:  # not when it is tried
            with deadline.compiling():
                clock.sleep(20.0)
                if told:  # by the compiler itself, as well
                    deadline.add_compilation(15.0, 15.0)
        return engine.warm(state, 1), 1

    outcome = run_chains(Budget(seconds=1.0), FakeEngine(clock, 0.01), warm_up=warm_up)
    assert outcome.compile_seconds == pytest.approx(20.0, abs=0.1)
    assert 0.8 <= outcome.burn_in_seconds + outcome.run_seconds <= 1.3
    assert outcome.trace.samples > 50


@pytest.mark.parametrize("call", [3, 4, 5])
def test_one_batch_that_waited_does_not_make_burn_in_short(clock: Clock, call: int) -> None:
    assert run_chains(Budget(seconds=2.0), FakeEngine(clock, 5e-3, waits={call: 0.2})).burn_in == 40


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("calls", [*([call] for call in range(1, 9)), range(1, 5), range(3, 9)])
def test_a_budget_that_waited_for_others_before_its_first_sample_is_not_spent(
    clock: Clock, calls: Iterable[int], compiles: bool
) -> None:
    waits = dict.fromkeys(calls, 0.25)
    engine = FakeEngine(clock, 5e-3, waits={call: 0.25 / len(waits) for call in waits}, compiles=compiles)
    assert run_chains(Budget(seconds=0.1), engine).trace.samples >= 1
    assert clock.busy <= LATE * 0.1 + 3 * 5e-3 + 0.05  # compilation, and what tells the time of a step


def test_burn_in_that_turns_out_slow_leaves_time_for_samples(clock: Clock) -> None:
    outcome = run_chains(Budget(seconds=0.4), engine := FakeEngine(clock, 5e-4, slowdown=20))
    assert outcome.burn_in_seconds <= 0.3 * 0.4 + 1e-9
    assert 10 <= outcome.burn_in == engine.runs[-1]["warm"] <= 12  # 80 were planned
    assert engine.runs[-1]["adapt"][-1] == (outcome.burn_in, True)
    assert outcome.trace.samples >= 1


def run_estimating(clock: Clock, seconds: Any) -> Run:
    """A run of 1 s whose estimates take so many seconds, by their number and their trace."""
    numbers = itertools.count(1)

    def estimate(trace: Trace) -> Estimate:
        clock.sleep(seconds(next(numbers), trace))
        return Estimate()

    return run_chains(Budget(seconds=1.0), FakeEngine(clock, 1e-3, **INTERPRETED), estimate=estimate)


@pytest.mark.parametrize("each", [1e-4, 1e-3, 1e-2])
def test_estimates_take_no_more_than_their_share(clock: Clock, each: float) -> None:
    outcome = run_estimating(clock, lambda number, trace: each * len(trace.counts))
    assert clock.now - outcome.compile_seconds <= 1.3 + each
    assert outcome.run_seconds >= 0.5
    assert len(outcome.trajectory) >= 2
    assert clock.now > outcome.burn_in_seconds + outcome.run_seconds


@pytest.mark.parametrize("when", [1, 2])
def test_what_an_estimate_does_once_and_for_all_does_not_end_the_run(clock: Clock, when: int) -> None:
    outcome = run_estimating(clock, lambda number, trace: 0.2 if number == when else 1e-4)
    assert outcome.burn_in_seconds + outcome.run_seconds >= 0.99
    assert len(outcome.trajectory) >= 3


@pytest.mark.parametrize("budget", [Budget(samples=10_000, burn_in=0), Budget(seconds=30.0, burn_in=0)])
def test_iterations_count_and_time_the_steps_that_they_take(clock: Clock, budget: Budget) -> None:
    outcome = run_iteration(budget, FakeEngine(clock, 1e-3, end=37), finished=lambda trace: trace.samples == 37)
    assert outcome.trace.samples == outcome.trajectory[-1].samples == 37
    assert outcome.burn_in == 0
    assert outcome.run_seconds == pytest.approx(37e-3)
    assert outcome.laps is not None
    assert outcome.laps.mean_cpu == pytest.approx(1e-3)
    assert min(outcome.laps.wall) >= 0.999e-3


def test_a_budget_in_seconds_ends_an_iteration_that_does_not(clock: Clock) -> None:
    outcome = run_iteration(Budget(seconds=0.05, burn_in=0), FakeEngine(clock, 4e-3))
    assert 0.05 <= outcome.run_seconds < 0.06
    assert outcome.trace.samples < 37


@pytest.mark.parametrize(
    ("budget", "seconds", "estimates"),
    [
        (Budget(seconds=0.1, burn_in=0), 3e-3, range(1, 3)),  # the first and the last
        (Budget(seconds=0.4, burn_in=0), 3e-3, range(2, 5)),
        (Budget(samples=37, burn_in=0), 0.0, range(1, 2)),
    ],
)
def test_estimates_on_the_way_wait_until_the_run_has_taken_twice_as_long(
    clock: Clock, budget: Budget, seconds: float, estimates: range
) -> None:
    """What a checkpoint needs is kept all the same, and estimated from when somebody asks."""

    def estimate(trace: Trace) -> Estimate:
        clock.sleep(0.05)
        return Estimate(log_z=float(trace.samples))

    outcome = run_iteration(budget, FakeEngine(clock, seconds, end=37), estimate=estimate)
    assert sum(isinstance(point.source, Estimate) for point in outcome.trajectory) in estimates
    assert clock.now < 0.75
    assert len(outcome.trajectory) >= 6
    assert [point.estimate.log_z for point in outcome.trajectory] == [point.samples for point in outcome.trajectory]


@pytest.mark.parametrize("compiles", [True, False])
def test_seconds_of_the_cpu_buy_the_same_samples_whatever_others_do(clock: Clock, compiles: bool) -> None:
    """By wall-clock a run that waits makes fewer; what waits are is of no interest to one by the CPU's."""
    samples = {}
    for cpu in (False, True):
        for waits in ({}, dict.fromkeys(range(1, 2000), 0.02)):
            engine = FakeEngine(clock, 5e-3, waits=waits, compiles=compiles)
            with deadline.budgets_on(cpu=cpu):
                samples[cpu, bool(waits)] = run_chains(Budget(seconds=1.0, cpu=cpu), engine).trace.samples
    assert samples[True, True] == pytest.approx(samples[True, False], abs=1)
    assert samples[False, False] == pytest.approx(samples[True, False], abs=1)
    assert samples[False, True] < 0.6 * samples[False, False]
