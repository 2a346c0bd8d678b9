"""Histories of several machines, or copies of one, merged into one: nothing is doubled, nothing is lost.

What was swept may have grown under other labels elsewhere, as where another default was changed first: records are
filed by what they measured, under the labels that this history has for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asv import util
from asv.config import Config

from spinbench.errors import HistoryError
from spinbench.foundation.git import CONFIG
from spinbench.history import asv_plugin, asv_results, axes, recorder, series
from spinbench.history.journal import Journal, find_malformed_hashes, lock_history
from spinbench.history.series import SeriesIndex, entry_column, label_entry
from spinbench.measuring import record_types, records

_ENVIRONMENT = re.compile(r"spinbench-py\d+\.\d+")


@dataclass
class MergeReport:
    """What came in.

    Attributes:
        new, duplicates: records that are here now, or were before, by machine.
        files: asv's files that changed.
        notes: what was left out, and why.
    """

    new: dict[str, int] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)
    files: int = 0
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """For people."""
        counts = [
            f"{machine}: {self.new[machine]} new records, {self.duplicates[machine]} were here"
            for machine in sorted(self.new)
        ]
        return [*counts, f"{self.files} of asv's files changed", *self.notes]


def merge(root: Path, folders: Sequence[Path]) -> MergeReport:
    """Take all that other histories have into this one; doing it again changes nothing.

    Args:
        root: the checkout, or a folder inside it.
        folders: checkouts with histories, or the folders in which they lie, `.asv`.

    Raises:
        HistoryError: one is no history, or there is none here.
    """
    history = recorder.History.open(root)
    homes = [_find_history_folder(folder) for folder in folders]
    merged = MergeReport()
    with lock_history(history.home):
        for home in homes:
            if home.resolve() == history.home.resolve():
                raise HistoryError(f"{home} is the history of {history.checkout.root} itself; name others")
            _merge_history(history, home, merged)
    return merged


def _find_history_folder(folder: Path) -> Path:
    """The folder with `journal` and `results`."""
    history_folder = folder
    if (folder / CONFIG).is_file():
        try:
            history_folder = (folder / Config.load(str(folder / CONFIG)).results_dir).parent
        except (util.UserError, ValueError) as error:
            raise HistoryError(f"asv cannot read {folder / CONFIG}: {asv_results.single_line(error)}") from error
    if not (history_folder / "journal").is_dir():
        raise HistoryError(f"there is no history in {folder}; name a checkout that has one, or its folder .asv")
    return history_folder


def _merge_history(history: recorder.History, home: Path, merged: MergeReport) -> None:
    series_index, theirs = SeriesIndex(history.journals), SeriesIndex(home / "journal")
    series_index.clear_fragments()
    for identity, metrics, place in theirs.configurations():
        series_index.add(identity, metrics, place)
    conflicting_columns = {
        place
        for place, configs in theirs.configurations_by_column().items()
        if not _has_configurations(series_index, place, configs)
    }
    for machine, environment, folder in _find_machines(home, merged):
        files = asv_results.ResultFiles(history.config, machine, environment)
        journal = Journal(history.journals / machine / environment)
        journal.clear_fragments()
        columns_by_commit = _copy_records(folder, journal, files, series_index, merged)
        stored = asv_plugin.load_machine_description(home / "results", machine)
        if stored is not None:
            files.save_machine_description(stored)
        results = sorted((home / "results" / machine).glob("*.json"))
        measured = {path: commit for path in results if (commit := files.read_commit(path))}
        outdated = files.commits_to_rebuild() | {commit for commit in journal.commits() if files.read(commit) is None}
        absent = {commit for commit in outdated | {*measured.values()} if not history.checkout.has(commit)}
        if absent:
            merged.notes.append(
                f"{machine}: {len(absent)} commits are not in {history.checkout.root}, the first {min(absent)[:8]}; "
                "their records are kept, and enter asv's files when the commits are fetched and this is done again"
            )
        _, damaged = files.rebuild({commit: journal.read_entries(commit) for commit in outdated - absent}, series_index)
        merged.notes += damaged
        present = {path: commit for path, commit in measured.items() if commit not in absent}
        adopted = {
            commit: files.merge_file(path, columns_by_commit[commit], conflicting_columns)
            for path, commit in present.items()
        }
        merged.files += len({commit for commit, (changed, _) in adopted.items() if changed} | outdated - absent)
        if without := sum(left_out for _, left_out in adopted.values()):
            merged.notes.append(
                f"{machine}: what `asv run` measured in {home} with other settings than those of the series here stays "
                f"out, of {without} commits"
            )


def _has_configurations(series_index: SeriesIndex, place: axes.Column, configs: Sequence[Mapping[str, object]]) -> bool:
    """Whether a column of conf/axes has these configurations here, too."""
    members = (series_index.find(config) for config in configs)
    return all(member is not None and member.column == place for member in members)


def _find_machines(home: Path, merged: MergeReport) -> Iterator[tuple[str, str, Path]]:
    """Name, environment and journal of each, also of those of which only `asv run` knows something."""
    journals = {folder.parts[-2:] for folder in home.glob("journal/[!.]*/*") if folder.is_dir()}
    files = {(path.parent.name, path.stem.partition("-")[2]) for path in home.glob("results/*/*-spinbench-py*.json")}
    for machine, environment in sorted(journals | files):
        if recorder.MACHINE_NAME.fullmatch(machine) and _ENVIRONMENT.fullmatch(environment):
            yield machine, environment, home / "journal" / machine / environment
        else:
            merged.notes.append(f"{home} has {machine}/{environment}, which is no history of a machine")


def _copy_records(
    folder: Path, journal: Journal, files: asv_results.ResultFiles, series_index: SeriesIndex, merged: MergeReport
) -> defaultdict[str, set[axes.Column]]:
    """Copy what is not here; the columns of conf/axes that records are of, there or here, by commit."""
    machine = journal.folder.parent.name
    columns: defaultdict[str, set[axes.Column]] = defaultdict(set)
    merged.new.setdefault(machine, 0)
    merged.duplicates.setdefault(machine, 0)
    for path in sorted(folder.glob("*/record-*.json")):
        try:
            entry = records.read_record(path)
            if wrong := find_malformed_hashes(entry):
                raise records.RecordError(f"{path} is not a record: {wrong}")
            relabelled = _relabel_record(entry, series_index)
        except (records.RecordError, HistoryError) as error:
            merged.notes.append(str(error))
            continue
        commit, new = str(entry.git.commit), not journal.contains(relabelled)
        columns[commit] |= {entry_column(entry), entry_column(relabelled)}
        if new:
            files.mark_unfinished([commit])
            journal.write(relabelled)
        merged.new[machine] += new
        merged.duplicates[machine] += not new
    return columns


def _relabel_record(entry: record_types.Record, series_index: SeriesIndex) -> record_types.Record:
    """With the series that this history has for what was measured."""
    member = series_index.find(series.config_with_hashes(entry))
    return entry if member is None else label_entry(entry, member)
