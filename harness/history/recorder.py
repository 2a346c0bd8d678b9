"""Records of sweeps into asv's performance history. Besides asv's plugin, the only module that imports asv.

    .asv/journal/MACHINE/ENV/COMMIT/record-ID.json   every record that entered the history (see journal.py)
    .asv/results/MACHINE/COMMIT-ENV.json         asv's result file, rebuilt from the journal
    .asv/results/benchmarks.json                 asv's own discovery of harness/suite

A recorder holds a file lock; every file is replaced whole. Values that `asv run` stored are kept, except in cells
that the journal knows. In asv's files NaN means "not run" and None "failed"; an infinity would hang `asv publish`.
A cell that ran without giving a certain metric is "not run" there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import asv.benchmark
from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import Machine
from asv.repo import get_repo
from asv.results import Results, get_filename
from filelock import FileLock, Timeout

from spinbench.errors import HistoryError
from spinbench.foundation.checkout import CONFIG, Checkout
from spinbench.history import asv_cells, axes, journal
from spinbench.history.asv_benchmarks import MACHINE_VARIABLE
from spinbench.history.asv_plugin import (
    ENVIRONMENT,
    PYTHON,
    describe_machine,
    machine_name,
    stored_machine,
)
from spinbench.history.axes import Cell
from spinbench.history.intake import sort_out
from spinbench.history.journal import Journal, Replicates

if (Results.api_version, Benchmarks.api_version, Machine.api_version) != (2, 2, 1):
    raise ImportError(
        f"asv's formats are results {Results.api_version}, benchmarks {Benchmarks.api_version} and machine "
        f"{Machine.api_version}; spinbench.history.recorder writes 2, 2 and 1"
    )

LOCK_SECONDS = 600.0
_MACHINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class RecordReport:
    """What `record` did.

    Attributes:
        machine: the name under which this machine's history is kept.
        commits: hashes whose result files were rebuilt.
        files: those files.
        new, known: records that entered the journal now, or were there already.
        refused: why others stay out of the history, as sentences with counts.
    """

    machine: str
    commits: tuple[str, ...]
    files: tuple[Path, ...]
    new: int
    known: int
    refused: tuple[str, ...]

    def sentences(self) -> list[str]:
        """The report for people."""
        lines = []
        if self.commits:
            where = ", ".join(commit[:8] for commit in self.commits)
            lines.append(
                f"{self.new} new and {self.known} known records stand in asv's history of {self.machine} for commit "
                f"{where}; see them with `asv show {self.commits[-1][:8]}`"
            )
        return [*lines, *self.refused]


def record(root: Path, folders: Sequence[Path]) -> RecordReport:
    """Enter the records of sweep folders into the history; doing it again changes nothing.

    Args:
        root: the checkout, or a folder inside it.
        folders: sweep folders; all files record-*.json below them are read.

    Raises:
        HistoryError: no git checkout, no asv.conf.json, a folder without records, or asv cannot read the project.
    """
    return History.open(root).record(folders)


class History:
    """The history of one machine in one checkout."""

    def __init__(self, checkout: Checkout, config: Any, machine: str) -> None:
        """See `open`."""
        self.checkout = checkout
        self.machine = machine
        self._config = config
        self._results = Path(config.results_dir)
        self.journal = Journal(self._results.parent / "journal" / machine / ENVIRONMENT)

    @classmethod
    def open(cls, root: Path, machine: str | None = None) -> History:
        """The history kept in a checkout.

        Args:
            root: the checkout, or a folder inside it.
            machine: whose history; by default SPINBENCH_MACHINE's or asv's name of this one.

        Raises:
            HistoryError: as `Checkout.open`, or asv.conf.json cannot be read, or the name cannot name a folder.
        """
        checkout = Checkout.open(root)
        try:
            config = Config.load(str(checkout.root / CONFIG))
        except (util.UserError, ValueError) as error:
            raise HistoryError(f"asv cannot read {checkout.root / CONFIG}: {_line(error)}") from error
        for name in ("results_dir", "html_dir", "benchmark_dir", "env_dir"):
            setattr(config, name, str(checkout.root / getattr(config, name)))
        config.repo = str(checkout.root)
        name = machine or machine_name()
        if not _MACHINE_NAME.fullmatch(name):
            raise HistoryError(
                f"machine name {name!r} cannot name a folder; set {MACHINE_VARIABLE} to letters, digits, '.', '_', '-'"
            )
        return cls(checkout, config, name)

    def record(self, folders: Sequence[Path]) -> RecordReport:
        """See the function `record`."""
        for folder in folders:
            if not folder.is_dir():
                raise HistoryError(f"{folder} is not a folder; give folders that `spinbench sweep` wrote")
        records, problems = journal.read(folders)
        if not records and not problems:
            given = ", ".join(map(str, folders)) or "no folder"
            raise HistoryError(
                f"there are no files record-*.json in {given}; give folders that `spinbench sweep` wrote"
            )
        host = None if os.environ.get(MACHINE_VARIABLE) else socket.gethostname()
        intake = sort_out(records, self.checkout, python=PYTHON, host=host)
        new = 0
        commits = {entry["git"]["commit"] for entry in intake.accepted}
        files: list[Path] = []
        if commits:
            with self._lock():
                self.journal.clear_fragments()
                for entry in intake.accepted:
                    new += self.journal.add(entry, axes.family(entry["family"]))
                benchmarks = self._benchmarks()
                info = self._machine_info()
                for commit in sorted(commits):
                    path, problem = self._rebuild(benchmarks, info, commit)
                    files.append(path)
                    problems += [problem] if problem else []
        return RecordReport(
            machine=self.machine,
            commits=tuple(sorted(commits)),
            files=tuple(files),
            new=new,
            known=len(intake.accepted) - new,
            refused=(*intake.refused, *problems),
        )

    def commits(self) -> set[str]:
        """Full hashes of the commits with a journal or an asv result file of this machine and environment."""
        found = self.journal.commits()
        for path in (self._results / self.machine).glob(f"*-{ENVIRONMENT}.json"):
            loaded = _load(path)
            if loaded is not None:
                found.add(loaded.commit_hash)
        return found

    def measured(self, commit: str) -> dict[tuple[str, str, Cell], Replicates]:
        """What is known of a commit, by (family, metric, cell): the journal, and asv's values for other cells."""
        entries = self.journal.entries(commit)
        loaded = _load(self._results / get_filename(self.machine, commit, ENVIRONMENT))
        found: dict[tuple[str, str, Cell], Replicates] = {}
        for name, family in axes.families().items():
            for metric in family.metrics:
                stored = asv_cells.stored(loaded, family, metric) if loaded is not None else {}
                found |= {(name, metric.name, cell): value for cell, value in stored.items()}
            known = journal.replicates(entries, family)
            found |= {(name, metric, cell): value for (metric, cell), value in known.items()}
        return found

    @cached_property
    def _repo(self) -> Any:
        return get_repo(self._config)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        home = self._results.parent
        lock = home / "record.lock"
        try:
            self._results.mkdir(parents=True, exist_ok=True)
            with FileLock(lock, timeout=LOCK_SECONDS):
                yield
        except Timeout as error:
            raise HistoryError(f"another recorder has held {lock} for {LOCK_SECONDS:g} s; try again later") from error
        except OSError as error:
            raise HistoryError(f"the history in {home} cannot be written: {_line(error)}") from error

    def _benchmarks(self) -> Mapping[str, Any]:
        """asv's descriptions of the benchmarks, discovered as `asv run` does unless they are known and current."""
        path = Path(Benchmarks.get_benchmark_file_path(self._config.results_dir))
        try:
            known: dict[str, Any] = util.load_json(str(path), Benchmarks.api_version)
            asv_cells.check(known)
        except (OSError, ValueError, util.UserError, HistoryError):
            known = self._discover(path)
            asv_cells.check(known)
        return known

    def _discover(self, path: Path) -> dict[str, Any]:
        """Store the benchmarks that asv finds; without them asv shows no result."""
        with self._scratch() as scratch:
            out = scratch / "benchmarks.json"
            command = [sys.executable, asv.benchmark.__file__, "discover", self._config.benchmark_dir, str(out)]
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if done.returncode or not out.is_file():
                reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise HistoryError(f"asv cannot import the benchmarks in {self._config.benchmark_dir}: {reason}")
            found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
            benchmarks = {benchmark["name"]: benchmark for benchmark in found}
            util.write_json(str(out), dict(benchmarks), Benchmarks.api_version)
            os.replace(out, path)
        return benchmarks

    def _machine_info(self) -> dict[str, str]:
        """asv's description of this machine. The first one stays: each of its fields is part of a series' name."""
        stored = stored_machine(self._results, self.machine)
        if stored is None:
            stored = describe_machine(self.machine)
            with self._scratch() as scratch:
                path = self._results / self.machine / "machine.json"
                util.write_json(str(scratch / path.name), dict(stored), Machine.api_version)
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(scratch / path.name, path)
        return stored

    def _rebuild(self, benchmarks: Mapping[str, Any], info: Mapping[str, str], commit: str) -> tuple[Path, str]:
        """Write a commit's result file anew; returns it, and a sentence if the old one could not be read."""
        name = get_filename(self.machine, commit, ENVIRONMENT)
        path = self._results / name
        params = {**info, "python": PYTHON}
        results = Results(params, {}, commit, self._repo.get_date(commit), PYTHON, ENVIRONMENT, {})
        problem = ""
        try:
            results.load_data(str(self._results))
        except (util.UserError, ValueError) as error:
            aside = self._results.parent / "damaged" / f"{path.name}.{os.urandom(4).hex()}"
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, aside)
            problem = f"{path} was damaged ({_line(error)}); it was moved to {aside} and rebuilt from the journal"
        entries = self.journal.entries(commit)
        for family in axes.families().values():
            known = journal.replicates(entries, family)
            for metric in family.metrics:
                cells = {cell: value for (tracked, cell), value in known.items() if tracked == metric.name}
                if cells:
                    asv_cells.enter(results, benchmarks[family.benchmark(metric.name)], cells)
        with self._scratch() as scratch:
            results.save(str(scratch))
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, path)
        return path, problem

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder on the same file system, outside the results that asv walks through."""
        home = self._results.parent / "scratch"
        shutil.rmtree(home, ignore_errors=True)  # left by a recorder that was killed; the lock is ours
        home.mkdir(parents=True)
        try:
            yield Path(tempfile.mkdtemp(dir=home))
        finally:
            shutil.rmtree(home, ignore_errors=True)


def _load(path: Path) -> Any:
    """asv's results in a file; None where there is none or it is damaged."""
    try:
        return Results.load(str(path)) if path.is_file() else None
    except (util.UserError, ValueError):
        return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
