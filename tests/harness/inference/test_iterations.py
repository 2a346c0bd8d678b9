"""Runs of iterations: their steps are counted and timed where they are taken, and budgets hold."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.inference.budget import Budget
from spinbench.inference.driver import Run, drive
from spinbench.models import catalogue
from tests.helpers.clock import Clock

END = 37
RUNS = [
    ("bp", "numpy"),
    ("bp", "numba"),
    ("mf", "numpy"),
    ("mf", "numba"),
    ("trw", "numpy"),
    ("trw", "numba"),
    ("forney_mf", "numpy"),
    ("g_bp", "numpy"),
    ("g_mf", "numpy"),
]


class Iteration:
    """An engine that ends after `END` steps; each takes `seconds`, as does a call beyond."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[int] = []

    def init(self, seed: int, start: np.ndarray) -> int:
        self.asked = []
        return 0

    def warm(self, state: int, steps: int) -> int:
        return self.advance(state, steps)[0]

    def adapt(self, state: int, last: bool) -> int:
        return state

    def advance(self, state: int, steps: int) -> tuple[int, dict[str, np.ndarray]]:
        self.asked.append(steps)
        taken = min(steps, END - state)
        time.sleep(self.seconds * max(taken, 1))
        return state + taken, {"iterations": np.array([state + taken, 1.0])}

    def look(self, state: int) -> dict[str, np.ndarray]:
        return {}

    def climb(self, state: int, betas: np.ndarray, sweeps: int) -> tuple[int, np.ndarray]:
        return state, np.empty((sweeps, len(betas), 0))

    def slopes(self, state: int) -> dict[str, np.ndarray]:
        return {}


def run(budget: Budget, engine: Iteration, **options: Any) -> Run:
    trace = Trace({"iterations": "last"}, counted_by="iterations")
    estimate = options.pop("estimate", lambda trace: Estimate())
    return drive(engine, trace, estimate, budget, start=np.zeros((1, 1), dtype=np.int8), seed=0, **options)


def ended(trace: Trace) -> bool:
    return trace.samples == END


@pytest.mark.parametrize("budget", [Budget(samples=10_000, burn_in=0), Budget(seconds=30.0, burn_in=0)])
def test_samples_are_the_steps_taken_and_seconds_are_theirs(clock: Clock, budget: Budget) -> None:
    engine = Iteration(1e-3)
    outcome = run(budget, engine, finished=ended)
    assert outcome.trace.samples == outcome.trajectory[-1].samples == END
    assert outcome.burn_in == 0
    assert outcome.run_seconds == pytest.approx(END * 1e-3)
    assert outcome.laps is not None
    assert outcome.laps.mean_cpu == pytest.approx(1e-3)
    assert min(outcome.laps.wall) >= 0.999e-3


def test_an_iteration_that_ends_early_and_does_not_say_so_is_asked_to_the_end() -> None:
    engine = Iteration(0.0)
    assert run(Budget(samples=100, burn_in=0), engine).trace.samples == END
    assert sum(engine.asked) == 100


def test_batches_begin_with_a_step_and_grow_to_what_is_long_against_a_call(clock: Clock) -> None:
    engine = Iteration(1e-6)
    run(Budget(seconds=30.0, burn_in=0), engine, finished=ended)
    assert engine.asked[0] == 1
    assert {later / earlier for earlier, later in itertools.pairwise(engine.asked)} <= {1.0, 2.0}
    assert max(engine.asked) > 1
    slow = Iteration(5e-3)
    run(Budget(seconds=30.0, burn_in=0), slow, finished=ended)
    assert set(slow.asked) == {1}


def test_a_budget_in_seconds_ends_an_iteration_that_does_not(clock: Clock) -> None:
    outcome = run(Budget(seconds=0.05, burn_in=0), Iteration(4e-3))
    assert 0.05 <= outcome.run_seconds < 0.06
    assert outcome.trace.samples < END


def test_checkpoints_wait_until_the_run_has_taken_twice_as_long_as_estimating(clock: Clock) -> None:
    calls: list[float] = []

    def estimate(trace: Trace) -> Estimate:
        calls.append(time.perf_counter())
        time.sleep(0.05)
        return Estimate()

    outcome = run(Budget(seconds=0.1, burn_in=0), Iteration(3e-3), estimate=estimate)
    assert clock.now < 0.3
    assert len(calls) == len(outcome.trajectory) <= 2  # the first and the last
    outcome = run(Budget(seconds=0.4, burn_in=0), Iteration(3e-3), estimate=estimate)
    assert 2 <= len(outcome.trajectory) <= 4
    outcome = run(Budget(samples=END, burn_in=0), Iteration(0.0), estimate=estimate)
    assert len(outcome.trajectory) >= 9  # the same for every run of so many samples


@pytest.mark.parametrize(("method", "backend"), RUNS)
def test_methods_count_their_iterations(method: str, backend: str) -> None:
    model = catalogue.load("libdai/testfast")
    whole = spinbench.run(model, method, backend, 5000, chains=1)
    assert 1 < whole.samples < 1000
    assert whole.samples == whole.trajectory[-1].samples
    assert whole.samples >= whole.diagnostics.get("iterations", 1)
    for budget in ("60 s", whole.samples):
        again = spinbench.run(model, method, backend, budget, chains=1)
        assert (again.samples, again.burn_in, again.log_z) == (whole.samples, 0, whole.log_z)
    early = spinbench.run(model, method, backend, whole.samples - 1, chains=1)
    assert (early.samples, early.status) == (whole.samples - 1, "not converged")
