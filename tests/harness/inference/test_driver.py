"""The driver: exact sample counts, burn-in windows, checkpoints, batches and looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace
from spinbench.inference import observers
from spinbench.inference.budget import Budget, Tolerance
from spinbench.inference.driver import answer_at_once
from spinbench.models import catalogue
from tests.helpers.clock import Clock
from tests.helpers.fake_engine import START, FakeEngine, estimate_mean, run_chains, run_iteration


@pytest.mark.parametrize("samples", [1, 2, 7, 255, 256, 257, 1000, 12_345])
def test_samples_are_counted_exactly(samples: int) -> None:
    outcome = run_chains(Budget(samples=samples), engine := FakeEngine())
    assert outcome.trace.samples == samples == engine.runs[-1]["steps"]
    assert outcome.burn_in == engine.runs[-1]["warm"] == -(-samples // 5)
    np.testing.assert_array_equal(outcome.estimate.marginals, [1.0, 1.0])
    assert max(outcome.trace.counts) - min(outcome.trace.counts) <= 1


def climbing(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
    state, slopes = engine.climb(state, np.array([0.0, 0.5]), steps // 4)
    trace.climb = Climb(np.array([0.0, 0.5]), slopes)
    return state, steps // 2


def longer(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
    return state, steps + 7


@pytest.mark.parametrize(
    ("options", "burn_in", "adapted", "counted"),
    [
        pytest.param({}, 80, [10, 20, 40, 80], 80, id="windows"),
        pytest.param({}, 0, [0, 0, 0, 0], 0, id="no burn-in still freezes"),
        pytest.param({"warm_up": climbing}, 80, [5, 10, 20, 40], 80, id="what the method warms up counts"),
        pytest.param({"warm_up": longer}, 80, [0, 0, 0, 0], 87, id="the method's warm-up is longer"),
    ],
)
def test_burn_in_windows(options: dict[str, Any], burn_in: int, adapted: list[int], counted: int) -> None:
    engine = FakeEngine(shows=True)
    outcome = run_chains(Budget(samples=100, burn_in=burn_in), engine, **options)
    lasts = [False, False, False, True]
    assert engine.runs[-1]["adapt"] == list(zip(adapted, lasts, strict=True))
    assert (engine.runs[-1]["warm"], outcome.burn_in) == (adapted[-1], counted)
    climbs = outcome.trace.climb is not None
    assert engine.runs[-1]["climbed"] == (40 if climbs else 0)
    assert {key for look in outcome.trace.looks for key in look} == {"slope" if climbs else "steps"}


def test_checkpoints_are_geometric_and_end_with_the_run() -> None:
    outcome = run_chains(Budget(samples=10_000), FakeEngine(), checkpoints=8)
    samples = np.array([point.samples for point in outcome.trajectory])
    assert samples[-1] == 10_000
    assert 6 <= len(samples) <= 9
    assert (np.diff(samples) > 0).all()
    assert (np.diff([point.seconds for point in outcome.trajectory]) >= 0).all()
    ratios = samples[3:] / samples[2:-1]
    assert ratios.max() / ratios.min() < 1.6


@pytest.mark.parametrize("samples", [100, 1000, 1001])
def test_many_batches_are_merged_not_dropped(monkeypatch: pytest.MonkeyPatch, samples: int) -> None:
    monkeypatch.setattr("spinbench.api.trace.MAX_BATCHES", 16)
    outcome = run_chains(Budget(samples=samples), FakeEngine())
    counts = outcome.trace.counts
    assert (sum(counts), outcome.trace.samples) == (samples, samples)
    assert len(counts) <= 16
    assert max(counts[:-1]) <= 1.5 * min(counts[:-1])  # the last one is what remains
    np.testing.assert_array_equal(outcome.estimate.marginals, [1.0, 1.0])


EVERY = observers.LOOK_INTERVAL_RATIO * observers.COMPILED_LOOK_STEPS


@pytest.mark.parametrize(
    ("samples", "expected"),
    [(100, [12, 24, 36, 48, 60, 72, 84, 96]), (8, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [1, 2, 3])],
)
def test_looks_are_evenly_spaced(samples: int, expected: Sequence[int]) -> None:
    outcome = run_chains(Budget(samples=samples), FakeEngine(shows=True))
    assert outcome.trace.looked("steps")[:, 0].tolist() == list(expected)


@pytest.mark.parametrize("samples", [5_120, 1_000_000, 4_000_000])
def test_looks_are_a_fixed_share_of_steps(samples: int) -> None:
    """Between batches and within them; which batches there are is the same."""
    engine = FakeEngine(shows=True)
    outcome = run_chains(Budget(samples=samples), engine, batches=64)
    steps = outcome.trace.looked("steps")[:, 0]
    assert len(steps) == pytest.approx(samples / min(samples // 8, EVERY), rel=0.01, abs=1)
    assert np.ptp(np.diff(steps[1:])) <= 1  # the first is at a batch's end
    assert outcome.trace.counts == run_chains(Budget(samples=samples), FakeEngine(), batches=64).trace.counts


@pytest.mark.parametrize("budget", [Budget(samples=10**6, until=Tolerance("se", 1e-9)), Budget(seconds=100.0)], ids=str)
def test_looks_become_rarer_up_to_a_share_where_the_length_is_not_known(budget: Budget, clock: Clock) -> None:
    outcome = run_chains(budget, FakeEngine(clock, 1e-4, shows=True))
    steps = outcome.trace.looked("steps")[:, 0]
    assert EVERY / 1.05 < np.diff(steps).min() == np.diff(steps).max() <= EVERY


def test_no_more_looks_are_kept_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "MAX_NUMBERS", 2048)
    steps = run_chains(Budget(samples=100_000), FakeEngine(shows=True)).trace.looked("steps")[:, 0]
    assert 256 <= len(steps) <= 512
    assert np.diff(steps).max() < 2 * np.diff(steps).min()
    assert run_chains(Budget(samples=1000), FakeEngine()).trace.looks == []


def test_a_finished_run_ends_before_its_budget() -> None:
    engine = FakeEngine(compiles=False)
    outcome = run_chains(Budget(samples=1000, burn_in=0), engine, finished=lambda trace: trace.samples >= 40)
    assert 40 <= outcome.trace.samples == outcome.trajectory[-1].samples < 50
    assert [state["steps"] for state in engine.runs] == [outcome.trace.samples]  # none is tried


def test_an_iteration_that_ends_early_and_does_not_say_so_is_asked_to_the_end() -> None:
    engine = FakeEngine(end=37)
    assert run_iteration(Budget(samples=100, burn_in=0), engine).trace.samples == 37
    assert sum(engine.runs[-1]["asked"]) == 100


@pytest.mark.parametrize(("brief", "times"), [(0.0, 2), (np.inf, 1)])
def test_direct_methods_advance_to_compile_and_to_be_timed(
    monkeypatch: pytest.MonkeyPatch, brief: float, times: int
) -> None:
    monkeypatch.setattr("spinbench.inference.driver.BRIEF", brief)
    engine = FakeEngine()
    outcome = answer_at_once(engine, Trace({"s": "sum"}), estimate_mean, start=START, seed=0)
    assert [state["steps"] for state in engine.runs] == [1] * times
    assert (outcome.trace.samples, len(outcome.trajectory)) == (1, 1)


@pytest.mark.parametrize(
    ("method", "backend"),
    [
        *[(method, backend) for method in ("bp", "mf", "trw") for backend in ("numpy", "numba")],
        *[(method, "numpy") for method in ("forney_mf", "g_bp", "g_mf")],
    ],
)
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
