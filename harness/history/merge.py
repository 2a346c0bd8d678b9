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
from typing import Any

from asv import util
from asv.config import Config

from spinbench.errors import HistoryError
from spinbench.foundation.checkout import CONFIG
from spinbench.history import series
from spinbench.history.asv_plugin import stored_machine
from spinbench.history.asv_results import ResultFiles, line
from spinbench.history.axes import Column
from spinbench.history.journal import Journal, locked, malformed
from spinbench.history.recorder import MACHINE_NAME, History
from spinbench.history.series import Book, column, filed
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import RecordError, digest, read_record

_ENVIRONMENT = re.compile(r"spinbench-py\d+\.\d+")


@dataclass
class Merged:
    """What came in.

    Attributes:
        new, known: records that are here now, or were before, by machine.
        files: asv's files that changed.
        notes: what was left out, and why.
    """

    new: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    files: int = 0
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """For people."""
        told = [
            f"{machine}: {self.new[machine]} new records, {self.known[machine]} were here"
            for machine in sorted(self.new)
        ]
        return [*told, f"{self.files} of asv's files changed", *self.notes]


def merge(root: Path, folders: Sequence[Path]) -> Merged:
    """Take all that other histories have into this one; doing it again changes nothing.

    Args:
        root: the checkout, or a folder inside it.
        folders: checkouts with histories, or the folders in which they lie, `.asv`.

    Raises:
        HistoryError: one is no history, or there is none here.
    """
    history = History.open(root)
    homes = [_home(folder) for folder in folders]
    merged = Merged()
    with locked(history.home):
        for home in homes:
            if home.resolve() == history.home.resolve():
                raise HistoryError(f"{home} is the history of {history.checkout.root} itself; name others")
            _take(history, home, merged)
    return merged


def _home(folder: Path) -> Path:
    """The folder with `journal` and `results`."""
    found = folder
    if (folder / CONFIG).is_file():
        try:
            found = (folder / Config.load(str(folder / CONFIG)).results_dir).parent
        except (util.UserError, ValueError) as error:
            raise HistoryError(f"asv cannot read {folder / CONFIG}: {line(error)}") from error
    if not (found / "journal").is_dir():
        raise HistoryError(f"there is no history in {folder}; name a checkout that has one, or its folder .asv")
    return found


def _take(history: History, home: Path, merged: Merged) -> None:
    book, theirs = Book(history.journals), Book(home / "journal")
    book.clear_fragments()
    for identity, metrics, place in theirs.configurations():
        book.enter(identity, metrics, place)
    foreign = {place for place, configs in theirs.columns().items() if not _held(book, place, configs)}
    for machine, environment, folder in _machines(home, merged):
        files = ResultFiles(history.config, machine, environment)
        journal = Journal(history.journals / machine / environment)
        journal.clear_fragments()
        known = _records(folder, journal, files, book, merged)
        stored = stored_machine(home / "results", machine)
        if stored is not None:
            files.describe(stored)
        results = sorted((home / "results" / machine).glob("*.json"))
        measured = {path: commit for path in results if (commit := files.commit_in(path))}
        wanted = files.behind() | {commit for commit in journal.commits() if files.read(commit) is None}
        absent = {commit for commit in wanted | {*measured.values()} if not history.checkout.has(commit)}
        if absent:
            merged.notes.append(
                f"{machine}: {len(absent)} commits are not in {history.checkout.root}, the first {min(absent)[:8]}; "
                "their records are kept, and enter asv's files when the commits are fetched and this is done again"
            )
        _, damaged = files.rebuild({commit: journal.entries(commit) for commit in wanted - absent}, book)
        merged.notes += damaged
        here = {path: commit for path, commit in measured.items() if commit not in absent}
        adopted = {commit: files.adopt(path, known[commit], foreign) for path, commit in here.items()}
        merged.files += len({commit for commit, (changed, _) in adopted.items() if changed} | wanted - absent)
        if without := sum(left_out for _, left_out in adopted.values()):
            merged.notes.append(
                f"{machine}: what `asv run` measured in {home} with other settings than those of the series here stays "
                f"out, of {without} commits"
            )


def _held(book: Book, place: Column, configs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column of conf/axes has these configurations here, too."""
    found = (book.of_digest(digest(config)) for config in configs)
    return all(one is not None and one.column == place for one in found)


def _machines(home: Path, merged: Merged) -> Iterator[tuple[str, str, Path]]:
    """Name, environment and journal of each, also of those of which only `asv run` knows something."""
    journals = {folder.parts[-2:] for folder in home.glob("journal/[!.]*/*") if folder.is_dir()}
    files = {(path.parent.name, path.stem.partition("-")[2]) for path in home.glob("results/*/*-spinbench-py*.json")}
    for machine, environment in sorted(journals | files):
        if MACHINE_NAME.fullmatch(machine) and _ENVIRONMENT.fullmatch(environment):
            yield machine, environment, home / "journal" / machine / environment
        else:
            merged.notes.append(f"{home} has {machine}/{environment}, which is no history of a machine")


def _records(
    folder: Path, journal: Journal, files: ResultFiles, book: Book, merged: Merged
) -> defaultdict[str, set[Column]]:
    """Copy what is not here; the columns of conf/axes that records are of, there or here, by commit."""
    machine = journal.folder.parent.name
    columns: defaultdict[str, set[Column]] = defaultdict(set)
    merged.new.setdefault(machine, 0)
    merged.known.setdefault(machine, 0)
    for path in sorted(folder.glob("*/record-*.json")):
        try:
            entry = read_record(path)
            if wrong := malformed(entry):
                raise RecordError(f"{path} is not a record: {wrong}")
            here = _filed(entry, book)
        except (RecordError, HistoryError) as error:
            merged.notes.append(str(error))
            continue
        commit, new = str(entry.git.commit), not journal.holds(here)
        columns[commit] |= {column(entry), column(here)}
        if new:
            files.begin([commit])
            journal.keep(here)
        merged.new[machine] += new
        merged.known[machine] += not new
    return columns


def _filed(entry: Record, book: Book) -> Record:
    """With the series that this history has for what was measured."""
    found = book.of_digest(digest(series.measured(entry)))
    return entry if found is None else filed(entry, found)
