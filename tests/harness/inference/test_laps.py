"""What a step costs, from the times of batches: neither pauses nor a few slow batches move low quantiles."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.foundation.deadline import Stopwatch
from spinbench.inference.laps import QUANTILES, Laps
from spinbench.models import generators
from tests.helpers.clock import Clock


def test_pauses_count_in_no_cpu_seconds_and_a_few_in_no_quartile(clock: Clock) -> None:
    watch, batches = Stopwatch(), []
    for turn in range(20):
        with watch:
            clock.sleep(2e-3)
            clock.wait(0.01 if turn % 3 == 0 else 0.0)
        batches.append((4, watch.last, watch.last_cpu))
    laps = Laps.of_batches(batches)
    assert laps.count == 20
    assert laps.cpu[1] == pytest.approx(5e-4)
    assert laps.wall[1] == pytest.approx(5e-4)
    assert laps.mean_cpu == pytest.approx(5e-4)
    assert watch.waited == pytest.approx(0.07)


def test_work_that_falls_due_at_times_is_in_the_mean_alone() -> None:
    laps = Laps.of_batches([(2, seconds, seconds) for seconds in 4 * [2e-2, 1e-3, 1e-3, 1e-3, 1e-3]])
    assert laps.cpu[1] == pytest.approx(5e-4)
    assert laps.mean_cpu == pytest.approx((4 * 2e-2 + 16 * 1e-3) / 40)


def test_batches_of_different_lengths_are_compared_by_the_step() -> None:
    laps = Laps.of_batches([(steps, 1.0, steps * 1e-3) for steps in (1, 2, 3, 4)])
    assert laps.cpu == pytest.approx((1e-3, 1e-3, 1e-3))


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
    laps = Laps.of_batches([(1, value, 2 * value) for value in values])
    assert laps.wall == pytest.approx(np.quantile(values, QUANTILES))
    assert laps.cpu == pytest.approx(2 * np.quantile(values, QUANTILES))
