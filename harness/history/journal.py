"""The append-only journal behind asv's result files: one record a file, by machine, environment and commit.

asv's result files hold one number a cell and can be lost or rewritten by asv; the journal keeps every record that
entered the history, so that result files can be rebuilt from it at any time.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from spinbench.errors import HistoryError
from spinbench.foundation import atomic, remarks
from spinbench.history.axes import Cell, Family, Metric
from spinbench.measuring import record_parts
from spinbench.measuring.record_types import Record, parse_record
from spinbench.measuring.records import RecordError, read_record

# Longest wait in seconds for another writer's lock.
LOCK_SECONDS = 600.0

Place = TypeVar("Place", bound=Hashable)

_HEX = re.compile(r"[0-9a-f]{1,64}")


@contextmanager
def lock_history(home: Path, file: str = "record.lock", holder: str = "another recorder") -> Iterator[None]:
    """Held by who writes a history, whose folder is `home`, or what a file in it stands for.

    Raises:
        HistoryError: somebody else holds it, or the folder cannot be written.
    """
    lock = home / file
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=LOCK_SECONDS):
            yield
    except Timeout as error:
        raise HistoryError(f"{holder} has held {lock} for {LOCK_SECONDS:g} s; try again later") from error
    except OSError as error:
        raise HistoryError(f"the history in {home} cannot be written: {' '.join(str(error).split())}") from error


def read_sweep_folders(folders: Sequence[Path]) -> tuple[list[Record], list[str]]:
    """The records in sweep folders (or in their `records`), and a sentence for each file that is not one."""
    records: dict[str, Record] = {}
    problems = []
    for path in sorted({path.resolve() for folder in folders for path in folder.rglob("record-*.json")}):
        try:
            record = read_record(path)
        except RecordError as error:
            problems.append(str(error))
            continue
        if problem := find_malformed_hashes(record):
            problems.append(f"{path} is not a record: {problem}")
        else:
            records[record.id] = record
    return list(records.values()), problems


def find_malformed_hashes(record: Record) -> str:
    """What of a record cannot be a part of a file's name; empty where all can."""
    hashes = {"id": record.id, "git.commit": record.git.commit}
    wrong = [key for key, text in hashes.items() if text is not None and not _HEX.fullmatch(text)]
    return f"{', '.join(wrong)} malformed" if wrong else ""


@dataclass(frozen=True)
class Journal:
    """The records of one machine and environment; each remembers the metrics' versions of the day it was entered."""

    folder: Path

    def add(self, entry: Record, metrics: Iterable[Metric]) -> bool:
        """Keep a record as it was filed; False where it is there already."""
        return self.write(
            parse_record({**entry.content, "versions": {metric.name: metric.version for metric in metrics}})
        )

    def write(self, entry: Record) -> bool:
        """The same of what another journal of this machine has; the entry says the machine's name."""
        if self.contains(entry):
            return False
        atomic.write_json(self._record_path(entry), {**entry.content, "machine": self.folder.parent.name})
        return True

    def contains(self, entry: Record) -> bool:
        """Whether it is there."""
        return self._record_path(entry).exists()

    def _record_path(self, entry: Record) -> Path:
        return self.folder / str(entry.git.commit) / f"record-{entry.id}.json"

    def clear_fragments(self) -> None:
        """Remove what recorders that were killed left unfinished."""
        for commit in self.commits():
            atomic.clear_fragments(self.folder / commit)

    def commits(self) -> set[str]:
        """Full hashes of the commits with records."""
        if self.folder.is_dir():
            return {path.name for path in self.folder.iterdir()}
        return set()

    def has_commit(self, commit: str) -> bool:
        """Whether there are records of a commit."""
        return (self.folder / commit).is_dir()

    def count_records(self, commit: str) -> int:
        """How many records of a commit there are."""
        return sum(1 for _ in (self.folder / commit).glob("record-*.json"))

    def read_entries(self, commit: str) -> list[Record]:
        """All records of a commit, oldest first; what is torn is named on standard error and left out."""
        entries = []
        for path in (self.folder / commit).glob("record-*.json"):
            try:
                entries.append(read_record(path))
            except RecordError as error:
                remarks.left_out(str(error))
        return sorted(entries, key=lambda entry: (entry.started_at, entry.id))


@dataclass(frozen=True)
class Replicates:
    """What a metric of a cell came to at one commit.

    Attributes:
        values: finite; one for each seed, or the samples of a single record.
        errors: the values' standard errors where every record states one, else empty.
        failed: why there is no value; empty where there is one.
        ran: whether the cell ran, where there is no value: the metric has none here (exact methods have no effective
            sample size), or came out infinite.
        started_at: Unix time of the newest record.
        duration: seconds that the records took, shared out among their metrics.
        settings: the cell's configuration without its seed; None where only asv knows the cell.
    """

    values: tuple[float, ...]
    errors: tuple[float, ...] = ()
    failed: str = ""
    ran: bool = False
    started_at: int = 0
    duration: float = 0.0
    settings: Mapping[str, Any] | None = None


