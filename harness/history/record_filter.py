"""Which records may enter the history, all of clean commits of this repository, and the series that each belongs to.

A tracked cell with the settings of conf/axes belongs to its family's series, unless that was begun with others; another
one that was measured has its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from spinbench.errors import HistoryError
from spinbench.foundation.git import Checkout
from spinbench.history import asv_plugin, axes, journal
from spinbench.history.axes import Cell, Column, Family
from spinbench.history.series import Identity, SeriesIndex, format_cell, identify
from spinbench.measuring.record_types import Record

# A record, what it measured, and the column that conf/axes has for that.
Accepted = tuple[Record, Identity, Column]


def filter_records(
    records: Sequence[Record],
    checkout: Checkout,
    families: Mapping[str, Family],
    series_index: SeriesIndex,
    *,
    python: str,
    host: str | None,
) -> tuple[list[Accepted], list[str]]:
    """Decide about each record; refused ones stay where they are.

    Args:
        records: of any sweep.
        checkout: whose commits count.
        families: of conf/axes that the history has.
        series_index: its series.
        python: version "3.11" of the environment whose history this is.
        host: name of the host whose history this is; None: of any.

    Returns:
        Those that enter the history, and a sentence for each reason to keep others out.

    Raises:
        HistoryError: a tracked cell has no configuration any more.
    """
    reasons: Counter[str] = Counter()
    commits = {record.git.commit for record in records if record.git.commit is not None}
    absent = {commit for commit in commits if len(commit) < 40 or not checkout.has(commit)}
    welcome = []
    for record in records:
        if why := _refusal_reason(record, checkout, absent, python, host):
            reasons[why] += 1
        else:
            welcome.append(record)
    accepted = list(_identify_records(welcome, _find_columns(welcome, families), series_index, reasons))
    refused = [
        f"{count} of {len(records)} records stay out of the history: they {why}" for why, count in reasons.items()
    ]
    return accepted, refused


def _find_columns(records: Sequence[Record], families: Mapping[str, Family]) -> dict[str, Column]:
    """Of those of a cell of conf/axes, with its settings, by id; of several families the one that the sweep named."""
    cells = {(name, cell) for record in records for name, cell in _candidate_cells(record, families)}
    expected = _canonical_configs(cells)
    columns: dict[str, Column] = {}
    for record in records:
        for name, cell in _candidate_cells(record, families):
            if _is_canonical(record, expected[name, cell]):
                columns.setdefault(record.id, families[name].column(cell))
    return columns


def _identify_records(
    records: Sequence[Record], columns: Mapping[str, Column], series_index: SeriesIndex, reasons: Counter[str]
) -> Iterator[Accepted]:
    """Those that were measured. A failure counts in conf/axes, and where there was a result before; else there is
    nothing to compare."""
    identified: list[tuple[Record, Identity]] = []
    for record in records:
        if record.status == "skipped":
            continue
        try:
            identified.append((record, identify(record)))
        except HistoryError as error:
            reasons[str(error)] += 1
    good = {record_identity.digest for record, record_identity in identified if record.status == "ok"}
    for record, record_identity in identified:
        column = columns.get(record.id, ())
        if column or record_identity.digest in good or series_index.find(record_identity.config) is not None:
            yield record, record_identity, column
        else:
            reasons[f"failed where nothing was ever measured ({format_cell(record)})"] += 1


def _refusal_reason(record: Record, checkout: Checkout, absent: Set[str], python: str, host: str | None) -> str:
    """Why the place of a measurement keeps its record out; empty if it does not."""
    git, commit = record.git, str(record.git.commit)
    # The environment of a process that died is unknown, and passes.
    version, name = record.environment.python or python, record.environment.hostname or host
    named_in = asv_plugin.MACHINE_VARIABLE
    reasons = {
        "were measured outside a git checkout, or before its first commit": git.commit is None,
        "were measured where git cannot tell what is changed, as where the checkout itself requires a filter": (
            git.dirty is None
        ),
        "were measured with uncommitted changes in the tree, or while it changed; commit and sweep again": git.dirty,
        f"ran the code of {git.elsewhere}, not that of this checkout; here: pip install -e .": git.elsewhere,
        f"belong to commit {commit[:8]}, which {checkout.root} does not have": commit in absent,
        f"were measured with Python {version}; record them with that version": (
            not f"{version}.".startswith(f"{python}.")
        ),
        f"were measured on host {name}; name the machine that they count for in {named_in}": host not in (None, name),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _candidate_cells(record: Record, families: Mapping[str, Family]) -> list[tuple[str, Cell]]:
    """What it may be a record of, that of its own family first: the configuration says which."""
    named = sorted(families, key=lambda name: name != record.family)
    return [(name, cell) for name in named if (cell := families[name].find_cell(record.axes.as_dict())) is not None]


def _canonical_configs(cells: Set[tuple[str, Cell]]) -> dict[tuple[str, Cell], dict[str, object]]:
    expected: dict[tuple[str, Cell], dict[str, object]] = {}
    for name in {name for name, _ in cells}:
        family = axes.family(name)
        composed = axes.canonical_configs(family, sorted(cell for other, cell in cells if other == name))
        expected |= {(name, cell): config for cell, config in composed.items()}
    return expected


def _is_canonical(record: Record, canonical: Mapping[str, object]) -> bool:
    """Whether what the record says of its configuration is that of the series; an older one has fewer settings."""
    record_settings = journal.settings_without_seed(record)
    return not journal.config_differences(
        record_settings, json.loads(json.dumps(_restrict_settings(canonical, record_settings)))
    )


def _restrict_settings(canonical: object, config: object) -> object:
    if isinstance(canonical, Mapping) and isinstance(config, Mapping):
        return {key: _restrict_settings(canonical.get(key), value) for key, value in config.items()}
    return canonical
