"""Which records may enter the history: of a clean commit of this repository, of a tracked cell, with its settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from spinbench.foundation.checkout import Checkout
from spinbench.history import axes
from spinbench.history.asv_benchmarks import MACHINE_VARIABLE
from spinbench.history.axes import Cell
from spinbench.history.journal import Record, settings


@dataclass(frozen=True)
class Intake:
    """Records that enter the history, and a sentence for each reason to keep others out.

    Attributes:
        accepted: records.
        refused: sentences.
        disturbed: of the accepted ones, those whose process did not have its core to itself.
    """

    accepted: tuple[Record, ...]
    refused: tuple[str, ...]
    disturbed: int = 0


def sort_out(records: Sequence[Record], checkout: Checkout, *, python: str, host: str | None) -> Intake:
    """Decide about each record; refused ones stay where they are.

    Args:
        records: of any sweep.
        checkout: whose commits count.
        python: version "3.11" of the environment whose history this is.
        host: name of the host whose history this is; None: of any.

    Raises:
        HistoryError: a tracked cell has no configuration any more.
    """
    reasons: Counter[str] = Counter()
    untracked = next((_shown(record) for record in records if _cell(record) is None), "")
    commits = {record["git"].get("commit") for record in records} - {None}
    absent = {commit for commit in commits if len(commit) < 40 or not checkout.has(commit)}
    tracked: list[tuple[Record, Cell]] = []
    for record in records:
        cell = _cell(record)
        if why := _refusal(record, checkout, absent, python, host):
            reasons[why] += 1
        elif cell is None:
            reasons[f"are of a cell that conf/axes does not track ({untracked})"] += 1
        else:
            tracked.append((record, cell))
    accepted = []
    expected = _canonical(tracked)
    for record, cell in tracked:
        found = _deviations(record, expected[record["family"], cell])
        if found:
            reasons[f"have other settings than the series: {', '.join(found)}"] += 1
        else:
            accepted.append(record)
    refused = (
        f"{count} of {len(records)} records stay out of the history: they {why}" for why, count in reasons.items()
    )
    return Intake(tuple(accepted), tuple(refused), sum(bool(record.get("oversubscribed")) for record in accepted))


def _refusal(record: Record, checkout: Checkout, absent: Set[str], python: str, host: str | None) -> str:
    """Why the place of a measurement keeps its record out; empty if it does not."""
    commit = record["git"].get("commit")
    if commit is None:
        return "were measured outside a git checkout"
    if record["git"].get("dirty") is not False:
        return "were measured with uncommitted changes in the tree; commit them and sweep again"
    if commit in absent:
        return f"belong to commit {commit[:8]}, which {checkout.root} does not have"
    if not _is(record, "python", python):
        return f"were measured with Python {_place(record, 'python')}; record them with that version"
    if host is not None and not _is(record, "hostname", host):
        name = _place(record, "hostname")
        return f"were measured on host {name}; name the machine that they count for in {MACHINE_VARIABLE}"
    return ""


def _place(record: Record, key: str) -> str:
    return str(record.get("environment", {}).get(key, ""))


def _is(record: Record, key: str, wanted: str) -> bool:
    """Whether the environment is as wanted; that of a process that died is unknown and passes."""
    found = _place(record, key)
    return found in ("", wanted) or (key == "python" and found.startswith(f"{wanted}."))


def _cell(record: Record) -> Cell | None:
    found = axes.families().get(record["family"])
    return found.cell(record["axes"]) if found else None


def _shown(record: Record) -> str:
    return ", ".join([record["family"], *(f"{name}={value}" for name, value in record["axes"].items())])


def _canonical(tracked: Iterable[tuple[Record, Cell]]) -> dict[tuple[str, Cell], Record]:
    cells = {(record["family"], cell) for record, cell in tracked}
    expected: dict[tuple[str, Cell], Record] = {}
    for name in {name for name, _ in cells}:
        family = axes.family(name)
        composed = axes.canonical(family, sorted(cell for other, cell in cells if other == name))
        expected |= {(name, cell): config for cell, config in composed.items()}
    return expected


def _deviations(record: Record, canonical: Record) -> list[str]:
    """At most three settings that differ; the record holds a part of the whole configuration."""
    given = settings(record)
    wanted = json.loads(json.dumps({key: canonical.get(key) for key in given}))
    return axes.differences(given, wanted)[:3]
