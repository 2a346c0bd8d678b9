"""Variances of few replicates: pooled, and moderated by the law that all units share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spinbench.history.judging.variance import MOST_FREEDOM, Noise, additive, fit, moderated, separate


def noise(variances: object, freedom: float) -> Noise:
    found = np.asarray(variances, dtype=float)
    return Noise(found, np.full(len(found), freedom))


NAN = math.nan
BLOCKS = np.array([[[1.0, 3.0], [10.0, NAN]], [[1.0, NAN], [5.0, 9.0]], [[2.0, NAN], [NAN, NAN]]])
"""Of three units at two commits, each in up to two blocks."""


def test_variance_about_the_means_of_commits() -> None:
    found = separate(BLOCKS)
    np.testing.assert_allclose(found.variance, [2.0, 8.0, 0.0])
    np.testing.assert_array_equal(found.freedom, [1, 1, 0])


def test_variance_about_commits_and_seeds() -> None:
    rng = np.random.default_rng(8)
    noise = 0.1 * rng.standard_normal((300, 3, 4))
    parts = rng.normal(size=(300, 3, 1)) + rng.normal(size=(300, 1, 4))
    found = additive(noise + parts)
    np.testing.assert_array_equal(found.freedom, 6)
    np.testing.assert_allclose(found.variance, additive(noise).variance)
    assert found.variance.mean() == pytest.approx(0.01, rel=0.1)
    assert separate(noise + parts).variance.mean() > 0.5
    holes = noise + parts
    holes[rng.uniform(size=holes.shape) < 0.15] = NAN
    found = additive(holes)
    known = found.freedom > 2
    assert known.sum() > 200
    assert np.average(found.variance[known], weights=found.freedom[known]) == pytest.approx(0.01, rel=0.15)
    np.testing.assert_array_equal(additive(BLOCKS).freedom, [0, 0, 0])


def test_the_law_of_variances_is_recovered() -> None:
    rng = np.random.default_rng(9)
    scale, freedom, own = 0.04, 6.0, 4
    variances = scale * freedom / rng.chisquare(freedom, size=20_000)
    law = fit(noise(variances * rng.chisquare(own, size=variances.size) / own, own))
    assert law is not None
    assert law == (pytest.approx(scale, rel=0.05), pytest.approx(freedom, rel=0.1))
    equal = fit(noise([0.04] * 10, own))
    assert equal is not None
    assert math.isinf(equal[1])
    assert fit(noise([0.04] * 5, own)) is None


def test_a_law_moderates_each_unit() -> None:
    rng = np.random.default_rng(10)
    truth = 10 ** rng.uniform(-2, 0, size=200)
    own = noise(truth * rng.chisquare(2, size=200) / 2, 2)
    found = moderated(own)
    assert np.mean(np.log(found.variance / truth) ** 2) < 0.5 * np.mean(np.log(own.variance / truth) ** 2)
    assert (found.freedom > 2).all()
    equal = moderated(noise([0.04] * 10, 4))
    np.testing.assert_allclose(equal.variance, equal.variance[0])
    np.testing.assert_array_equal(equal.freedom, MOST_FREEDOM)


def test_units_without_replicates_or_noise_take_the_law_s() -> None:
    own = Noise(np.array([*[0.04] * 8, 0.0, 0.0]), np.array([*[3.0] * 9, 0.0]))
    found = moderated(own)
    np.testing.assert_allclose(found.variance, found.variance[0])


def test_too_few_units_share_one_variance() -> None:
    found = moderated(Noise(np.array([0.01, 0.04, 0.0]), np.array([1.0, 2.0, 0.0])))
    np.testing.assert_allclose(found.variance, 0.03)
    np.testing.assert_array_equal(found.freedom, 3)
