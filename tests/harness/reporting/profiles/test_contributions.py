"""Scores, Shapley values and tests of ranks, against definitions and published figures."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spinbench.reporting.profiles import contributions

SCORES = arrays(np.float64, (3, 4), elements=st.floats(0, 4, allow_subnormal=False))


def test_an_error_of_a_hundredth_has_two_right_decimals() -> None:
    errors = np.array([[0.01, 1e-9, 5.0, math.inf]])
    np.testing.assert_allclose(contributions.right_decimals(errors, 1e-4), [[2.0, 4.0, 0.0, 0.0]], atol=1e-12)


@given(SCORES)
def test_shapley_values_are_means_over_all_orders_of_joining(scores: np.ndarray) -> None:
    found = np.zeros_like(scores)
    for order in itertools.permutations(range(4)):
        best = np.zeros(3)
        for solver in order:
            found[:, solver] += np.maximum(scores[:, solver] - best, 0)
            best = np.maximum(best, scores[:, solver])
    np.testing.assert_allclose(contributions.shapley_values(scores), found / math.factorial(4), atol=1e-12)


@given(SCORES)
def test_marginal_contributions_are_what_is_lost_without_a_solver(scores: np.ndarray) -> None:
    found = contributions.marginal_contributions(scores)
    for solver in range(4):
        lost = scores.max(axis=1) - np.delete(scores, solver, axis=1).max(axis=1)
        np.testing.assert_allclose(found[:, solver], lost, atol=1e-12)


def test_a_lone_solver_contributes_all() -> None:
    scores = np.array([[1.0], [3.0]])
    np.testing.assert_array_equal(contributions.marginal_contributions(scores), scores)
    np.testing.assert_array_equal(contributions.shapley_values(scores), scores)


# Mean ranks and the critical difference of four classifiers on 14 data sets: Demšar 2006, section 3.2.4 and figure 1.
MEAN_RANKS = np.array([1.964, 2.000, 2.893, 3.143])


def test_the_critical_difference_of_four_solvers_on_fourteen_models() -> None:
    ranks = np.array(list(itertools.islice(itertools.cycle(itertools.permutations([1.0, 2.0, 3.0, 4.0])), 14)))
    found = contributions.compare_ranks(ranks)
    assert found is not None
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    assert contributions.rank_groups(MEAN_RANKS, found.critical_difference) == ["a"] * 4


def test_solvers_within_the_critical_difference_share_a_letter() -> None:
    # 1.12 is the critical difference at a significance of 0.1, by which the same page finds two groups.
    assert contributions.rank_groups(MEAN_RANKS, 1.12) == ["a", "a", "ab", "b"]
    assert contributions.rank_groups(np.array([1.0, 2.0, 3.0]), 0.5) == ["a", "b", "c"]


def test_alike_and_different_solvers() -> None:
    same = contributions.compare_ranks(np.full((6, 3), 2.0))
    ordered = contributions.compare_ranks(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert same is not None
    assert ordered is not None
    # χ² = 12 with two degrees of freedom, of which the tail is exp(-6).
    assert (same.p_value, ordered.p_value) == (1.0, pytest.approx(math.exp(-6)))
    assert contributions.compare_ranks(np.ones((6, 2))) is None


def test_par2_counts_unsolved_models_twice_the_limit() -> None:
    seconds = np.array([[1.0, math.inf], [3.0, 2.0]])
    np.testing.assert_allclose(contributions.penalised_mean(seconds, 10.0), [2.0, 11.0])
