"""asv's result files of one machine: one a commit, and beside them what describes the benchmarks and the machine.

In asv's files NaN means "not run" and None "failed"; an infinity would hang `asv publish`. Every file is replaced
whole. Besides asv's plugin and the recorder, the only module that imports asv.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asv.benchmark
from asv import util
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.results import Results, get_filename

from spinbench.errors import HistoryError
from spinbench.foundation.checkout import Checkout
from spinbench.history import asv_cells, asv_series, axes, journal
from spinbench.history.asv_plugin import ENVIRONMENT, describe_machine, stored_machine
from spinbench.history.axes import Column, Family
from spinbench.history.series import Book
from spinbench.measuring.record_types import Record

if (Results.api_version, Benchmarks.api_version, Machine.api_version) != (2, 2, 1):
    raise ImportError(
        f"asv's formats are results {Results.api_version}, benchmarks {Benchmarks.api_version} and machine "
        f"{Machine.api_version}; spinbench.history.asv_results writes 2, 2 and 1"
    )


@dataclass(frozen=True)
class ResultFiles:
    """The result files of a machine in an environment.

    Attributes:
        config: asv's, with absolute paths.
        machine: the name under which its history is kept.
        environment: asv's name of it, by default the running interpreter's.
    """

    config: Any
    machine: str
    environment: str = ENVIRONMENT

    @property
    def folder(self) -> Path:
        """Of the results of all machines."""
        return Path(self.config.results_dir)

    @property
    def families(self) -> Mapping[str, Family]:
        """The families of conf/axes that this history has."""
        return axes.families_in(Path(self.config.benchmark_dir))

    def commits(self) -> set[str]:
        """Full hashes of the commits with a file."""
        loaded = map(_load, (self.folder / self.machine).glob(f"*-{self.environment}.json"))
        return {results.commit_hash for results in loaded if results is not None}

    def read(self, commit: str) -> Any:
        """asv's `Results` of a commit; None where there is no file or it is damaged."""
        return _load(self.folder / get_filename(self.machine, commit, self.environment))

    def commit_in(self, other: Path) -> str:
        """The commit of another history's file, if it is of this machine and environment; else empty."""
        found = _load(other)
        if found is None or other.name != Path(get_filename(self.machine, found.commit_hash, self.environment)).name:
            return ""
        return str(found.commit_hash)

    def adopt(self, other: Path, known: Set[Column], foreign: Set[Column]) -> tuple[bool, bool]:
        """Take from another history's file of this machine and environment what only `asv run` measured.

        Args:
            other: the file.
            known: columns of conf/axes whose values are from that history's journal.
            foreign: columns that have other settings there than here.

        Returns:
            Whether there was anything, and whether something of `foreign` was left out.
        """
        theirs = _load(other)
        if theirs is None:
            return False, False
        asv_series.forget(theirs)
        left_out = False
        for family in axes.families().values():
            cells = {family.column(cell): cell for cell in family.cells}
            asv_cells.forget(theirs, family, {cells[column] for column in known & cells.keys()})
            left_out |= asv_cells.forget(theirs, family, {cells[column] for column in foreign & cells.keys()})
        mine = self.read(theirs.commit_hash)
        if mine is None:
            mine = theirs
        elif not asv_cells.complete(mine, theirs):
            return False, left_out
        self._save(mine, get_filename(self.machine, theirs.commit_hash, self.environment))
        return True, left_out

    def begin(self, commits: Iterable[str]) -> None:
        """Note that files of commits lack records of the journal until `rebuild`: who writes may be killed."""
        self._unfinished.mkdir(parents=True, exist_ok=True)
        for commit in commits:
            (self._unfinished / commit).touch()

    def behind(self) -> set[str]:
        """Full hashes of the commits that were begun and not rebuilt."""
        return {path.name for path in self._unfinished.iterdir()} if self._unfinished.is_dir() else set()

    @property
    def _unfinished(self) -> Path:
        return self.folder.parent / "unfinished" / self.machine / self.environment

    def describe(self, stored: Mapping[str, str]) -> None:
        """Keep asv's description of this machine, unless there is one: each of its fields is part of a series' name."""
        path = self.folder / self.machine / "machine.json"
        if stored_machine(self.folder, self.machine) is None:
            with self._scratch() as scratch:
                util.write_json(str(scratch / path.name), dict(stored), Machine.api_version)
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(scratch / path.name, path)

    def rebuild(self, entries: Mapping[str, Sequence[Record]], book: Book) -> tuple[list[Path], list[str]]:
        """Write commits' files anew; values that only asv knows stay.

        Args:
            entries: the journal's, by commit.
            book: all series.

        Returns:
            The files, and a sentence for each that could not be read before.

        Raises:
            HistoryError: asv cannot import the suite, or its benchmarks are not those of conf/axes.
        """
        benchmarks = self._benchmarks(book)
        info = self._machine_info()
        written = [self._rebuild(benchmarks, info, commit, entries[commit], book) for commit in sorted(entries)]
        for commit in entries:
            (self._unfinished / commit).unlink(missing_ok=True)
        return [path for path, _ in written], [problem for _, problem in written if problem]

    def _benchmarks(self, book: Book) -> Mapping[str, Any]:
        """asv's descriptions of the benchmarks: the suite's, discovered as `asv run` does unless they are known and
        current, and those of the series. Without them asv shows no result."""
        path = Path(Benchmarks.get_benchmark_file_path(self.config.results_dir))
        stored: dict[str, Any] = {}
        try:
            stored = util.load_json(str(path), Benchmarks.api_version)
            known = asv_series.without(stored)
            asv_cells.check(known, self.families.values())
        except (OSError, ValueError, util.UserError, HistoryError):
            known = self._discover()
            asv_cells.check(known, self.families.values())
        benchmarks = known | asv_series.descriptions(book)
        if benchmarks != stored:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._scratch() as scratch:
                util.write_json(str(scratch / path.name), dict(benchmarks), Benchmarks.api_version)
                os.replace(scratch / path.name, path)
        return benchmarks

    def _discover(self) -> dict[str, Any]:
        """The benchmarks that asv finds in the suite."""
        with self._scratch() as scratch:
            out = scratch / "discovered.json"
            command = [sys.executable, asv.benchmark.__file__, "discover", self.config.benchmark_dir, str(out)]
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if done.returncode or not out.is_file():
                reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise HistoryError(f"asv cannot import the benchmarks in {self.config.benchmark_dir}: {reason}")
            found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
        return {benchmark["name"]: benchmark for benchmark in found}

    def _machine_info(self) -> dict[str, str]:
        """asv's description of this machine."""
        stored = stored_machine(self.folder, self.machine)
        if stored is None:
            stored = describe_machine(self.machine)
            self.describe(stored)
        return stored

    def _rebuild(
        self, benchmarks: Mapping[str, Any], info: Mapping[str, str], commit: str, entries: Sequence[Record], book: Book
    ) -> tuple[Path, str]:
        """One commit's file, and a sentence if the old one could not be read."""
        name = get_filename(self.machine, commit, self.environment)
        path = self.folder / name
        python = self.environment.rpartition("-py")[2]
        params = {**info, "python": python}
        milliseconds = 1000 * Checkout(Path(self.config.repo)).authored(commit)
        results = Results(params, {}, commit, milliseconds, python, self.environment, {})
        problem = ""
        try:
            results.load_data(str(self.folder))
        except (util.UserError, ValueError) as error:
            aside = self.folder.parent / "damaged" / f"{path.name}.{os.urandom(4).hex()}"
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, aside)
            problem = f"{path} was damaged ({line(error)}); it was moved to {aside} and rebuilt from the journal"
        for family in self.families.values():
            known = journal.replicates(entries, family)
            for metric in family.metrics:
                cells = {cell: value for (tracked, cell), value in known.items() if tracked == metric.name}
                if cells:
                    asv_cells.enter(results, benchmarks[family.benchmark(metric.name)], cells)
        asv_series.enter(results, benchmarks, entries, book)
        self._save(results, name)
        return path, problem

    def _save(self, results: Any, name: str) -> None:
        path = self.folder / name
        with self._scratch() as scratch:
            results.save(str(scratch))
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, path)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder on the same file system, outside the results that asv walks through."""
        home = self.folder.parent / "scratch"
        shutil.rmtree(home, ignore_errors=True)  # left by a recorder that was killed; the lock is ours
        home.mkdir(parents=True)
        try:
            yield Path(tempfile.mkdtemp(dir=home))
        finally:
            shutil.rmtree(home, ignore_errors=True)


def line(error: Exception) -> str:
    """An error's message without line breaks."""
    return " ".join(str(error).split())


def _load(path: Path) -> Any:
    try:
        return Results.load(str(path)) if path.is_file() else None
    except (util.UserError, ValueError):
        return None
