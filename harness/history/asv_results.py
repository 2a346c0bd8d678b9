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
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asv.benchmark
from asv import util
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from asv.results import Results, get_filename

from spinbench.errors import HistoryError
from spinbench.foundation.git import Checkout
from spinbench.history import asv_cells, asv_plugin, asv_series, axes, journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from asv.config import Config

    from spinbench.history.axes import Column, Family
    from spinbench.history.series import SeriesIndex
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

    config: Config
    machine: str
    environment: str = asv_plugin.ENVIRONMENT

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
        loaded = map(_load_results, (self.folder / self.machine).glob(f"*-{self.environment}.json"))
        return {results.commit_hash for results in loaded if results is not None}

    def read(self, commit: str) -> Results | None:
        """asv's `Results` of a commit; None where there is no file or it is damaged."""
        return _load_results(self.folder / get_filename(self.machine, commit, self.environment))

    def read_commit(self, path: Path) -> str:
        """The commit of another history's file, if it is of this machine and environment; else empty."""
        results = _load_results(path)
        if results is None or path.name != Path(get_filename(self.machine, results.commit_hash, self.environment)).name:
            return ""
        return str(results.commit_hash)

    def merge_file(
        self, path: Path, journal_columns: Set[Column], conflicting_columns: Set[Column]
    ) -> tuple[bool, bool]:
        """Take from another history's file of this machine and environment what only `asv run` measured.

        Args:
            other: the file.
            known: columns of conf/axes whose values are from that history's journal.
            foreign: columns that have other settings there than here.

        Returns:
            Whether there was anything, and whether something of `foreign` was left out.
        """
        theirs = _load_results(path)
        if theirs is None:
            return False, False
        asv_series.remove_series(theirs)
        left_out = False
        for family in axes.families().values():
            cells = {family.column(cell): cell for cell in family.cells}
            asv_cells.remove_cells(theirs, family, {cells[column] for column in journal_columns & cells.keys()})
            left_out |= asv_cells.remove_cells(
                theirs, family, {cells[column] for column in conflicting_columns & cells.keys()}
            )
        mine = self.read(theirs.commit_hash)
        if mine is None:
            mine = theirs
        elif not asv_cells.add_missing_results(mine, theirs):
            return False, left_out
        self._save_results(mine, get_filename(self.machine, theirs.commit_hash, self.environment))
        return True, left_out

    def mark_unfinished(self, commits: Iterable[str]) -> None:
        """Note that files of commits lack records of the journal until `rebuild`: who writes may be killed."""
        self._rebuild_marks_folder.mkdir(parents=True, exist_ok=True)
        for commit in commits:
            (self._rebuild_marks_folder / commit).touch()

    def commits_to_rebuild(self) -> set[str]:
        """Full hashes of the commits that were begun and not rebuilt."""
        if not self._rebuild_marks_folder.is_dir():
            return set()
        return {path.name for path in self._rebuild_marks_folder.iterdir()}

    @property
    def _rebuild_marks_folder(self) -> Path:
        return self.folder.parent / "unfinished" / self.machine / self.environment

    def save_machine_description(self, description: Mapping[str, str]) -> None:
        """Keep asv's description of this machine, unless there is one: each of its fields is part of a series' name."""
        path = self.folder / self.machine / "machine.json"
        if asv_plugin.load_machine_description(self.folder, self.machine) is None:
            with self._scratch_folder() as scratch:
                util.write_json(str(scratch / path.name), dict(description), Machine.api_version)
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(scratch / path.name, path)

    def rebuild(
        self, entries: Mapping[str, Sequence[Record]], series_index: SeriesIndex
    ) -> tuple[list[Path], list[str]]:
        """Write commits' files anew; values that only asv knows stay.

        Args:
            entries: the journal's, by commit.
            book: all series.

        Returns:
            The files, and a sentence for each that could not be read before.

        Raises:
            HistoryError: asv cannot import the suite, or its benchmarks are not those of conf/axes.
        """
        benchmarks = self._load_benchmarks(series_index)
        machine_description = self._machine_description()
        written = [
            self._rebuild_file(benchmarks, machine_description, commit, entries[commit], series_index)
            for commit in sorted(entries)
        ]
        for commit in entries:
            (self._rebuild_marks_folder / commit).unlink(missing_ok=True)
        return [path for path, _ in written], [problem for _, problem in written if problem]

    def _load_benchmarks(self, series_index: SeriesIndex) -> Mapping[str, object]:
        """asv's descriptions of the benchmarks: the suite's, discovered as `asv run` does unless they are known and
        current, and those of the series. Without them asv shows no result."""
        path = Path(Benchmarks.get_benchmark_file_path(self.config.results_dir))
        stored: dict[str, object] = {}
        try:
            stored = util.load_json(str(path), Benchmarks.api_version)
            suite_benchmarks = asv_series.exclude_series_benchmarks(stored)
            asv_cells.check_benchmarks(suite_benchmarks, self.families.values())
        except (OSError, ValueError, util.UserError, HistoryError):
            suite_benchmarks = self._discover_benchmarks()
            asv_cells.check_benchmarks(suite_benchmarks, self.families.values())
        benchmarks = suite_benchmarks | asv_series.benchmark_descriptions(series_index)
        if benchmarks != stored:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._scratch_folder() as scratch:
                util.write_json(str(scratch / path.name), dict(benchmarks), Benchmarks.api_version)
                os.replace(scratch / path.name, path)
        return benchmarks

    def _discover_benchmarks(self) -> dict[str, Any]:
        """The benchmarks that asv finds in spinbench's own suite, or in one made for the families of this history: no
        code of the checkout is imported, which others may have written."""
        if not self.families:
            return {}
        with self._scratch_folder() as scratch:
            out = scratch / "discovered.json"
            suite = str(resources.files("spinbench.history.suite"))
            if not self.families.keys() <= axes.default_families().keys():
                suite = asv_cells.write_suite(scratch, self.families)
            command = [sys.executable, asv.benchmark.__file__, "discover", suite, str(out)]
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if done.returncode or not out.is_file():
                reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise HistoryError(f"asv cannot import the benchmarks in {suite}: {reason}")
            descriptions: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
        return {benchmark["name"]: benchmark for benchmark in descriptions}

    def _machine_description(self) -> dict[str, str]:
        """asv's description of this machine."""
        description = asv_plugin.load_machine_description(self.folder, self.machine)
        if description is None:
            description = asv_plugin.new_machine_description(self.machine)
            self.save_machine_description(description)
        return description

    def _rebuild_file(
        self,
        benchmarks: Mapping[str, Any],
        machine_description: Mapping[str, str],
        commit: str,
        entries: Sequence[Record],
        series_index: SeriesIndex,
    ) -> tuple[Path, str]:
        """One commit's file, and a sentence if the old one could not be read."""
        name = get_filename(self.machine, commit, self.environment)
        path = self.folder / name
        python = self.environment.rpartition("-py")[2]
        params = {**machine_description, "python": python}
        milliseconds = 1000 * Checkout(Path(self.config.repo)).author_time(commit)
        results = Results(params, {}, commit, milliseconds, python, self.environment, {})
        problem = ""
        try:
            results.load_data(str(self.folder))
        except (util.UserError, ValueError) as error:
            damaged_path = self.folder.parent / "damaged" / f"{path.name}.{os.urandom(4).hex()}"
            damaged_path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, damaged_path)
            problem = (
                f"{path} was damaged ({single_line(error)}); it was moved to {damaged_path} and rebuilt from the "
                "journal"
            )
        for family in self.families.values():
            replicates = journal.family_replicates(entries, family)
            for metric in family.metrics:
                cells = {cell: value for (tracked, cell), value in replicates.items() if tracked == metric.name}
                if cells:
                    asv_cells.add_cells(results, benchmarks[family.benchmark_name(metric.name)], cells)
        asv_series.add_series(results, benchmarks, entries, series_index)
        self._save_results(results, name)
        return path, problem

    def _save_results(self, results: Results, name: str) -> None:
        path = self.folder / name
        with self._scratch_folder() as scratch:
            results.save(str(scratch))
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, path)

    @contextmanager
    def _scratch_folder(self) -> Iterator[Path]:
        """A folder on the same file system, outside the results that asv walks through."""
        home = self.folder.parent / "scratch"
        # Left by a recorder that was killed: this process holds the lock.
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        try:
            yield Path(tempfile.mkdtemp(dir=home))
        finally:
            shutil.rmtree(home, ignore_errors=True)


def single_line(error: Exception) -> str:
    """An error's message without line breaks."""
    return " ".join(str(error).split())


def _load_results(path: Path) -> Results | None:
    try:
        return Results.load(str(path))
    except (FileNotFoundError, util.UserError, ValueError):
        return None
