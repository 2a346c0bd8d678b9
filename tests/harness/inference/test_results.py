"""What a result says beside its answer: the times of its batches, checkpoints on its way, frames."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.foundation.deadline import Stopwatch
from spinbench.inference.batch_timings import QUANTILES, Checkpoint, Laps
from spinbench.inference.result import Result
from spinbench.models import FactorGraph, Model, generators
from tests.helpers.clock import Clock

GRID = generators.grid(3, 3, seed=0)


def run(model: Model = GRID, method: str = "gibbs", backend: str = "numpy", budget: Any = 60, **options: Any) -> Result:
    return spinbench.run(model, method, backend, budget, **{"seed": 1} | options)


def test_pauses_count_in_no_cpu_seconds_and_a_few_in_no_quartile(clock: Clock) -> None:
    watch, batches = Stopwatch(), []
    for turn in range(20):
        with watch:
            clock.sleep(2e-3)
            clock.wait(0.01 if turn % 3 == 0 else 0.0)
        batches.append((4, watch.last, watch.last_cpu))
    laps = Laps.of_batches(batches)
    assert laps.count == 20
    assert (laps.cpu[1], laps.wall[1], laps.mean_cpu) == pytest.approx((5e-4, 5e-4, 5e-4))
    assert watch.idle_seconds == pytest.approx(0.07)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_laps_are_compared_by_the_step_and_have_the_quantiles_of_numpy(count: int) -> None:
    """What falls due at times is in the mean alone."""
    steps, values = np.arange(1, count + 1), np.random.default_rng(count).random(count)
    laps = Laps.of_batches([(k, k * value, 2 * k * value) for k, value in zip(steps.tolist(), values, strict=True)])
    assert laps.wall == pytest.approx(np.quantile(values, QUANTILES))
    assert laps.cpu == pytest.approx(2 * np.quantile(values, QUANTILES))
    assert laps.mean_cpu == pytest.approx(2 * steps @ values / steps.sum())


@pytest.mark.parametrize(("method", "count"), [("gibbs", 50), ("exact", 1)])
def test_a_result_has_laps(method: str, count: int) -> None:
    result = run(method=method, budget=50)
    assert result.laps is not None
    assert result.laps.count == count
    assert result.laps.wall[1] > 0
    assert result.laps.cpu[1] < result.seconds.run + 1e-3  # others may run between, which wall-clock counts
    assert result.laps.mean_cpu > 0


def test_a_pickled_checkpoint_has_its_estimate() -> None:
    point = run(chains=4).trajectory[1]
    again = pickle.loads(pickle.dumps(point))
    assert isinstance(again, Checkpoint)
    np.testing.assert_array_equal(again.estimate.marginals, point.estimate.marginals)


def states_of(k: int) -> FactorGraph:
    rng = np.random.default_rng(3)
    return FactorGraph.from_log_tables([2, k, 2], [([0, 1], rng.normal(size=(2, k))), ([2], [0.0, 1.0])])


@pytest.mark.parametrize("k", [2, 3])
def test_each_state_is_a_line_of_a_frame_with_its_errors_beside_it(k: int) -> None:
    pytest.importorskip("pandas")
    exact = spinbench.exact(states_of(k), cache=False)
    frame: Any = exact.to_dataframe()
    assert list(frame.columns) == ["variable", "state", "marginal"]
    lines = [(v, state) for v, size in enumerate((2, k, 2)) for state in range(size)]
    assert list(zip(frame["variable"], frame["state"], strict=True)) == lines
    p = np.concatenate(exact.marginals.by_variable())
    np.testing.assert_allclose(frame["marginal"], p)
    assert p[-1] == pytest.approx(1 / (1 + np.exp(-1)))
    result = run(states_of(k), budget=20, chains=8, simplify=False)
    frame = result.to_dataframe()
    assert list(frame.columns)[3:] == ["standard_error", "error_bound", "ess", "r_hat"]
    assert len(frame) == 4 + k
    assert set(frame["standard_error"]) == set(np.hstack(result.marginals_se).tolist())


def test_without_marginals_there_is_a_sentence() -> None:
    pytest.importorskip("pandas")
    with pytest.raises(SpinbenchError, match="exact gives no marginals"):
        dataclasses.replace(spinbench.exact(GRID, cache=False), marginals=None).to_dataframe()
