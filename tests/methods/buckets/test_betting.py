"""Bounds by betting: they miss the mean no more often than they say, and close in on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spinbench.methods.buckets import betting

EDGES = np.append(np.exp(-0.25 * np.arange(128)), 0.0)
Law = Callable[[np.random.Generator, int], np.ndarray]
# Of weights from 0 to 1, and their means.
LAWS: dict[str, tuple[Law, float]] = {
    "alike": (lambda rng, n: 0.9 + 0.02 * rng.random(n), 0.91),
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "half dead": (lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, 0.3), 0.15),
    "rare and heavy": (lambda rng, n: np.where(rng.random(n) < 0.02, 1.0, 0.01), 0.0298),
}


def told(values: np.ndarray) -> betting.Weights:
    bins = np.minimum(-np.log(np.maximum(values, 1e-300)) / 0.25, 127).astype(int)
    counts, sums = np.bincount(bins, minlength=128), np.bincount(bins, values, minlength=128)
    with np.errstate(divide="ignore"):
        logs = np.log(values.sum()), np.log((values**2).sum())
    return betting.Weights(float(len(values)), *map(float, logs), EDGES, counts.astype(float), sums)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("number", [32, 500])
def test_misses_are_as_rare_as_told(law: str, number: int) -> None:
    draw, mean = LAWS[law]
    rng, delta, repeats = np.random.default_rng(3), 0.05, 150
    seen = [told(draw(rng, number)) for _ in range(repeats)]
    low = np.array([betting.lower(weights, delta) for weights in seen])
    high = np.array([betting.upper(weights, delta) for weights in seen])
    assert (low > np.log(mean)).sum() <= 15  # 7.5 are expected of bounds that are no wider than they have to be
    assert (high < np.log(mean)).sum() <= 15
    assert (high <= 0).all()


def test_brackets_close() -> None:
    rng = np.random.default_rng(5)
    draw, mean = LAWS["uniform"]
    widths = []
    for number in (100, 10_000):
        weights = told(draw(rng, number))
        low, high = betting.lower(weights, 1e-3), betting.upper(weights, 1e-3)
        assert low < np.log(mean) < high
        widths.append(high - low)
    assert widths[1] < 0.15 * widths[0]


def test_dead_draws_count() -> None:
    alive, half = np.full(1000, 0.4), np.where(np.arange(1000) % 2, 0.4, 0.0)
    assert betting.lower(told(alive), 1e-3) > np.log(0.39)
    assert betting.upper(told(half), 1e-3) < np.log(0.27)
    assert betting.lower(told(np.zeros(10)), 1e-3) == -np.inf
    assert told(np.zeros(10)).effective == 0


def test_one_weight_of_all_says_nothing_above() -> None:
    assert betting.upper(told(np.full(3, 1.0)), 1e-3) == 0.0


@pytest.mark.parametrize("spread", [1e-12, 1e-9, 1e-6])
def test_weights_that_are_next_to_the_largest_refute_no_mean_by_rounding(spread: float) -> None:
    rng, repeats, number = np.random.default_rng(7), 60, 3200
    missed = 0
    for _ in range(repeats):
        below = spread * (4 + rng.standard_normal(number).clip(-4, 4))
        logs = np.logaddexp.reduce(np.log1p(-below)), np.logaddexp.reduce(2 * np.log1p(-below))
        one = betting.Weights(number, *map(float, logs), np.array([1.0, 0.0]), np.array([3200.0]), np.exp(logs[:1]))
        missed += betting.upper(one, 1e-3) < np.log1p(-4 * spread)
    assert missed == 0
