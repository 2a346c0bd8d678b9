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