def family_replicates(entries: Iterable[Record], family: Family) -> dict[tuple[str, Cell], Replicates]:
    """The measured metrics of a family's cells, by (metric, cell).

    The newest good record of a seed replaces older ones of the same seed, because they are no independent draws.
    Records of other versions of a metric stay out; refused cells have no entry.
    """
    of_family = [entry for entry in entries if entry.family == family.name and entry.series is None]
    return collect_replicates(of_family, family.metrics, lambda entry: family.find_cell(entry.axes.as_dict()))


def collect_replicates(
    entries: Iterable[Record], metrics: Sequence[Metric], find_place: Callable[[Record], Place | None]
) -> dict[tuple[str, Place], Replicates]:
    """The same of the places that entries are given; those without one are left out."""
    by_place: dict[Place, list[Record]] = defaultdict(list)
    for entry in entries:
        entry_place = find_place(entry)
        if entry_place is not None and entry.status != "skipped":
            by_place[entry_place].append(entry)
    measured = {}
    for entry_place, records in by_place.items():
        for metric in metrics:
            current = [record for record in records if (record.versions or {}).get(metric.name) == metric.version]
            if metric_replicates := _combine_records(current, metric.name):
                measured[metric.name, entry_place] = metric_replicates
    return measured


def group_into_sittings(entries: Iterable[Record]) -> list[list[Record]]:
    """How often a commit was measured, oldest first: the last one holds the newest record of each cell and seed.

    Good records of a cell and seed count; failed ones where there is no good one.
    """
    by_cell: dict[str, list[Record]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.started_at):
        if entry.status != "skipped":
            cell = entry.series or [entry.family, entry.axes.as_dict()]
            by_cell[json.dumps([cell, entry.config.get("seed", 0)])].append(entry)
    sittings: list[list[Record]] = []
    for records in by_cell.values():
        good = [record for record in records if record.status == "ok"] or records[-1:]
        for turn, record in enumerate(reversed(good)):
            if turn == len(sittings):
                sittings.append([])
            sittings[turn].append(record)
    return sittings[::-1]


def _combine_records(records: list[Record], metric: str) -> Replicates | None:
    good: dict[int, tuple[Record, record_parts.Metric]] = {}
    failed, ran = "", False
    touched = []
    for record in records:
        measured = record.metrics.get(metric)
        if measured is None and record.status == "failed":
            measured = record_parts.Metric(failed=record.error or "the cell failed")
        if measured is None:
            continue
        touched.append(record)
        if finite_values(measured):
            good[record.config.get("seed", 0)] = (record, measured)
        else:
            failed = measured.failed or "no finite value"
            ran = record.status == "ok"
    if not touched:
        return None
    used = [good[seed] for seed in sorted(good)]
    if len(used) == 1:
        values = finite_values(used[0][1])
    else:
        values = tuple(statistics.median(finite_values(measured)) for _, measured in used)
    errors = tuple(measured.standard_error for _, measured in used if measured.standard_error is not None)
    return Replicates(
        values=values,
        errors=errors if len(errors) == len(values) == len(used) else (),
        failed="" if used else failed,
        ran=ran and not used,
        started_at=max(int(record.started_at) for record in touched),
        duration=sum(record.duration / max(len(record.metrics), 1) for record in touched),
        settings=settings_without_seed(([record for record, _ in used] or touched)[-1]),
    )


def settings_without_seed(record: Record) -> dict[str, Any]:
    """A record's configuration without its seed: what must be equal among the values of a series."""
    return {key: value for key, value in record.config.items() if key != "seed"}


def rounded(value: float) -> float:
    """Six significant digits, for asv, which prints all that it is given."""
    return float(f"{value:.6g}")


def finite_values(metric: record_parts.Metric) -> tuple[float, ...]:
    """The finite values of a metric in a record, of which lower ones are better: of one that is better where it is
    higher the reciprocals. Empty where it failed or holds anything else."""
    values = metric.samples
    if values is None:
        values = [] if metric.value is None else [metric.value]
    if metric.better == "higher":
        values = [1 / value if value else math.inf for value in values]
    return tuple(map(float, values)) if all(map(math.isfinite, values)) else ()


def config_differences(config: object, canonical: object, path: str = "") -> list[str]:
    """Where two plain configurations differ, as "budget.seconds=5 (the series has 2)", sorted by setting."""
    if isinstance(config, Mapping) and isinstance(canonical, Mapping):
        lines = []
        for key in sorted({*config, *canonical}):
            lines += config_differences(config.get(key), canonical.get(key), f"{path}.{key}".removeprefix("."))
        return lines
    # Equal numbers of different type are equal (2 and 2.0), but 1 and True are not.
    if config == canonical and isinstance(config, bool) == isinstance(canonical, bool):
        return []
    return [f"{path}={_format_setting(config)} (the series has {_format_setting(canonical)})"]


def _format_setting(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)
