"""Sweeps that are killed at any time, by any signal, two at once: nothing is lost, doubled, torn or left hanging."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak
# Tests that run side by side, each with as many lives of its own.
SHARES = 8
# Histories with two sweeps each, which are killed until they have had `KILLS`, and then go on to their end.
LIVES = 16
KILLS = 8
SEEDS = 6
# Seconds, about, of a sweep that nobody kills; a signal comes at any of them.
WHOLE = 5.0
PATIENCE = 20.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP)
# In the environment of all that a sweep starts.
MARK = "SPINBENCH_SOAKED"
# In tracebacks; of others Python's own start was interrupted.
BEGUN = re.compile(r'cli\.py", line \d+, in main')
CELLS = ("-m", "method=exact", "backend=numpy", "model=boltzmann/neural15")


@dataclass
class Sweep:
    """One of the two of a life."""

    folder: Path
    first_seed: int
    process: subprocess.Popen[str] | None = None

    def start(self, history: Path) -> None:
        if (self.folder / "sweep.json").exists():
            words = ["--resume", str(self.folder)]
        else:
            seeds = f"seed=range({self.first_seed},{self.first_seed + SEEDS})"
            words = [*CELLS, seeds, f"sweep_dir={self.folder}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spinbench", "sweep", *words],
            cwd=history,
            env={**os.environ, "SPINBENCH_HISTORY": str(history), MARK: str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def records(self) -> list[Path]:
        return sorted(self.folder.rglob("record-*.json"))


@dataclass
class Counts:
    """What went wrong, by name."""

    found: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def add(self, name: str, why: str) -> None:
        self.found[name] += 1
        self.said.append(f"{name}: {why}")


def killed(sweep: Sweep, draw: random.Random, counts: Counts) -> None:
    """Send a signal, to the process or to all of its group, and see that all of them end."""
    process = sweep.process
    assert process is not None
    number, to_all = draw.choice(SIGNALS), draw.random() < 0.3
    alive = process.poll() is None
    if alive:
        (os.killpg if to_all else os.kill)(process.pid, number)
        counts.found["signals"] += 1
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        counts.add("hung", f"{signal.Signals(number).name}, {to_all}")
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    if BEGUN.search(said) and alive:
        counts.add("tracebacks", f"{signal.Signals(number).name}: {said[-2000:]}")
    end = time.monotonic() + PATIENCE
    while members := list(running(sweep.folder)):
        if time.monotonic() > end:
            counts.add("workers left", f"{signal.Signals(number).name}, {to_all}: {members}")
            for member in members:
                os.kill(member, signal.SIGKILL)
            break
        time.sleep(0.02)


def running(folder: Path) -> Iterator[int]:
    """Processes that a sweep has started, in whatever session."""
    wanted = f"{MARK}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in entry.read_bytes().split(b"\0"):  # of those that have ended it is empty
                yield int(entry.parent.name)
        except OSError:
            continue


def check_whole(paths: list[Path], counts: Counts) -> None:
    for path in paths:
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            counts.add("torn", f"{path}: {error}")


def life(base: Path, draw: random.Random, counts: Counts) -> None:
    """Two sweeps into one history."""
    history = base / "history"
    history.mkdir(parents=True)
    made = subprocess.run(
        [sys.executable, "-m", "spinbench", "init", "."], cwd=history, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    sweeps = [Sweep(base / f"sweep{first}", first) for first in (0, SEEDS)]
    goal = counts.found["signals"] + KILLS
    while counts.found["signals"] < goal:
        for sweep in sweeps:
            sweep.start(history)
        for sweep in draw.sample(sweeps, 2):
            time.sleep(draw.random() * WHOLE / 2)
            killed(sweep, draw, counts)
        check_whole([*base.rglob("record-*.json")], counts)
    for sweep in sweeps:
        sweep.start(history)
        assert sweep.process is not None
        said, _ = sweep.process.communicate(timeout=300)
        if sweep.process.returncode:
            counts.add("sweeps that could not go on", said[-2000:])
    check_end(sweeps, history, counts)


def check_end(sweeps: list[Sweep], history: Path, counts: Counts) -> None:
    """Each cell stands once in its sweep's records, and each record once in the journal."""
    ids = []
    for sweep in sweeps:
        found = [json.loads(path.read_text(encoding="utf-8")) for path in sweep.records()]
        seeds = sorted(record["config"]["seed"] for record in found)
        wanted = list(range(sweep.first_seed, sweep.first_seed + SEEDS))
        counts.found["cells"] += len(wanted)
        if seeds != wanted or any(record["status"] != "ok" for record in found):
            counts.add("lost or doubled", f"seeds {seeds}, {[record['status'] for record in found]}")
        ids += [record["id"] for record in found]
    entered = [json.loads(path.read_text(encoding="utf-8"))["id"] for path in history.rglob("journal/**/record-*.json")]
    if sorted(entered) != sorted(set(entered)) or not set(ids) <= set(entered):
        counts.add("lost or doubled in the history", f"{len(ids)} records, {len(entered)} entered")
    if left := [path for path in history.parent.rglob("*") if path.name.endswith(".tmp")]:
        counts.add("fragments left", str(left))


@pytest.mark.parametrize("share", [pytest.param(k, marks=pytest.mark.xdist_group(f"kills {k}")) for k in range(SHARES)])
def test_kills(
    share: int, tmp_path: Path, scaled: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    counts, draw = Counts(), random.Random(share)
    for number in range(scaled(LIVES)):
        life(tmp_path / str(number), draw, counts)
    names = ("torn", "hung", "tracebacks", "workers left", "lost or doubled", "lost or doubled in the history")
    for name in ("signals", "cells", *names, "sweeps that could not go on", "fragments left"):
        record_property(name, counts.found[name])
    assert not counts.said, "\n".join(counts.said)
