"""Records of sweeps into asv's performance history.

    .asv/journal/MACHINE/ENV/COMMIT/record-ID.json   every record that entered the history (see journal.py)
    .asv/journal/.series/series-DIGEST.json      what was ever swept (see series.py)
    .asv/results/MACHINE/COMMIT-ENV.json         asv's result file, rebuilt from the journal (see asv_results.py)
    .asv/unfinished/MACHINE/ENV/COMMIT           a commit whose result file is being rebuilt
    .asv/results/benchmarks.json                 asv's discovery of harness/history/suite, and what grew beyond it

A recorder holds a file lock; every file is replaced whole. Values that `asv run` stored are kept, except in cells
that the journal knows. A cell that ran without giving a certain metric is "not run" there.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asv import util
from asv.config import Config

from spinbench.errors import HistoryError
from spinbench.foundation.git import CONFIG, Checkout
from spinbench.history import asv_cells, asv_plugin, asv_results, axes, journal, record_filter, series
from spinbench.measuring.record_types import Record

MACHINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class RecordReport:
    """What `record` did.

    Attributes:
        machine: the name under which this machine's history is kept.
        commits: hashes whose result files were rebuilt.
        files: those files.
        new, duplicates: records that entered the journal now, or were there already.
        refused: why others stay out of the history, as sentences with counts.
        disturbed: of the new and known ones, those whose process did not have its core to itself.
    """

    machine: str
    commits: tuple[str, ...]
    files: tuple[Path, ...]
    new: int
    duplicates: int
    refused: tuple[str, ...]
    disturbed: int = 0

    def sentences(self) -> list[str]:
        """The report for people."""
        lines = []
        if self.commits:
            where = ", ".join(commit[:8] for commit in self.commits)
            lines.append(
                f"{self.new} new and {self.duplicates} known records stand in asv's history of {self.machine} for "
                f"commit {where}; see them with `asv show {self.commits[-1][:8]}`"
            )
        if self.disturbed:
            lines.append(
                f"{self.disturbed} of them were disturbed by other programs, so that their seconds are too long; "
                "`spinbench gate` says so"
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

    def __init__(self, checkout: Checkout, config: Config, machine: str) -> None:
        """See `open`."""
        self.checkout = checkout
        self.machine = machine
        self.config = config
        self._files = asv_results.ResultFiles(config, machine)
        self.home = self._files.folder.parent
        self.journals = self.home / "journal"
        self.journal = journal.Journal(self.journals / machine / asv_plugin.ENVIRONMENT)

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
            raise HistoryError(f"asv cannot read {checkout.root / CONFIG}: {asv_results.single_line(error)}") from error
        for name in ("results_dir", "html_dir", "benchmark_dir", "env_dir"):
            setattr(config, name, str(checkout.root / getattr(config, name)))
        config.repo = str(checkout.root)
        name = machine or asv_plugin.machine_name()
        if not MACHINE_NAME.fullmatch(name):
            raise HistoryError(
                f"machine name {name!r} cannot name a folder; set {asv_plugin.MACHINE_VARIABLE} to letters, digits, "
                "'.', '_', '-'"
            )
        return cls(checkout, config, name)

    def record(self, folders: Sequence[Path]) -> RecordReport:
        """See the function `record`."""
        records, problems = _read_records(folders)
        host = None if os.environ.get(asv_plugin.MACHINE_VARIABLE) else socket.gethostname()
        # other processes may add series meanwhile, but only the current index decides where records belong
        series_index = series.SeriesIndex(self.journals)
        accepted, refused = record_filter.filter_records(
            records, self.checkout, self._files.families, series_index, python=asv_plugin.PYTHON, host=host
        )
        new = 0
        commits = sorted({str(entry.git.commit) for entry, *_ in accepted})
        files: list[Path] = []
        if commits:
            with journal.lock_history(self.home):
                series_index = series.SeriesIndex(self.journals)
                self.journal.clear_fragments()
                series_index.clear_fragments()
                self._files.mark_unfinished(commits)
                for entry, measured, column in accepted:
                    new += self._add_entry(entry, measured, column, series_index)
                behind = filter(self.checkout.has, self._files.commits_to_rebuild())
                files, damaged = self._files.rebuild(
                    {commit: self.journal.read_entries(commit) for commit in behind}, series_index
                )
                problems += damaged
        return RecordReport(
            machine=self.machine,
            commits=tuple(commits),
            files=tuple(files),
            new=new,
            duplicates=len(accepted) - new,
            refused=(*refused, *problems),
            disturbed=sum(bool(entry.oversubscribed) for entry, *_ in accepted),
        )

    def _add_entry(
        self, entry: Record, record_identity: series.Identity, column: axes.Column, series_index: series.SeriesIndex
    ) -> bool:
        """Keep a record and, before it, its series, so that no record stands without one."""
        tracked = axes.metrics()
        metric_names = [metric.name for metric in tracked if journal.finite_values(entry.metric(metric.name))]
        entry_series = series_index.add(record_identity, metric_names, column)
        labelled = series.label_entry(entry, entry_series)
        if entry_series.column:
            tracked = axes.family(labelled["family"]).metrics
        return self.journal.add(labelled, tracked)

    def machines(self) -> list[str]:
        """All whose records are kept here."""
        if not self.journals.is_dir():
            return []
        return sorted(path.name for path in self.journals.iterdir() if MACHINE_NAME.fullmatch(path.name))

    def has_results(self, commit: str) -> bool:
        """Whether a commit, by its full hash, is one of `commits`; of one commit that takes no reading of all files."""
        return self.journal.has_commit(commit) or self._files.read(commit) is not None

    def commits(self) -> set[str]:
        """Full hashes of the commits with a journal or an asv result file of this machine and environment."""
        return self.journal.commits() | self._files.commits()

    def replicates(
        self, commit: str, entries: Sequence[Record] | None = None
    ) -> dict[tuple[str, str, axes.Cell], journal.Replicates]:
        """What is known of a commit, by (family, metric, cell): the journal, and asv's values for other cells.

        Args:
            commit: full hash.
            entries: the journal's, where they have been read.
        """
        if entries is None:
            entries = self.journal.read_entries(commit)
        loaded = self._files.read(commit)
        replicates: dict[tuple[str, str, axes.Cell], journal.Replicates] = {}
        for name, family in self._files.families.items():
            for metric in family.metrics:
                asv_cells_of_metric = {}
                if loaded is not None:
                    asv_cells_of_metric = asv_cells.read_cells(loaded, family, metric)
                replicates |= {(name, metric.name, cell): value for cell, value in asv_cells_of_metric.items()}
            journal_replicates = journal.family_replicates(entries, family)
            replicates |= {(name, metric, cell): value for (metric, cell), value in journal_replicates.items()}
        return replicates


def _read_records(folders: Sequence[Path]) -> tuple[list[Record], list[str]]:
    for folder in folders:
        if not folder.is_dir():
            raise HistoryError(f"{folder} is not a folder; give folders that `spinbench sweep` wrote")
    records, problems = journal.read_sweep_folders(folders)
    if not records and not problems:
        names = ", ".join(map(str, folders)) or "no folder"
        raise HistoryError(f"there are no files record-*.json in {names}; give folders that `spinbench sweep` wrote")
    return records, problems
