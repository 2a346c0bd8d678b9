"""Sweeps that are killed at random, and two at once: what was measured stands in the records and the history once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spinbench.history.journal import read
from spinbench.history.recorder import History
from spinbench.measuring import records

SEEDS = 32
KILLS = 20
# a cell that the history tracks, with the settings of its series, and that takes milliseconds
CELLS = ("-m", "method=exact", "backend=numpy", "model=boltzmann/neural15")

# Starting Python and importing takes most of a second: all sweeps are forked from one process that has done so.
FORKS = """
import json, os, random, signal, sys, time
from pathlib import Path
import spinbench.history.recorder, spinbench.reporting.summary, spinbench.sweeping.sweep
from spinbench import cli
from spinbench.reporting import display

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

def written():
    found = list(Path("out").rglob("record-*.json")) + list(Path("project/.asv").rglob("record-*.json"))
    for path in found:
        json.loads(path.read_text())  # whole, whenever it is read
    return len(found)
"""
KILLER = (
    FORKS
    + """
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
child = start("sweep", *words)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), before]))
"""
)
SIDE_BY_SIDE = (
    FORKS
    + """
children = [start("sweep", *words.split()) for words in sys.argv[1:]]
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""
)


@pytest.fixture
def commit(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a project whose history sweeps write, in a folder to sweep in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    found: str = project.commit("first")
    return found


@pytest.mark.slow
def test_no_record_is_lost_or_counted_twice_by_kills(project: Any, commit: str) -> None:
    overrides = (*CELLS, f"seed=range(0,{SEEDS})", "sweep_dir=out")
    status, before = _python(KILLER, str(KILLS), *overrides)
    assert status == 0, Path("output").read_text()[-2000:]
    assert before > 0
    found = records.read_records(Path("out"))
    assert sorted(record["config"]["seed"] for record in found) == list(range(SEEDS))
    assert {record["status"] for record in found} == {"ok"}
    _stands_once(project, commit, found)


def test_two_sweeps_at_once_into_one_history(project: Any, commit: str) -> None:
    chosen = " ".join(CELLS)
    one, two = (f"{chosen} seed=range({first},{first + 6}) sweep_dir=out{first}" for first in (0, 6))
    assert _python(SIDE_BY_SIDE, one, two) == [0, 0], Path("output").read_text()[-2000:]
    found = [record for folder in ("out0", "out6") for record in records.read_records(Path(folder))]
    assert sorted(record["config"]["seed"] for record in found) == list(range(12))
    _stands_once(project, commit, found)


def test_two_sweeps_at_once_into_one_folder(project: Any, commit: str) -> None:
    """A cell that both measure counts once."""
    words = f"{' '.join(CELLS)} seed=range(0,6) sweep_dir=out"
    assert _python(SIDE_BY_SIDE, words, words) == [0, 0], Path("output").read_text()[-2000:]
    found = records.read_records(Path("out"))
    assert sorted(record["config"]["seed"] for record in found) == list(range(6))
    known = _values(project, commit)
    assert len(known) == 6
    assert not list(Path().rglob("*.tmp"))


def _stands_once(project: Any, commit: str, found: list[dict[str, Any]]) -> None:
    """In the journal, and as one value for each seed in asv's history; and nothing else lies about."""
    journal = project.root / ".asv" / "journal"
    entered, problems = read([journal])
    assert not problems
    assert sorted(record["id"] for record in entered) == sorted(record["id"] for record in found)
    assert len(list(journal.rglob("record-*.json"))) == len(found)
    assert len(_values(project, commit)) == len(found)
    assert project.value(commit, "run_seconds", ("boltzmann/neural15", "exact", "numpy")) > 0
    assert not [path for path in Path().rglob("*") if path.name.endswith(".tmp")]
    assert not (project.root / ".asv" / "scratch").exists()
    assert not (project.root / ".asv" / "damaged").exists()


def _values(project: Any, commit: str) -> tuple[float, ...]:
    measured = History.open(project.root).measured(commit)
    return measured["inference", "run_seconds", ("boltzmann/neural15", "exact", "numpy")].values


def _python(program: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
