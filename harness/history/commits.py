"""From the history to what is compared: the newest measurements of two commits, and those before them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.history import asv_cells, axes, journal, series
from spinbench.history.axes import Cell
from spinbench.history.journal import Replicates
from spinbench.history.recorder import History
from spinbench.history.regression_test import judge, measurements
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides
from spinbench.inference import registry
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import plain

MOST_PAST = 30
"""Sittings before base from which noise is learnt."""

MOST_RECORDS = 30_000
"""Of a chain of commits: more take more than ten seconds to read."""

FEWEST_PAIRS = 3
"""From which on it can be told whether cost changes more often than not."""

Settings = Mapping[str, Any]
Key = tuple[str, Place]
"""Family, empty for series beyond conf/axes, and cell."""


def compared(history: History, first: str, second: str) -> tuple[Sides, tuple[str, ...]]:
    """Two commits' newest sittings with those that came before the first, and sentences about what is left out."""
    head = sittings(history, second)[-1]
    chain = list(itertools.islice(_until(history, first), MOST_PAST + 1))[::-1]
    names, measured = [name for name, _ in chain], [records for _, records in chain]
    base = measured[-1]
    before, after = settings(base), settings(head)
    common = before.keys() & after.keys()
    wanted = {key: after[key] for key in common if _alike(before[key], after[key])}
    before_head = [runs(records, wanted) for records in measured]
    left_out = []
    if missing := len(before.keys() - after.keys()):
        left_out.append(f"{missing} cell{'s' * (missing > 1)} of {first[:8]} without a counterpart at {second[:8]}")
    if foreign := len(common) - len(wanted):
        left_out.append(
            f"{foreign} cell{'s' * (foreign > 1)} measured with other settings at {second[:8]} than at {first[:8]}"
        )
    if later := len({_key(record) for record in head if _later(record)} - before.keys()):
        left_out.append(
            f"{later} cell{'s' * (later > 1)} of {second[:8]} in a later version of their series, as a default was "
            f"changed, of which {first[:8]} has nothing"
        )
    *past, newest = before_head
    sides = Sides(newest, runs(head, wanted), tuple(past), changes(names, before_head))
    return sides, tuple(left_out)


def recorded(history: History, head: str, most: int) -> list[str]:
    """The newest recorded commits of the branch up to `head`, oldest first.

    Older ones are left out where those of `most` have more than `MOST_RECORDS`.
    """
    names = list(itertools.islice(filter(history.knows, history.checkout.line(head)), most))
    counts = itertools.accumulate(history.journal.count(name) for name in names)
    return names[: max(sum(count <= MOST_RECORDS for count in counts), 2)][::-1]


def chain(history: History, names: Sequence[str]) -> list[Runs]:
    """All that was measured of commits, oldest first.

    Of a cell those runs count whose settings are the newest's; of several of a seed the last good one.
    """
    newest: dict[Key, Settings] = {}
    measured = [_measured(_records(history, name), newest) for name in reversed(names)][::-1]
    several = len({family for family, _ in newest} - {""}) > 1

    def told(key: Key) -> Place:
        family, place = key
        return place._replace(settings=f"family {family}") if several and family else place

    return [{told(key): own for key, own in runs.items()} for runs in measured]


def _measured(records: Sequence[Record], newest: dict[Key, Settings]) -> dict[Key, dict[int, Run]]:
    """A commit's runs, boiled down at once; `newest` are the settings of each cell, to which new cells are added."""
    found: dict[Key, dict[int, Run]] = {}
    metrics = axes.metrics()
    for record in records:
        if record.status == "skipped" or not _tracked(record):
            continue
        key, own = _key(record), _settings(record)
        if _alike(own, newest.setdefault(key, own)):
            seed, one = record.config.get("seed", 0), measurements.run(record, metrics)
            if not one.failed or seed not in found.get(key, {}):
                found.setdefault(key, {})[seed] = one
    return found


def changes(names: Sequence[str], chain: Sequence[Runs]) -> tuple[bool, ...]:
    """Whether the cost changed between neighbouring sittings of commits with these names.

    It did not between sittings of one commit; and where it seems to change more often than not, the machine does.
    """
    costs = [metric for metric in axes.metrics() if metric.judged == "cost"]
    found = [
        one != other and judge.changed(costs, Sides(*pair))
        for (one, other), pair in zip(itertools.pairwise(names), itertools.pairwise(chain), strict=True)
    ]
    restless = len(found) >= FEWEST_PAIRS and 2 * sum(found) > len(found)
    return (False,) * len(found) if restless else tuple(found)


def sittings(history: History, commit: str) -> list[list[Record]]:
    """What was measured of a commit's tracked cells, oldest first; at least one, which may be empty."""
    tracked = [record for record in _records(history, commit) if _tracked(record)]
    return journal.sittings(tracked) or [[]]


def settings(records: Iterable[Record]) -> dict[Key, Settings]:
    """Of each cell."""
    return {_key(record): _settings(record) for record in records}


def runs(records: Sequence[Record], wanted: Mapping[Key, Settings]) -> Runs:
    """Of the cells and settings that are wanted."""
    several = len({family for family, _ in wanted}) > 1
    chosen = []
    for record in records:
        family, place = key = _key(record)
        if key in wanted and _alike(_settings(record), wanted[key]):
            told = f"family {family}" if several and family else place.settings
            chosen.append((place._replace(settings=told), record))
    return measurements.runs(chosen, axes.metrics())


def _records(history: History, commit: str) -> list[Record]:
    """The journal's, and of cells that only asv knows what it keeps: values without settings."""
    found: dict[tuple[str, Cell], dict[str, Replicates]] = {}
    entries = history.journal.entries(commit)
    for (family, metric, cell), value in history.measured(commit, entries).items():
        if value.settings is None:
            found.setdefault((family, cell), {})[metric] = value
    unknown = (asv_cells.as_record(axes.family(name), cell, values) for (name, cell), values in found.items())
    return [*entries, *unknown]


def _until(history: History, commit: str) -> Iterator[tuple[str, list[Record]]]:
    """Sittings of a commit and of the recorded ones before it on its branch, newest first."""
    for name in history.checkout.line(commit):
        if history.knows(name):
            for records in reversed(sittings(history, name)):
                yield name, records


def _tracked(record: Record) -> bool:
    if record.series is not None:
        return True
    family = axes.families().get(record.family)
    return family is not None and family.cell(record.axes.as_dict()) is not None


def _key(record: Record) -> Key:
    if (found := series.of(record)) is not None:
        return "", Place(found.model, *found.parts[:2], found.run)
    return record.family, Place(*record.axes.as_dict().values())


def _later(record: Record) -> bool:
    return (found := series.of(record)) is not None and found.version > 1


def _settings(record: Record) -> Settings:
    """A series of its own holds equal settings only, and paths that may differ."""
    return journal.settings(record) if record.series is None else {}


def _alike(one: Settings, other: Settings) -> bool:
    if not one or not other or one == other:  # asv does not know its cells' settings
        return True
    return _completed(one) == _completed(other)


def _completed(settings: Settings) -> dict[str, Any]:
    """With today's defaults for the settings that the method did not have when it was recorded.

    A commit that gives a method another setting is measured with its default, and has to be compared with those before.
    """
    method = settings["method"]
    try:
        found = fields(registry.method_class(method["name"]))  # type: ignore[arg-type]
    except SpinbenchError:  # not installed here
        return dict(settings)
    defaults = {field.name: field.default for field in found if field.default is not MISSING}
    return {**settings, "method": {**plain(defaults), **method}}
