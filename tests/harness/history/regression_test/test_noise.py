"""The noise model and the one test on it: what it learns, and how often the gate errs, on real records, too."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import gate_records
import numpy as np
import pytest
from scipy import stats

from spinbench.history import calibration
from spinbench.history.calibration import Row
from spinbench.history.regression_test.effects import effects_by_cell_group_and_all
from spinbench.history.regression_test.judge import judge
from spinbench.history.regression_test.measurements import Sides
from spinbench.history.regression_test.noise import DEFAULT_BETWEEN_VARIANCE, DEFAULT_WITHIN_VARIANCE, Blocks
from spinbench.history.regression_test.significance import Level, decide_verdicts, error_inflation

GROUPS = ["a", "a", "a", "b", "b", "b", "b", "c"]
MARGIN = math.log(1.05)


def table(rng: np.random.Generator, commits: int, seeds: int, within: float, between: float) -> np.ndarray:
    """Costs of 8 cells: each commit shifts each cell, each seed has its own path, each block scatters."""
    shift = between * rng.standard_normal((8, commits, 1))
    path = 0.3 * rng.standard_normal((8, 1, seeds))
    return rng.normal(size=(8, 1, 1)) + shift + path + within * rng.standard_normal((8, commits, seeds))


def compared(values: np.ndarray, scatter: float | np.ndarray = 0.0, *changed: bool) -> tuple[Level, ...]:
    """The last commit against the one before, which ends the past."""
    pieces = np.cumsum([0, *(changed or (False,) * (values.shape[1] - 2))])[None]
    return effects_by_cell_group_and_all(Blocks(values, np.broadcast_to(scatter, values.shape), True, pieces), GROUPS)


def level(difference: object, error: object, freedom: float = 20.0) -> Level:
    found = np.asarray(difference, dtype=float)
    errors = np.broadcast_to(error, found.shape).astype(float)
    return Level("cell", found, errors, np.full(len(found), freedom), np.eye(len(found)))


def test_differences_are_those_of_the_means_and_of_weighted_cells() -> None:
    values = table(np.random.default_rng(1), 2, 3, 0.02, 0.0)
    values[:, 1] += 0.25
    cells, groups, whole = compared(values)
    np.testing.assert_allclose(cells.difference, values[:, 1].mean(axis=1) - values[:, 0].mean(axis=1))
    for found, units in ((cells, 8), (groups, 3), (whole, 1)):
        assert found.weights.shape == (units, 8)
        np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
        np.testing.assert_allclose(found.difference, found.weights @ cells.difference)
        np.testing.assert_allclose(found.difference, 0.25, atol=0.05)
    assert (groups.weights > 0).tolist() == [[name == group for group in GROUPS] for name in "abc"]


def test_noise_without_replicates_and_history_is_the_usual_one() -> None:
    cells, groups, whole = compared(table(np.random.default_rng(2), 2, 1, 0.02, 0.0))
    assert cells.error[0] == pytest.approx(math.sqrt(2 * (DEFAULT_WITHIN_VARIANCE + DEFAULT_BETWEEN_VARIANCE["cell"])))
    assert whole.error[0] == pytest.approx(math.sqrt(2 * (DEFAULT_WITHIN_VARIANCE + DEFAULT_BETWEEN_VARIANCE["all"])))
    assert groups.error[2] >= cells.error[7]  # a group of one cell knows no more than its cell


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize(("within", "between"), [(0.3, 0.0), (0.02, 0.3), (0.2, 0.2)])
def test_noise_is_learnt_from_replicates_and_from_the_past(within: float, between: float, missing: float) -> None:
    """Ratios of differences to their errors scatter by about 1; without the past, a noisy machine is not known."""
    rng = np.random.default_rng(3)
    z, blind = [], []
    for _ in range(60):
        values = table(rng, 20, 3, within, between)
        values[:, :, 1:][rng.uniform(size=(8, 20, 2)) < missing] = math.nan
        for ratios, known in ((z, values), (blind, values[:, -2:])):
            cells, *_ = compared(known)
            ratios += list(cells.difference / cells.error)
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert np.std(blind) > 1.1 or between < within


def test_pairs_whose_cost_changed_are_no_noise() -> None:
    values = table(np.random.default_rng(4), 6, 3, 0.02, 0.02)
    values[:, 2:] += 1.0
    left_out, counted = compared(values, 0.0, False, True, False, False), compared(values)
    assert (left_out[0].error < 0.5 * counted[0].error).all()


def test_different_seeds_are_compared_by_their_means() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(8, 1, 1)) + 0.1 * rng.standard_normal((8, 2, 3))
    values[:, 1, 2] = math.nan
    cells, *_ = effects_by_cell_group_and_all(Blocks(values, np.zeros(values.shape), False, np.zeros((1, 1))), GROUPS)
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


@pytest.mark.parametrize(
    ("difference", "error", "verdicts"),
    [
        pytest.param(
            [0.5, -0.5, 0.0, 0.0],
            [0.05, 0.05, 0.05, 0.5],
            ("worse", "better", "not worse than 10 %", "undecided"),
            id="one of each",
        ),
        pytest.param([math.log(1.04)] * 3, [1e-6] * 3, ("not worse than 10 %",) * 3, id="certain, within the margin"),
        pytest.param([0.3, 0.0, -0.3], [0.0] * 3, ("worse", "not worse than 10 %", "better"), id="no noise at all"),
    ],
)
def test_verdicts(difference: list[float], error: list[float], verdicts: tuple[str, ...]) -> None:
    found = decide_verdicts(level(difference, error), MARGIN, 0.01)
    assert found.verdicts == verdicts
    np.testing.assert_allclose(found.high - found.low, 2 * stats.t.ppf(0.975, 20) * np.array(error))


def test_p_values_are_student_s_beyond_the_margin_corrected_for_the_number_of_units() -> None:
    """As SciPy does it (Benjamini and Hochberg)."""
    difference = np.array([0.2, 0.05, 0.2, -0.1, 0.12])
    found = decide_verdicts(level(difference, 0.05, freedom=7), MARGIN, 0.01)
    for p, sign in ((found.worse, 1), (found.better, -1)):
        single = stats.t.sf((sign * difference - MARGIN) / 0.05, 7)
        np.testing.assert_allclose(p, stats.false_discovery_control(single))


def test_false_alarms_stay_below_alpha() -> None:
    """Of 40 units, none of which differs by more than the margin: all of them just by the margin."""
    rng = np.random.default_rng(7)
    alpha, repeats, alarms = 0.05, 1000, 0
    for _ in range(repeats):
        drawn = MARGIN + 0.1 * rng.standard_normal(40)
        spread = 0.1 * np.sqrt(rng.chisquare(10, 40) / 10)
        alarms += "worse" in decide_verdicts(level(drawn, spread, 10), MARGIN, alpha).verdicts
    assert alarms / repeats <= alpha + 3 * math.sqrt(alpha / repeats)


def test_what_is_called_detectable_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(8)
    size = decide_verdicts(level(np.zeros(40), 0.1), MARGIN, 0.01).detectable[0]
    found = 0
    for _ in range(1000):
        drawn = 0.1 * rng.standard_t(20, 40)
        drawn[0] += size
        found += decide_verdicts(level(drawn, 0.1), MARGIN, 0.01).verdicts[0] == "worse"
    assert found / 1000 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    ("factor", "shift", "changed", "inflated"),
    [
        pytest.param(1.0, 0.0, 0, pytest.approx(1.0, abs=0.15), id="a quiet day"),
        pytest.param(3.0, 0.0, 0, pytest.approx(3.0, rel=0.15), id="a busy day"),
        pytest.param(1.0, 0.4, 0, pytest.approx(1.0, abs=0.15), id="everything slower"),
        pytest.param(1.0, 0.0, 40, pytest.approx(1.2, abs=0.3), id="some cells changed"),
    ],
)
def test_inflation_is_that_of_the_day_not_of_a_change(
    factor: float, shift: float, changed: int, inflated: float
) -> None:
    rng = np.random.default_rng(9)
    errors = 0.05 * rng.uniform(0.3, 3.0, 200)
    drawn = factor * errors * rng.standard_normal(200) + shift + np.where(np.arange(200) < changed, 0.7, 0.0)
    assert error_inflation(drawn, errors) == inflated
    assert error_inflation(9 * drawn[:11], errors[:11]) == 1.0  # too few to tell


MACHINES = ("quieter", "busy")


def rates(machine: str, draws: int) -> list[Row]:
    """With all pairs of sittings, which are known to be of one program."""
    found = [runs for name, runs in gate_records.sittings(machine).items() if name != gate_records.MORE_SEEDS]
    return list(calibration.estimate_rows(found, list(itertools.permutations(range(len(found)), 2)), draws))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("draws", "alarms", "groups", "cells"),
    [
        pytest.param(12, 0.05, 0.9, 0.85, id="few"),
        pytest.param(500, 0.02, 0.95, 0.9, id="all", marks=pytest.mark.slow),
    ],
)
def test_false_alarms_and_findings(machine: str, draws: int, alarms: float, groups: float, cells: float) -> None:
    """The least that is asked of all numbers of seeds together; of many draws, of each."""
    rows = rates(machine, draws)
    assert [row.seeds for row in rows] == [1, 1, 2, 2, 3, 3, 5, 5]
    for part in [rows] if draws < 100 else [[row] for row in rows]:
        several = [row for row in part if row.seeds > 1]
        assert sum(row.red.count for row in part) <= alarms * sum(row.red.draws for row in part), part
        for least, name in ((groups, "slower_group"), (cells, "slower_cell")):
            found = [getattr(row, name) for row in several]
            assert sum(one.count for one in found) >= least * sum(one.draws for one in found), part


@pytest.mark.slow
def test_errors_with_other_seeds() -> None:
    """A changed stream of random numbers, and nothing else; then errors of a method and backend twice as large."""
    one = gate_records.sittings("busy")[gate_records.MORE_SEEDS]
    rows = {row.seeds: row for row in calibration.estimate_rows([one, one], [(0, 1)], 300) if row.seeds > 1}
    assert set(rows) == {2, 3, 5}
    for seeds, row in rows.items():
        assert row.reseeded.draws > 250
        assert row.reseeded.count <= 0.02 * row.reseeded.draws, row
        assert row.worse_group.count >= 0.95 * row.worse_group.draws or seeds < 3, row


def test_a_metric_whose_numbers_have_no_noise_is_passed_over() -> None:
    """As the pairs' error, which only deterministic methods have."""
    one = gate_records.sittings("busy")[gate_records.MORE_SEEDS]
    plain = list(calibration.estimate_rows([one, one], [(0, 1)], 30))
    paired = {
        place: {seed: replace(run, values={**run.values, "pair_rmse": -3.0}) for seed, run in runs.items()}
        for place, runs in one.items()
    }
    assert [row.worse_group for row in calibration.estimate_rows([paired, paired], [(0, 1)], 30)] == [
        row.worse_group for row in plain
    ]


@pytest.mark.parametrize("machine", MACHINES)
def test_equal_seeds_of_an_unchanged_program_are_identical(machine: str) -> None:
    first, second, *_ = gate_records.sittings(machine).values()
    found = judge(Sides(first, second))
    assert found.identical == found.common > 200
    assert not found.red
