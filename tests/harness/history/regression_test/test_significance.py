"""The one test: its errors of both kinds, its verdicts, and what a busy day does to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from spinbench.history.regression_test.significance import Level, decide, inflation


def level(difference: object, error: object, freedom: float = 20.0) -> Level:
    found = np.asarray(difference, dtype=float)
    return Level(
        "cell",
        found,
        np.broadcast_to(error, found.shape).astype(float),
        np.full(len(found), freedom),
        np.eye(len(found)),
    )


def test_the_four_verdicts() -> None:
    found = decide(level([0.5, -0.5, 0.0, 0.0], [0.05, 0.05, 0.05, 0.5]), math.log(1.05), 0.01)
    assert found.verdicts == ("worse", "better", "not worse than 10 %", "undecided")
    np.testing.assert_allclose(found.high - found.low, 2 * stats.t.ppf(0.975, 20) * np.array([0.05, 0.05, 0.05, 0.5]))


def test_p_values_are_student_s_beyond_the_margin() -> None:
    found = decide(level([0.2], 0.05, freedom=7), math.log(1.05), 0.01)
    assert found.worse[0] == pytest.approx(stats.t.sf((0.2 - math.log(1.05)) / 0.05, 7))
    assert found.better[0] == pytest.approx(stats.t.sf((-0.2 - math.log(1.05)) / 0.05, 7))


def test_a_change_within_the_margin_passes_however_certain() -> None:
    found = decide(level([math.log(1.04)] * 3, 1e-6), math.log(1.05), 0.01)
    assert found.verdicts == ("not worse than 10 %",) * 3


def test_numbers_without_noise_are_certain() -> None:
    found = decide(level([0.3, 0.0, -0.3], 0.0), math.log(1.1), 0.005)
    assert found.verdicts == ("worse", "not worse than 10 %", "better")
    assert found.worse[0] == 0.0


def test_false_alarms_stay_below_alpha() -> None:
    """Of 40 units, none of which differs by more than the margin: all of them just by the margin."""
    rng = np.random.default_rng(7)
    margin, alpha, repeats = math.log(1.05), 0.05, 2000
    alarms = 0
    for _ in range(repeats):
        drawn = margin + 0.1 * rng.standard_normal(40)
        spread = 0.1 * np.sqrt(rng.chisquare(10, 40) / 10)
        alarms += "worse" in decide(level(drawn, spread, 10), margin, alpha).verdicts
    assert alarms / repeats <= alpha + 3 * math.sqrt(alpha / repeats)


def test_what_is_called_detectable_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(8)
    quiet = level(np.zeros(40), 0.1)
    size = decide(quiet, math.log(1.05), 0.01).detectable[0]
    found = 0
    for _ in range(1000):
        drawn = 0.1 * rng.standard_t(20, 40)
        drawn[0] += size
        found += decide(level(drawn, 0.1), math.log(1.05), 0.01).verdicts[0] == "worse"
    assert found / 1000 == pytest.approx(0.8, abs=0.05)


def test_inflation_is_that_of_the_day_not_of_a_change() -> None:
    rng = np.random.default_rng(9)
    drawn = 0.05 * rng.standard_normal(200)
    errors = np.full(200, 0.05)
    assert inflation(drawn, errors) == pytest.approx(1.0, abs=0.15)
    assert inflation(3 * drawn, errors) == pytest.approx(3.0, rel=0.15)
    assert inflation(drawn + 0.4, errors) == pytest.approx(1.0, abs=0.15)
    assert inflation(drawn + np.where(np.arange(200) < 40, 0.7, 0.0), errors) < 1.5
    assert inflation(drawn[:11] * 9, errors[:11]) == 1.0
    errors = 0.05 * rng.uniform(0.3, 3.0, 200)
    assert inflation(errors * rng.standard_normal(200) + 0.4, errors) == pytest.approx(1.0, abs=0.15)


def test_p_values_are_corrected_for_the_number_of_units() -> None:
    """As SciPy does it (Benjamini and Hochberg)."""
    difference = np.array([0.2, 0.05, 0.2, -0.1, 0.12])
    found = decide(level(difference, 0.05), 0.0, 0.01)
    for p, sign in ((found.worse, 1), (found.better, -1)):
        np.testing.assert_allclose(p, stats.false_discovery_control(stats.t.sf(sign * difference / 0.05, 20)))
