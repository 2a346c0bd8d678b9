"""Performance profiles, places and mean ranks of arrays that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.reporting.profiles import boards

INF = np.inf
VALUES = np.array(
    [
        [0.1, 0.2, 0.4],
        [0.3, 0.3, INF],
        [INF, INF, INF],
        [1e-9, 1e-16, 0.05],  # the first two below the floor
    ]
)


def test_ratios_are_to_the_best_of_each_model() -> None:
    expected = [[1, 2, 4], [1, 1, INF], [INF, INF, INF], [1, 1, 50]]
    np.testing.assert_allclose(boards.ratios(VALUES, 1e-3), expected)


def test_a_profile_is_the_share_of_models_within_a_factor() -> None:
    ratio = boards.ratios(VALUES, 1e-3)
    found = boards.performance(ratio, np.array([1.0, 2.0, 3.9, 4.0, 1e9]))
    np.testing.assert_allclose(
        found, [[0.75, 0.5, 0.0], [0.75, 0.75, 0.0], [0.75, 0.75, 0.0], [0.75, 0.75, 0.25], [0.75, 0.75, 0.5]]
    )


def test_equals_share_their_places_and_those_that_solve_nothing_the_last() -> None:
    expected = [[1, 2, 3], [1.5, 1.5, 3], [2, 2, 2], [1.5, 1.5, 3]]
    np.testing.assert_allclose(boards.places(boards.ratios(VALUES, 1e-3)), expected)


def test_the_interval_of_a_mean_rank_is_that_of_the_mean_over_models() -> None:
    place = np.array([[1.0, 2.0], [2.0, 1.0]] * 50)
    found = boards.mean_ranks(place)
    np.testing.assert_allclose(found.mean, [1.5, 1.5])
    half = 1.96 * 0.5 / np.sqrt(100)
    for low, high in zip(found.low, found.high, strict=True):
        assert low == pytest.approx(1.5 - half, abs=0.015)
        assert high == pytest.approx(1.5 + half, abs=0.015)
    same = boards.mean_ranks(np.array([[1.0, 2.0]] * 7))
    np.testing.assert_array_equal(same.low, same.high)
