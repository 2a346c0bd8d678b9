"""The driver: exact sample counts, burn-in windows, checkpoints and budgets in seconds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spinbench.api import Estimate
from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace
from spinbench.errors import BudgetError
from spinbench.foundation import deadline
from spinbench.inference import observers, preflight, schedule
from spinbench.inference.budget import Budget
from spinbench.inference.driver import Run, answer_at_once, drive
from tests.helpers.clock import Clock


class Counter:
    """An engine that counts what it is asked for; each step takes `seconds`."""

    def __init__(self, seconds: float = 0.0, seen: bool = False) -> None:
        self.seconds = seconds
        self.seen = seen
        self.runs: list[dict[str, Any]] = []

    def init(self, seed: int, start: np.ndarray) -> dict[str, Any]:
        self.runs.append({"warm": 0, "adapt": [], "steps": 0})
        return self.runs[-1]

    def warm(self, state: dict[str, Any], steps: int) -> dict[str, Any]:
        time.sleep(self.seconds * steps)
        state["warm"] += steps
        return state

    def adapt(self, state: dict[str, Any], last: bool) -> dict[str, Any]:
        state["adapt"].append((state["warm"], last))
        return state

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        time.sleep(self.seconds * steps)
        state["steps"] += steps
        return state, {"s": np.full((2, 3), float(steps))}

    def look(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"steps": np.full(3, float(state["steps"]))} if self.seen else {}

    def climb(self, state: dict[str, Any], betas: np.ndarray, sweeps: int) -> tuple[dict[str, Any], np.ndarray]:
        state["climbed"] = state.get("climbed", 0) + sweeps * len(betas)
        return state, np.zeros((sweeps, len(betas), 3))

    def slopes(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"slope": np.full(3, float(state["steps"]))}


def estimate(trace: Trace) -> Estimate:
    return Estimate(marginals=trace.mean("s").mean(axis=-1))


def run(budget: Budget, engine: Counter, *, batches: int = 0, **options: Any) -> Run:
    return drive(
        engine, Trace({"s": "sum"}, batches), estimate, budget, start=np.zeros((2, 3), dtype=np.int8), seed=0, **options
    )


@pytest.mark.parametrize("samples", [1, 2, 7, 255, 256, 257, 1000, 12_345])
def test_samples_are_counted_exactly(samples: int) -> None:
    engine = Counter()
    outcome = run(Budget(samples=samples), engine)
    assert outcome.trace.samples == samples == engine.runs[-1]["steps"]
    assert outcome.burn_in == engine.runs[-1]["warm"] == -(-samples // 5)
    np.testing.assert_array_equal(outcome.estimate.marginals, [1.0, 1.0])
    assert max(outcome.trace.counts) - min(outcome.trace.counts) <= 1


def test_burn_in_windows() -> None:
    engine = Counter()
    run(Budget(samples=10, burn_in=80), engine)
    assert engine.runs[-1]["adapt"] == [(10, False), (20, False), (40, False), (80, True)]


def test_what_the_method_warms_up_counts_as_burn_in() -> None:
    def half(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
        state, slopes = engine.climb(state, np.array([0.0, 0.5]), steps // 4)
        trace.climb = Climb(np.array([0.0, 0.5]), slopes)
        return state, steps // 2

    engine = Counter(seen=True)
    outcome = run(Budget(samples=100, burn_in=80), engine, warm_up=half)
    assert (engine.runs[-1]["climbed"], engine.runs[-1]["warm"], outcome.burn_in) == (40, 40, 80)
    assert engine.runs[-1]["adapt"] == [(5, False), (10, False), (20, False), (40, True)]
    assert [list(seen) for seen in outcome.trace.looks] == [["slope"]] * len(outcome.trace.looks)
    assert outcome.trace.looks

    def longer(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
        return state, steps + 7

    outcome = run(Budget(samples=100, burn_in=80), engine, warm_up=longer)
    assert (engine.runs[-1]["warm"], outcome.burn_in) == (0, 87)


def test_burn_in_tells_where_chains_were_at_the_ends_of_its_windows() -> None:
    def watching(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
        trace.watched = "s"
        return state, 0

    for burn_in, steps in ((80, [11, 21, 41]), (4, [2]), (1, []), (0, [])):
        engine = Counter()
        outcome = run(Budget(samples=10, burn_in=burn_in), engine, warm_up=watching)
        assert [arrival.steps for arrival in outcome.trace.arrivals] == steps
        assert all((arrival.values == 1).all() for arrival in outcome.trace.arrivals)
        assert outcome.burn_in == burn_in == engine.runs[-1]["warm"] + len(steps)
        assert outcome.trace.samples == 10


def test_no_burn_in_still_freezes() -> None:
    engine = Counter()
    run(Budget(samples=10, burn_in=0), engine)
    assert engine.runs[-1]["warm"] == 0
    assert engine.runs[-1]["adapt"][-1] == (0, True)


def test_checkpoints_are_geometric_and_end_with_the_run() -> None:
    outcome = run(Budget(samples=10_000), Counter(), checkpoints=8)
    samples = np.array([point.samples for point in outcome.trajectory])
    assert samples[-1] == 10_000
    assert 6 <= len(samples) <= 9
    assert (np.diff(samples) > 0).all()
    assert (np.diff([point.seconds for point in outcome.trajectory]) >= 0).all()
    ratios = samples[3:] / samples[2:-1]
    assert ratios.max() / ratios.min() < 1.6


def test_runs_of_many_numbers_have_longer_batches_and_fewer_checkpoints() -> None:
    """No more batches than are kept, so that none has to be merged, and no more estimates than fit."""
    n, engine = 800_000, Counter()
    trace = Trace({"s": "sum"}, chains=2, numbers=2 * n)
    outcome = drive(engine, trace, estimate, Budget(samples=100), start=np.zeros((n, 2), dtype=np.int8), seed=0)
    assert sorted(set(outcome.trace.counts)) == [10]
    assert [point.samples for point in outcome.trajectory] == [10, 100]


def test_seconds_include_burn_in_and_end_in_time(clock: Clock) -> None:
    outcome = run(Budget(seconds=0.3), Counter(seconds=1e-3))
    total = outcome.burn_in_seconds + outcome.run_seconds
    assert total >= 0.3
    assert outcome.burn_in >= 1
    assert outcome.trace.samples >= 1
    assert outcome.trajectory[-1].seconds == pytest.approx(total)


def test_seconds_too_few_for_burn_in(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="within burn-in"):
        run(Budget(seconds=0.01, burn_in=100), Counter(seconds=1e-3))


def test_seconds_too_few_for_a_sample_are_refused_before_burn_in(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="a budget of 1 s is too short: a sample takes 2 s"):
        run(Budget(seconds=1.0), Counter(seconds=2.0))
    assert clock.now == 3 * 2.0  # what compiles, warm and advance, and what tells the time of a step
    with pytest.raises(BudgetError, match="within burn-in"):
        run(Budget(seconds=1.0), Counter(seconds=0.8))


@pytest.mark.parametrize(("step", "samples"), [(0.6, 2), (0.7, 1), (0.3, 4), (1.2, 1)])
def test_no_sample_is_begun_that_would_end_late(clock: Clock, step: float, samples: int) -> None:
    assert run(Budget(seconds=1.0, burn_in=0), Counter(seconds=step)).trace.samples == samples


class Prepared(Counter):
    """It is compiled without a step."""

    def prepare(self, state: dict[str, Any]) -> dict[str, Any]:
        return state


@pytest.mark.parametrize("step", [0.1, 0.4, 0.7, 1.0, 3.0])
def test_what_compiles_without_a_step_is_tried_for_half_of_the_budget_or_one_step(clock: Clock, step: float) -> None:
    with contextlib.suppress(BudgetError):
        run(Budget(seconds=1.0), Prepared(seconds=step))
    assert clock.busy <= schedule.LATE + preflight.MEASURING + step  # the last to find out how long it takes


class Compiling(Counter):
    """Its first step compiles, and its steps ask whether they are to end."""

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if len(self.runs) == 1 and not state["steps"]:
            time.sleep(20.0)
            deadline.compiled(20.0, 20.0)
        for _ in range(100):
            deadline.check()
            time.sleep(self.seconds * steps / 100)
        state["steps"] += steps
        return state, {"s": np.full((2, 3), float(steps))}

    def warm(self, state: dict[str, Any], steps: int) -> dict[str, Any]:
        return self.advance(state, steps)[0]


@pytest.mark.parametrize(("step", "refused"), [(0.01, False), (5.0, True)])
def test_deadlines_do_not_count_compilation(clock: Clock, step: float, refused: bool) -> None:
    with pytest.raises(BudgetError, match="within the first step") if refused else contextlib.nullcontext():
        run(Budget(seconds=1.0), Compiling(seconds=step))
    assert clock.busy <= 20 + 2 * schedule.LATE


@pytest.mark.parametrize("told", [False, True])
def test_what_a_run_finds_out_on_the_way_that_it_has_to_compile_is_not_its_time(clock: Clock, told: bool) -> None:
    def climb(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
        if steps > 1:  # not when it is tried
            with deadline.compiling():
                time.sleep(20.0)
                if told:  # by the compiler itself, as well
                    deadline.compiled(15.0, 15.0)
        return engine.warm(state, 1), 1

    outcome = run(Budget(seconds=1.0), Counter(seconds=0.01), warm_up=climb)
    assert outcome.compile_seconds == pytest.approx(20.0, abs=0.1)
    assert 0.8 <= outcome.burn_in_seconds + outcome.run_seconds <= 1.3
    assert outcome.trace.samples > 50


class Stuck(Counter):
    """An iteration: none of its steps is tried, and the first takes long."""

    compiles = False

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        for _ in range(1000):
            deadline.check()
            time.sleep(self.seconds * steps / 1000)
        state["steps"] += steps
        return state, {"s": np.full((2, 3), float(state["steps"]))}


def test_a_first_iteration_that_takes_too_long_is_given_up(clock: Clock) -> None:
    trace, start = Trace({"s": "last"}, counted_by="s"), np.zeros((2, 3), dtype=np.int8)
    with pytest.raises(BudgetError, match="ended before the first sample"):
        drive(Stuck(20.0), trace, lambda _: Estimate(), Budget(seconds=1.0, burn_in=0), start=start, seed=0)
    assert clock.busy <= 1.05 * schedule.LATE


class Interrupted(Counter):
    """Some of its calls, of those that warm and advance, wait for others."""

    def __init__(self, clock: Clock, calls: Sequence[int], seconds: float, compiles: bool = True) -> None:
        super().__init__(seconds=5e-3)
        self.clock, self.waiting, self.waits, self.compiles, self.calls = clock, calls, seconds, compiles, 0

    def _wait(self) -> None:
        self.calls += 1
        if self.calls in self.waiting:
            self.clock.wait(self.waits)

    def warm(self, state: dict[str, Any], steps: int) -> dict[str, Any]:
        self._wait()
        return super().warm(state, steps)

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        self._wait()
        return super().advance(state, steps)


@pytest.mark.parametrize("call", [3, 4, 5])
def test_one_batch_that_waited_does_not_make_burn_in_short(clock: Clock, call: int) -> None:
    assert run(Budget(seconds=2.0), Interrupted(clock, [call], 0.2)).burn_in == 40


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("calls", [*([call] for call in range(1, 9)), range(1, 5), range(3, 9)])
def test_a_budget_that_waited_for_others_before_its_first_sample_is_not_spent(
    clock: Clock, calls: Sequence[int], compiles: bool
) -> None:
    outcome = run(Budget(seconds=0.1), Interrupted(clock, calls, 0.25 / len(calls), compiles))
    assert outcome.trace.samples >= 1
    assert clock.busy <= schedule.LATE * 0.1 + 3 * 5e-3 + 0.05  # compilation, and what tells the time of a step


class SlowSamples(Counter):
    """Burn-in is fast."""

    def warm(self, state: dict[str, Any], steps: int) -> dict[str, Any]:
        time.sleep(0.02 * steps)
        state["warm"] += steps
        return state


def test_no_sample_is_begun_after_a_short_burn_in_that_would_end_late(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="within burn-in"):
        run(Budget(seconds=1.0, burn_in=10), SlowSamples(seconds=1.2))


def test_a_budget_ends_for_what_computes_in_time_although_burn_in_waited(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="within burn-in"):
        run(Budget(seconds=0.1, burn_in=50), Interrupted(clock, [6], 0.25))


class SlowerLater(Counter):
    """Its steps take twenty times as long once they count."""

    def init(self, seed: int, start: np.ndarray) -> dict[str, Any]:
        if len(self.runs) == 1:
            self.seconds *= 20
        return super().init(seed, start)


def test_burn_in_that_turns_out_slow_leaves_time_for_samples(clock: Clock) -> None:
    engine = SlowerLater(seconds=5e-4)
    outcome = run(Budget(seconds=0.4), engine)
    assert outcome.burn_in_seconds <= 0.3 * 0.4 + 1e-9
    assert 10 <= outcome.burn_in == engine.runs[-1]["warm"] <= 12  # 80 were planned
    assert engine.runs[-1]["adapt"][-1] == (outcome.burn_in, True)
    assert outcome.trace.samples >= 1


class Interpreted(Counter):
    """Nothing is compiled, and loops in Python keep the deadline."""

    compiles = False

    def advance(self, state: dict[str, Any], steps: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        for _ in range(100):
            deadline.check()
            time.sleep(self.seconds * steps / 100)
        state["steps"] += steps
        return state, {"s": np.full((2, 3), float(steps))}


@pytest.mark.parametrize(("seconds", "most"), [(0.01, 1.05), (0.15, 1.2), (0.3, 1.4)])
def test_what_compiles_nothing_ends_in_time_all_in_all(clock: Clock, seconds: float, most: float) -> None:
    outcome = run(Budget(seconds=1.0), Interpreted(seconds))
    assert outcome.trace.samples >= 1
    assert outcome.compile_seconds + outcome.burn_in_seconds + outcome.run_seconds == pytest.approx(clock.now)
    assert outcome.compile_seconds <= seconds + 1e-9
    assert clock.now <= most


@pytest.mark.parametrize("seconds", [0.6, 5.0])
def test_what_compiles_nothing_is_refused_in_time(clock: Clock, seconds: float) -> None:
    with pytest.raises(BudgetError, match="give more seconds"):
        run(Budget(seconds=1.0), Interpreted(seconds))
    assert clock.now <= schedule.LATE


def test_steps_that_are_seen_to_be_too_long_are_refused_before_the_run(clock: Clock) -> None:
    with pytest.raises(BudgetError, match="a budget of 1 s is too short: a sample takes 2 s"):
        run(Budget(seconds=1.0), engine := Counter(2.0))
    assert len(engine.runs) == 1


def test_what_compiles_nothing_is_not_tried_where_samples_are_counted() -> None:
    engine = Interpreted()
    run(Budget(samples=10), engine)
    assert [state["steps"] for state in engine.runs] == [10]


@pytest.mark.parametrize("each", [1e-4, 1e-3, 1e-2])
def test_estimates_take_no_more_than_their_share(clock: Clock, each: float) -> None:
    def slow(trace: Trace) -> Estimate:
        time.sleep(each * len(trace.counts))
        return Estimate()

    start = np.zeros((2, 3), dtype=np.int8)
    outcome = drive(Interpreted(1e-3), Trace({"s": "sum"}), slow, Budget(seconds=1.0), start=start, seed=0)
    assert clock.now - outcome.compile_seconds <= 1.3 + each
    assert outcome.run_seconds >= 0.5
    assert len(outcome.trajectory) >= 2
    assert clock.now > outcome.burn_in_seconds + outcome.run_seconds


@pytest.mark.parametrize("when", [1, 2])
def test_what_an_estimate_does_once_and_for_all_does_not_end_the_run(clock: Clock, when: int) -> None:
    calls: list[int] = []

    def once(trace: Trace) -> Estimate:
        calls.append(trace.samples)
        time.sleep(0.2 if len(calls) == when else 1e-4)
        return Estimate()

    start = np.zeros((2, 3), dtype=np.int8)
    outcome = drive(Interpreted(1e-3), Trace({"s": "sum"}), once, Budget(seconds=1.0), start=start, seed=0)
    assert outcome.burn_in_seconds + outcome.run_seconds >= 0.99
    assert len(calls) >= 3


@pytest.mark.parametrize("samples", [100, 1000, 1001])
def test_many_batches_are_merged_not_dropped(monkeypatch: pytest.MonkeyPatch, samples: int) -> None:
    monkeypatch.setattr("spinbench.api.trace.MAX_BATCHES", 16)
    outcome = run(Budget(samples=samples), Counter())
    assert outcome.trace.samples == samples
    counts = outcome.trace.counts
    assert len(counts) <= 16
    assert max(counts[:-1]) <= 1.5 * min(counts[:-1])  # the last one is what remains
    np.testing.assert_array_equal(outcome.estimate.marginals, [1.0, 1.0])


@pytest.mark.parametrize(("brief", "times"), [(0.0, 2), (np.inf, 1)])
def test_direct_methods_advance_to_compile_and_to_be_timed(
    monkeypatch: pytest.MonkeyPatch, brief: float, times: int
) -> None:
    monkeypatch.setattr("spinbench.inference.driver.BRIEF", brief)
    engine = Counter()
    outcome = answer_at_once(engine, Trace({"s": "sum"}), estimate, start=np.zeros((2, 3), dtype=np.int8), seed=0)
    assert [state["steps"] for state in engine.runs] == [1] * times
    assert outcome.trace.samples == 1
    assert len(outcome.trajectory) == 1


def test_compilation_that_is_told_is_no_running_where_nothing_is_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiling(Counter):
        def advance(self, state: Any, steps: int) -> Any:
            deadline.compiled(1000.0, 0.0)
            return super().advance(state, steps)

    monkeypatch.setattr("spinbench.inference.driver.LONG", -np.inf)
    outcome = answer_at_once(Compiling(), Trace({"s": "sum"}), estimate, start=np.zeros((2, 3), dtype=np.int8), seed=0)
    assert outcome.compile_seconds == 1000.0
    assert outcome.run_seconds < 0  # of the wall, less what was told


def test_a_finished_run_ends_before_its_budget() -> None:
    outcome = run(Budget(samples=1000, burn_in=0), Counter(), finished=lambda trace: trace.samples >= 40)
    assert 40 <= outcome.trace.samples < 50
    assert outcome.trajectory[-1].samples == outcome.trace.samples


def test_as_many_batches_as_are_wanted(clock: Clock) -> None:
    assert len(run(Budget(samples=1000), Counter(), batches=400).trace.counts) == 400
    assert len(run(Budget(samples=100), Counter(), batches=400).trace.counts) == 100
    lengths = run(Budget(seconds=0.2), Counter(seconds=1e-4), batches=400).trace.counts[:-1]
    assert max(lengths) <= 10  # 0.45 ms, at least 0.1 ms a step; without the wish 2 ms


@pytest.mark.parametrize(
    ("samples", "expected"),
    [(100, [12, 24, 36, 48, 60, 72, 84, 96]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [1, 2, 3]), (200, range(20, 201, 20))],
)
def test_looks_are_evenly_spaced(samples: int, expected: Sequence[int]) -> None:
    done = run(Budget(samples=samples), Counter(seen=True))
    assert done.trace.looked("steps")[:, 0].tolist() == list(expected)


def test_long_runs_are_looked_at_a_bounded_number_of_times() -> None:
    done = run(Budget(samples=100_000), Counter(seen=True), batches=5000)
    steps = done.trace.looked("steps")[:, 0]
    assert observers.MAX_LOOKS / 2 <= len(steps) <= observers.MAX_LOOKS
    gaps = np.diff(steps)
    assert gaps.max() <= 2 * gaps.min()


def test_what_shows_nothing_is_looked_at_once() -> None:
    engine = Counter()
    assert run(Budget(samples=1000), engine).trace.looks == []
