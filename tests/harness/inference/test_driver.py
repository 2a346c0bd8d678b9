"""The driver: initial states, exact sample counts, burn-in windows, checkpoints, batches and looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.inference import initial_states, observers
from spinbench.inference.budget import Budget, Tolerance
from spinbench.inference.driver import answer_at_once
from spinbench.models import FactorGraph, catalogue
from spinbench.models.generators import grid, torus
from tests.helpers.clock import Clock
from tests.helpers.fake_engine import START, FakeEngine, estimate_mean, run_chains, run_iteration


def test_draws_are_chosen_by_their_weights_and_none_twice() -> None:
    model, states = grid(2, 2), np.arange(4 * 50).reshape(4, 50)
    logs = np.where(np.arange(50) < 10, 0.0, -np.inf)
    logs[3] = 40.0
    found = initial_states.resample_draws((states, logs), model, 8, 0, "wmb")
    assert len(set(found[0])) == 8
    assert states[0, 3] in found[0]
    assert set(found[0]) <= set(states[0, :10])
    logs = np.log1p(np.arange(50.0))
    often = np.concatenate([initial_states.resample_draws((states, logs), model, 1, k, "wmb")[0] for k in range(900)])
    mean = np.arange(1, 51) @ np.arange(50) / np.arange(1, 51).sum()
    assert abs(often.mean() - mean) < 4 * 12 / 30


def test_where_no_draw_weighs_anything_it_says_so() -> None:
    for draws in (None, (np.zeros((4, 3)), np.full(3, -np.inf))):
        with pytest.raises(UnsupportedError, match="none of its draws of grid has positive weight"):
            initial_states.resample_draws(draws, grid(2, 2), 4, 0, "wmb")


def test_sides_that_chains_do_not_change_are_weighed_right() -> None:
    """Two phases of a ferromagnet, .79 and .21 of the weight, which sweeps do not leave."""
    model = torus(8, 8, 0.7, 0.01)
    true = np.mean(spinbench.exact(model).marginals)
    cold = spinbench.run(model, "gibbs", "numpy", 100, chains=512, seed=3, start="wmb")
    assert abs(np.mean(cold.marginals) - true) < 4 * np.sqrt(0.25 / 512)
    again = spinbench.run(model, "gibbs", "numpy", 100, chains=512, seed=3, start="wmb")
    assert np.array_equal(cold.marginals, again.marginals)


def test_chains_of_a_simplified_graph_begin_in_its_own_terms() -> None:
    """Of a variable that sums out, of one that a zero determines, of K-ary ones that become units."""
    rng = np.random.default_rng(0)
    tables = [((0, 1), rng.normal(size=(3, 2))), ((1, 2), rng.normal(size=(2, 3))), ((2, 3), rng.normal(size=(3, 2)))]
    tables += [((4,), np.array([0.0, -np.inf])), ((0, 2), rng.normal(size=(3, 3)))]
    model = FactorGraph.from_log_tables([3, 2, 3, 2, 2], tables)
    exact = np.concatenate(spinbench.exact(model).marginals)
    for method in ("gibbs", "block_gibbs"):
        found = spinbench.run(model, method, "numpy", 1000, chains=32, seed=1, start="wmb")
        np.testing.assert_allclose(np.concatenate(found.marginals), exact, atol=0.03)


def test_variables_of_one_state_start_in_it() -> None:
    """As what stands for a model that is all observed, also beside binary variables."""
    for sizes in ([1], [2, 1, 2], [3, 1]):
        graph = FactorGraph.from_log_tables(sizes, [((0,), np.zeros(sizes[0]))])
        found = initial_states.spread_starts(graph, 32, 0, sampler=True)
        assert (found < np.array(sizes)[:, None]).all()
        assert all(len(set(row)) == size for row, size in zip(found, sizes, strict=True))


@pytest.mark.parametrize("samples", [1, 2, 7, 255, 256, 257, 1000, 12_345])
def test_samples_are_counted_exactly(samples: int) -> None:
    outcome = run_chains(Budget(samples=samples), engine := FakeEngine())
    assert outcome.trace.samples == samples == engine.runs[-1]["steps"]
    assert outcome.burn_in == engine.runs[-1]["warm"] == -(-samples // 5)
    np.testing.assert_array_equal(outcome.estimate.marginals, [1.0, 1.0])
    assert max(outcome.trace.counts) - min(outcome.trace.counts) <= 1


def climbing(engine: Any, state: Any, steps: int, trace: Trace) -> tuple[Any, int]:
    state, slopes = engine.temper(state, np.array([0.0, 0.5]), steps // 4)
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
