"""The noise model: blocks within a commit, commits of the past, cells pooled, and the law that all units share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spinbench.history.regression_test.effects import pooled_levels
from spinbench.history.regression_test.noise import (
    BETWEEN,
    MAX_MODERATED_FREEDOM,
    WITHIN,
    Blocks,
    Noise,
    fit_law,
    moderated,
    replicates,
)
from spinbench.history.regression_test.significance import Level

GROUPS = ["a", "a", "a", "b", "b", "b", "b", "c"]


def noise(variances: object, freedom: float) -> Noise:
    found = np.asarray(variances, dtype=float)
    return Noise(found, np.full(len(found), freedom))


def table(rng: np.random.Generator, commits: int, seeds: int, within: float, between: float) -> np.ndarray:
    """Costs of 8 cells: each commit shifts each cell, each seed has its own path, each block scatters."""
    shift = between * rng.standard_normal((8, commits, 1))
    path = 0.3 * rng.standard_normal((8, 1, seeds))
    return rng.normal(size=(8, 1, 1)) + shift + path + within * rng.standard_normal((8, commits, seeds))


def compared(values: np.ndarray, scatter: float | np.ndarray = 0.0, *changed: bool) -> tuple[Level, ...]:
    """The last commit against the one before, which ends the past."""
    pieces = np.cumsum([0, *(changed or (False,) * (values.shape[1] - 2))])[None]
    return pooled_levels(Blocks(values, np.broadcast_to(scatter, values.shape), True, pieces), GROUPS)


def test_variance_about_the_means_of_commits_with_missing_blocks() -> None:
    nan = math.nan
    blocks = np.array([[[1.0, 3.0], [10.0, nan]], [[1.0, nan], [5.0, 9.0]], [[2.0, nan], [nan, nan]]])
    found = replicates(blocks, paired=False)
    np.testing.assert_allclose(found.variance, [2.0, 8.0, 0.0])
    np.testing.assert_array_equal(found.freedom, [1, 1, 0])
    np.testing.assert_array_equal(replicates(blocks, paired=True).freedom, [0, 0, 0])


def test_variance_about_commits_and_seeds() -> None:
    rng = np.random.default_rng(8)
    drawn = 0.1 * rng.standard_normal((300, 3, 4))
    parts = rng.normal(size=(300, 3, 1)) + rng.normal(size=(300, 1, 4))
    found = replicates(drawn + parts, paired=True)
    np.testing.assert_array_equal(found.freedom, 6)
    np.testing.assert_allclose(found.variance, replicates(drawn, paired=True).variance)
    assert found.variance.mean() == pytest.approx(0.01, rel=0.1)
    holes = drawn + parts
    holes[rng.uniform(size=holes.shape) < 0.15] = math.nan
    found = replicates(holes, paired=True)
    known = found.freedom > 2
    assert known.sum() > 200
    assert np.average(found.variance[known], weights=found.freedom[known]) == pytest.approx(0.01, rel=0.15)


def test_the_law_of_variances_is_recovered() -> None:
    rng = np.random.default_rng(9)
    scale, freedom, own = 0.04, 6.0, 4
    variances = scale * freedom / rng.chisquare(freedom, size=20_000)
    law = fit_law(noise(variances * rng.chisquare(own, size=variances.size) / own, own))
    assert law == (pytest.approx(scale, rel=0.05), pytest.approx(freedom, rel=0.1))
    equal = fit_law(noise([0.04] * 10, own))
    assert equal is not None
    assert math.isinf(equal[1])
    assert fit_law(noise([0.04] * 5, own)) is None


def test_a_law_moderates_each_unit_and_lends_to_those_without_replicates() -> None:
    rng = np.random.default_rng(10)
    truth = 10 ** rng.uniform(-2, 0, size=200)
    own = noise(truth * rng.chisquare(2, size=200) / 2, 2)
    found = moderated(own)
    assert np.mean(np.log(found.variance / truth) ** 2) < 0.5 * np.mean(np.log(own.variance / truth) ** 2)
    assert (found.freedom > 2).all()
    equal = moderated(Noise(np.array([*[0.04] * 8, 0.0, 0.0]), np.array([*[3.0] * 9, 0.0])))
    np.testing.assert_allclose(equal.variance, equal.variance[0])
    np.testing.assert_array_equal(equal.freedom, MAX_MODERATED_FREEDOM)
    few = moderated(Noise(np.array([0.01, 0.04, 0.0]), np.array([1.0, 2.0, 0.0])))
    np.testing.assert_allclose(few.variance, 0.03)
    np.testing.assert_array_equal(few.freedom, 3)


def test_differences_are_those_of_the_means_and_of_weighted_cells() -> None:
    values = table(np.random.default_rng(1), 2, 3, 0.02, 0.0)
    values[:, 1] += 0.25
    cells, groups, whole = compared(values)
    np.testing.assert_allclose(cells.difference, values[:, 1].mean(axis=1) - values[:, 0].mean(axis=1))
    for level, units in ((cells, 8), (groups, 3), (whole, 1)):
        assert level.weights.shape == (units, 8)
        np.testing.assert_allclose(level.weights.sum(axis=1), 1.0)
        np.testing.assert_allclose(level.difference, level.weights @ cells.difference)
        np.testing.assert_allclose(level.difference, 0.25, atol=0.05)
    assert (groups.weights > 0).tolist() == [[name == group for group in GROUPS] for name in "abc"]


def test_noise_without_replicates_and_history_is_the_usual_one() -> None:
    cells, groups, whole = compared(table(np.random.default_rng(2), 2, 1, 0.02, 0.0))
    assert cells.error[0] == pytest.approx(math.sqrt(2 * (WITHIN + BETWEEN["cell"])))
    assert whole.error[0] == pytest.approx(math.sqrt(2 * (WITHIN + BETWEEN["all"])))
    assert groups.error[2] >= cells.error[7]  # a group of one cell knows no more than its cell


@pytest.mark.parametrize(("within", "between"), [(0.3, 0.0), (0.02, 0.3), (0.2, 0.2)])
def test_noise_is_learnt_from_replicates_and_from_the_past(within: float, between: float) -> None:
    """Ratios of differences to their errors scatter by about 1; without the past, a noisy machine is not known."""
    rng = np.random.default_rng(3)
    z, blind = [], []
    for _ in range(60):
        values = table(rng, 20, 3, within, between)
        cells, *_ = compared(values)
        z += list(cells.difference / cells.error)
        cells, *_ = compared(values[:, -2:])
        blind += list(cells.difference / cells.error)
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert np.std(blind) > 1.1 or between < within


def test_pairs_whose_cost_changed_are_no_noise() -> None:
    values = table(np.random.default_rng(4), 6, 3, 0.02, 0.02)
    values[:, 2:] += 1.0
    left_out, counted = compared(values, 0.0, False, True, False, False), compared(values)
    assert (left_out[0].error < 0.5 * counted[0].error).all()


def test_missing_blocks_take_their_seed_with_them() -> None:
    values = table(np.random.default_rng(5), 2, 3, 0.02, 0.0)
    values[0, 0, 1] = values[4, 1, 2] = math.nan
    levels = compared(values)
    assert levels[0].difference[0] == pytest.approx((values[0, 1] - values[0, 0])[[0, 2]].mean())
    for level in levels:
        assert np.isfinite(level.error).all()
        assert (np.abs(level.difference) < 0.1).all()


def test_different_seeds_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(8, 1, 1)) + 0.1 * rng.standard_normal((8, 2, 3))
    values[:, 1, 2] = math.nan
    cells, *_ = pooled_levels(Blocks(values, np.zeros(values.shape), False, np.zeros((1, 1))), GROUPS)
    np.testing.assert_allclose(cells.difference, np.nanmean(values[:, 1], axis=1) - values[:, 0].mean(axis=1))
    assert cells.error[0] > 0.1


def test_batches_that_scatter_more_on_one_side_widen_its_error() -> None:
    values = table(np.random.default_rng(8), 2, 3, 0.02, 0.0)
    scatter = np.full(values.shape, 0.1)
    quiet = compared(values, scatter)
    scatter[3, 1] = 0.7
    disturbed = compared(values, scatter)
    assert disturbed[0].error[3] > 2 * quiet[0].error[3]
    np.testing.assert_allclose(np.delete(disturbed[0].error, 3), np.delete(quiet[0].error, 3))
