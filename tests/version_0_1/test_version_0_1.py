"""What version 0.1.0 wrote is read, and its command lines mean what they meant."""

from __future__ import annotations

import importlib
import shlex
import shutil
from pathlib import Path

import pytest

import spinbench
from spinbench.cli import build_parser
from spinbench.history import axes
from spinbench.history.journal import Journal
from spinbench.measuring import records
from spinbench.measuring.record_types import parse_record
from spinbench.models import networks
from spinbench.reporting import leaderboard
from spinbench.sweeping import composition
from spinbench.sweeping.arguments import Arguments

HERE = Path(__file__).parent
COMMANDS = """
advise my.uai --budget 30s --target log_z
advise my.uai --target log_z --candidates gibbs,pt,wmb.numpy
bracket my.uai --evidence my.uai.evid --budget 10s
check --backend cupy --device gpu
gate --base main --head my-branch
gate --calibrate
history --since v0.1 --worse
init .
list
peers install pgmax
profile multirun/field --page board.md
publish --offline
report --compare multirun/before multirun/after
report --tables multirun/tour
report multirun/many --model 'many/00*'
rerun 0ccdeb
run my.uai --budget 1min --until 'se<0.01'
run my.uai --evidence my.uai.evid --method blocks --set size=64 --budget 5s --output my.uai.MAR --output my.csv
run my.uai --target map --method exact
show 0ccdeb
""".strip().splitlines()
SWEEPS = """
-m experiment=tour
-m model=grid model.rows=8,16 method=gibbs,bp backend=numpy,numba budget=smoke seed=0,1
-m model=grid method=dhmc method.log_z=mirrored backend=jax backend.precision=float32 budget.seconds=0.5
-m experiment=dhmc_fig2 seed=range(0,4)
-m method=pt,wmb backend=numba model=random_regular chains=8 budget=samples budget.samples=100
""".strip().splitlines()


def test_generators_of_forney_models_are_found_where_they_were() -> None:
    with pytest.warns(DeprecationWarning, match=r"is spinbench\.models\.networks\.gauge_cycle; 0\.3 ends the former"):
        old = importlib.import_module("spinbench.models.forney.generators").gauge_cycle
    assert old is networks.gauge_cycle


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    build_parser().parse_args(shlex.split(line))


@pytest.mark.parametrize("line", SWEEPS)
def test_sweeps_compose(line: str) -> None:
    arguments = Arguments.parse(shlex.split(line))
    composition.plan(arguments.of_cells, multirun=arguments.multirun)


def test_a_folder_of_records_is_read_and_ranked(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    for path in HERE.glob("record-*.json"):
        shutil.copy(path, folder)
    found = {record.axes.method: record for record in records.read_records(tmp_path)}
    assert found.keys() == {"gibbs", "bp"}
    assert found["bp"].result.timing.run == pytest.approx(0.013694, abs=1e-6)
    assert found["bp"].metrics["log_z_error"].value == pytest.approx(0.061424, abs=1e-6)
    assert "ladder" not in found["gibbs"].config["method"]
    table = spinbench.read(tmp_path)
    assert set(table["config.method.name"]) == {"gibbs", "bp"}
    (first, second) = leaderboard.rows(list(found.values()))
    assert (first.method, second.method) == ("gibbs", "bp")


def test_a_journal_is_read_and_continued(tmp_path: Path) -> None:
    shutil.copytree(HERE / "journal", tmp_path / "journal")
    kept = Journal(tmp_path / "journal")
    (commit,) = kept.commits()
    (old,) = kept.read_entries(commit)
    assert old.axes.method == "gibbs"
    new = parse_record({**old.content, "id": "0" * 32, "started_at": old.started_at + 1})
    assert kept.add(new, axes.family("inference").metrics)
    assert [entry.id for entry in kept.read_entries(commit)] == [old.id, new.id]
