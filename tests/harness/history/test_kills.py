"""Sweeps and recorders that are killed at random, and two at once: what was measured stands in the history once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spinbench.history.journal import read_sweep_folders
from spinbench.history.recorder import History
from spinbench.measuring import records

SEEDS = 32
KILLS = 20
# a cell that the history tracks, with the settings of its series, and that takes milliseconds
CELL = ("boltzmann/neural15", "exact", "numpy")
CELLS = ("-m", "method=exact", "backend=numpy", "model=boltzmann/neural15")

# Starting Python and importing takes most of a second: all are forked from one process that has done so.
FORKS = """
import json, os, random, signal, sys, time
from pathlib import Path
import spinbench.history.recorder, spinbench.reporting.summary, spinbench.sweeping.sweep
from spinbench import cli
from spinbench.reporting import progress_display

def start(*words):
    child = os.fork()
    if child == 0:
        status = 99
        try:
            nothing = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(nothing, 1), os.dup2(nothing, 2)
            status = cli.main(list(words))
        finally:
            os._exit(status)
    return child

def ended(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

def kill(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

def statuses(*children):
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

def written():
    found = list(Path("out").rglob("record-*.json")) + list(Path("project/.asv").rglob("record-*.json"))
    for path in found:
        json.loads(path.read_text())  # whole, whenever it is read
    return len(found)
"""
KILLED_SWEEPS = """
first, kills, seed = sys.argv[2:], int(sys.argv[1]), 7
draw = random.Random(seed)
words, done = first, 0
while done < kills:
    # a few records later, and at any point of the next one
    goal = written() + draw.randrange(3)
    child = start("sweep", *words)
    while written() < goal and not ended(child):
        time.sleep(0.002)
    time.sleep(draw.random() * 0.05)
    kill(child)
    done += 1
    words = ("--resume", "out") if Path("out/sweep.json").exists() else first
    if written():
        child = start("record", "out")
        time.sleep(draw.random() * 0.3)
        kill(child)
before = written()
print(json.dumps([*statuses(start("sweep", *words)), before]))
"""
KILLED_RECORDERS = """
draw, folders = random.Random(5), sys.argv[2:]
for _ in range(int(sys.argv[1])):
    child = start("record", draw.choice(folders))
    time.sleep(0.01 + 0.15 * draw.random())
    kill(child)
print(json.dumps(statuses(*[start("record", folder) for folder in folders])))  # both at once
"""
SIDE_BY_SIDE = "print(json.dumps(statuses(*[start('sweep', *words.split()) for words in sys.argv[1:]])))"


@pytest.fixture
def commit(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a project whose history sweeps write, in a folder to sweep in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    found: str = project.commit("first")
    return found


def run(program: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", FORKS + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def told() -> str:
    """What the forked ones said last."""
    return Path("output").read_text()[-2000:]


def values(project: Any, commit: str) -> tuple[float, ...]:
    return History.open(project.root).replicates(commit)["inference", "run_seconds", CELL].values


def assert_nothing_lies_about(project: Any) -> None:
    for path in (project.root / ".asv").rglob("*.json"):
        json.loads(path.read_text())
    assert not list(Path().rglob("*.tmp"))
    assert not (project.root / ".asv" / "scratch").exists()
    assert not (project.root / ".asv" / "damaged").exists()


def assert_stands_once(project: Any, commit: str, seeds: int, *folders: str) -> None:
    """In the journal, and as one value for each seed in asv's history."""
    found = [record for folder in folders for record in records.read_records(Path(folder))]
    assert sorted((record["config"]["seed"], record["status"]) for record in found) == [(s, "ok") for s in range(seeds)]
    journal = project.root / ".asv" / "journal"
    entered, problems = read_sweep_folders([journal])
    assert not problems
    assert sorted(record["id"] for record in entered) == sorted(record["id"] for record in found)
    assert len(list(journal.rglob("record-*.json"))) == len(values(project, commit)) == seeds
    assert project.value(commit, "run_seconds", CELL) > 0
    assert_nothing_lies_about(project)


@pytest.mark.slow
def test_no_record_is_lost_or_counted_twice_by_kills(project: Any, commit: str) -> None:
    status, before = run(KILLED_SWEEPS, str(KILLS), *CELLS, f"seed=range(0,{SEEDS})", "sweep_dir=out")
    assert status == 0, told()
    assert before > 0
    assert_stands_once(project, commit, SEEDS, "out")


def test_two_sweeps_at_once_into_one_history(project: Any, commit: str) -> None:
    words = [f"{' '.join(CELLS)} seed=range({first},{first + 3}) sweep_dir=out{first}" for first in (0, 3)]
    assert run(SIDE_BY_SIDE, *words) == [0, 0], told()
    assert_stands_once(project, commit, 6, "out0", "out3")


def test_two_sweeps_at_once_into_one_folder(project: Any, commit: str) -> None:
    """A cell that both measure counts once."""
    words = f"{' '.join(CELLS)} seed=range(0,6) sweep_dir=out"
    assert run(SIDE_BY_SIDE, words, words) == [0, 0], told()
    assert sorted(record["config"]["seed"] for record in records.read_records(Path("out"))) == list(range(6))
    assert len(values(project, commit)) == 6
    assert_nothing_lies_about(project)


def test_kills_of_recorders_while_axes_grow_and_two_at_once_lose_nothing(project: Any, commit: str) -> None:
    chains = (range(2, 9), range(6, 13))  # settings beyond those of conf/axes
    folders = []
    for seed, numbers in enumerate(chains):
        made = [project.record(project.cells[0], commit, seed) for _ in numbers]
        for one, number in zip(made, numbers, strict=True):
            one["config"]["chains"] = number
        folders.append(str(project.sweep(f"sweep{seed}", made)))
    assert run(KILLED_RECORDERS, "12", *folders) == [0, 0], told()
    entries = History.open(project.root).journal.read_entries(commit)
    assert sorted((one["config"]["seed"], one["config"]["chains"]) for one in entries) == [
        (seed, number) for seed, numbers in enumerate(chains) for number in numbers
    ]
    stored = json.loads((project.root / ".asv" / "results" / "benchmarks.json").read_text())
    grown = {name: sorted(one["params"][0]) for name, one in stored.items() if name.startswith("swept.")}
    expected = sorted(f"'gibbs numpy chains={number}'" for number in range(2, 13))
    assert grown == dict.fromkeys(grown, expected)
    assert {name: sorted(project.result(commit)[name]["params"][0]) for name in grown} == grown
    assert_nothing_lies_about(project)
