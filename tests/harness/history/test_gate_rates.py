"""How often the gate errs on real records, and what it finds: two machines that others used, sittings for commits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import gate_records
import pytest

from spinbench.history import calibration
from spinbench.history.calibration import Row
from spinbench.history.regression_test.judge import judge
from spinbench.history.regression_test.measurements import Sides

MACHINES = ("quieter", "busy")


def rates(machine: str, draws: int) -> list[Row]:
    """With all pairs of sittings, which are known to be of one program."""
    found = [runs for name, runs in gate_records.sittings(machine).items() if name != gate_records.MORE_SEEDS]
    return list(calibration.rows(found, list(itertools.permutations(range(len(found)), 2)), draws))


@pytest.mark.parametrize("machine", MACHINES)
def test_false_alarms_and_findings_of_a_few_draws(machine: str) -> None:
    rows = rates(machine, 20)
    assert [row.seeds for row in rows] == [1, 1, 2, 2, 3, 3, 5, 5]
    assert sum(row.red.count for row in rows) <= 1
    several = [row for row in rows if row.seeds > 1]
    assert sum(row.slower_group.count for row in several) >= 0.9 * sum(row.slower_group.draws for row in several)
    assert sum(row.slower_cell.count for row in several) >= 0.85 * sum(row.slower_cell.draws for row in several)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_false_alarms_and_findings_of_all_draws(machine: str) -> None:
    for row in rates(machine, 500):
        assert row.red.count <= 0.02 * row.red.draws, row
        if row.seeds > 1:
            assert row.slower_group.count >= 0.95 * row.slower_group.draws, row
            assert row.slower_cell.count >= 0.9 * row.slower_cell.draws, row


@pytest.mark.slow
def test_errors_with_other_seeds() -> None:
    """A changed stream of random numbers, and nothing else; then errors of a method and backend twice as large."""
    one = gate_records.sittings("busy")[gate_records.MORE_SEEDS]
    rows = {row.seeds: row for row in calibration.rows([one, one], [(0, 1)], 300) if row.seeds > 1}
    assert set(rows) == {2, 3, 5}
    for seeds, row in rows.items():
        assert row.reseeded.draws > 250
        assert row.reseeded.count <= 0.02 * row.reseeded.draws, row
        assert row.worse_group.count >= 0.95 * row.worse_group.draws or seeds < 3, row


def test_a_metric_whose_numbers_have_no_noise_is_passed_over() -> None:
    """As the pairs' error, which only deterministic methods have."""
    one = gate_records.sittings("busy")[gate_records.MORE_SEEDS]
    plain = list(calibration.rows([one, one], [(0, 1)], 30))
    paired = {
        place: {seed: replace(run, values={**run.values, "pair_rmse": -3.0}) for seed, run in runs.items()}
        for place, runs in one.items()
    }
    assert [row.worse_group for row in calibration.rows([paired, paired], [(0, 1)], 30)] == [
        row.worse_group for row in plain
    ]


@pytest.mark.parametrize("machine", MACHINES)
def test_equal_seeds_of_an_unchanged_program_are_identical(machine: str) -> None:
    first, second, *_ = gate_records.sittings(machine).values()
    found = judge(Sides(first, second))
    assert found.identical == found.common > 200
    assert not found.red
