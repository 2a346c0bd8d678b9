"""What a step costs, from the times of batches: neither pauses nor a few slow batches move low quantiles."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.inference.laps import QUANTILES, LapTimes
from spinbench.models import generators
from tests.helpers.clock import Clock


def test_pauses_count_in_no_cpu_seconds_and_a_few_in_no_quartile(clock: Clock) -> None:
    times = LapTimes()
    for turn in range(20):
        with times(4):
            clock.sleep(2e-3)
            clock.wait(0.01 if turn % 3 == 0 else 0.0)
    laps = times.laps()
    assert laps.count == 20
    assert laps.cpu[1] == pytest.approx(5e-4)
    assert laps.wall[1] == pytest.approx(5e-4)
    assert laps.mean_cpu == pytest.approx(5e-4)


def test_work_that_falls_due_at_times_is_in_the_mean_alone(clock: Clock) -> None:
    times = LapTimes()
    for turn in range(20):
        with times(2):
            clock.sleep(2e-2 if turn % 5 == 0 else 1e-3)
    laps = times.laps()
    assert laps.cpu[1] == pytest.approx(5e-4)
    assert laps.mean_cpu == pytest.approx((4 * 2e-2 + 16 * 1e-3) / 40)


def test_batches_of_different_lengths_are_compared_by_the_step(clock: Clock) -> None:
    times = LapTimes()
    for steps in (1, 2, 3, 4):
        with times(steps):
            clock.sleep(steps * 1e-3)
    assert times.laps().cpu[1] == pytest.approx(1e-3)


@pytest.mark.parametrize(("method", "count"), [("gibbs", 50), ("exact", 1)])
def test_a_result_has_them(method: str, count: int) -> None:
    result = spinbench.run(generators.grid(3, 3), method, "numpy", 50)
    assert result.laps is not None
    assert result.laps.count == count
    assert result.laps.wall[1] > 0
    assert result.laps.cpu[1] < result.seconds.run + 1e-3  # others may run between, which wall-clock counts
    assert result.laps.mean_cpu > 0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_quantiles_are_those_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).random(count)
    laps = LapTimes([1] * count, list(values), list(2 * values)).laps()
    assert laps.wall == pytest.approx(np.quantile(values, QUANTILES))
    assert laps.cpu == pytest.approx(2 * np.quantile(values, QUANTILES))
