"""Differences of cost and their noise: blocks within a commit, commits of the past, cells pooled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spinbench.history.judging.pooling import BETWEEN, WITHIN, Blocks, Level, levels

GROUPS = ["a", "a", "a", "b", "b", "b", "b", "c"]


def table(rng: np.random.Generator, commits: int, seeds: int, within: float, between: float) -> np.ndarray:
    """Costs of 8 cells: each commit shifts each cell, each seed has its own path, each block scatters."""
    shift = between * rng.standard_normal((8, commits, 1))
    path = 0.3 * rng.standard_normal((8, 1, seeds))
    return rng.normal(size=(8, 1, 1)) + shift + path + within * rng.standard_normal((8, commits, seeds))


def compared(values: np.ndarray, scatter: float | np.ndarray = 0.0, *changed: bool) -> tuple[Level, ...]:
    """The last commit against the one before, which ends the past."""
    pairs = changed or (False,) * (values.shape[1] - 2)
    return levels(Blocks(values, np.broadcast_to(scatter, values.shape), True, pairs), GROUPS)


def test_differences_are_those_of_the_means_and_of_weighted_cells() -> None:
    rng = np.random.default_rng(1)
    values = table(rng, 2, 3, 0.02, 0.0)
    values[:, 1] += 0.25
    cells, groups, whole = compared(values)
    np.testing.assert_allclose(cells.difference, values[:, 1].mean(axis=1) - values[:, 0].mean(axis=1))
    np.testing.assert_allclose(groups.difference, groups.weights @ cells.difference)
    np.testing.assert_allclose(whole.difference, whole.weights @ cells.difference)
    for level, units in ((cells, 8), (groups, 3), (whole, 1)):
        assert level.weights.shape == (units, 8)
        np.testing.assert_allclose(level.weights.sum(axis=1), 1.0)
        np.testing.assert_allclose(level.difference, 0.25, atol=0.05)
    assert (groups.weights > 0).tolist() == [[name == group for group in GROUPS] for name in "abc"]


def test_noise_without_replicates_and_history_is_the_usual_one() -> None:
    cells, groups, whole = compared(table(np.random.default_rng(2), 2, 1, 0.02, 0.0))
    assert cells.error[0] == pytest.approx(math.sqrt(2 * (WITHIN.variance[0] + BETWEEN["cell"])))
    assert whole.error[0] == pytest.approx(math.sqrt(2 * (WITHIN.variance[0] + BETWEEN["all"])))
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


def test_missing_blocks_are_left_out() -> None:
    values = table(np.random.default_rng(5), 2, 3, 0.02, 0.0)
    values[0, 0, 1] = values[4, 1, 2] = math.nan
    cells, groups, whole = compared(values)
    assert cells.difference[0] == pytest.approx((values[0, 1] - values[0, 0])[[0, 2]].mean())
    for level in (cells, groups, whole):
        assert np.isfinite(level.difference).all()
        assert np.isfinite(level.error).all()
        assert (np.abs(level.difference) < 0.1).all()  # a missing block takes its seed's path with it


def test_different_seeds_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(8, 1, 1)) + 0.1 * rng.standard_normal((8, 2, 3))
    values[:, 1, 2] = math.nan
    blocks = Blocks(values, np.zeros(values.shape), paired=False, changed=())
    cells, *_ = levels(blocks, GROUPS)
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


def test_a_shift_of_cells_moves_what_they_are_part_of() -> None:
    values = table(np.random.default_rng(6), 2, 3, 0.02, 0.0)
    shift = np.where(np.array(GROUPS) == "b", 0.5, 0.0)
    moved = values.copy()
    moved[:, 1] += shift[:, None]
    for one, other in zip(compared(values), compared(moved), strict=True):
        np.testing.assert_allclose(one.shifted(shift).difference, other.difference)
        np.testing.assert_allclose(one.error, other.error)
