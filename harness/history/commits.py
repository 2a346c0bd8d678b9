"""From the history to what is compared: the newest measurements of two commits, and those before them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import format_count
from spinbench.history import asv_cells, axes, journal, recorder, series
from spinbench.history.regression_test import judge, measurements
from spinbench.history.regression_test.measurements import Place, Run, Runs, Sides
from spinbench.inference import registry
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import plain

# Largest number of sittings before the base commit from which noise is estimated.
MAX_PAST_SITTINGS = 30

# Largest number of records in a chain of commits: more take over ten seconds to read.
MAX_RECORDS = 30_000

# Smallest number of pairs of commits from which costs may count as changing more often than not.
MIN_PAIRS = 3

Settings = Mapping[str, Any]
# (family, empty for series outside conf/axes; cell).
Key = tuple[str, Place]


def collect_sides(history: recorder.History, base_commit: str, head_commit: str) -> Sides:
    """Two commits' newest sittings with those that came before the first."""
    head = sittings(history, head_commit)[-1]
    chain = list(itertools.islice(_sittings_until(history, base_commit), MAX_PAST_SITTINGS + 1))[::-1]
    names, measured = [name for name, _ in chain], [records for _, records in chain]
    base = measured[-1]
    base_settings, head_settings = settings_by_cell(base), settings_by_cell(head)
    common = base_settings.keys() & head_settings.keys()
    compared_settings = {
        key: head_settings[key] for key in common if _have_same_settings(base_settings[key], head_settings[key])
    }
    before_head = [select_runs(records, compared_settings) for records in measured]
    left_out = []
    if missing := len(base_settings.keys() - head_settings.keys()):
        left_out.append(
            f"{format_count(missing, 'cell')} of {base_commit[:8]} without a counterpart at {head_commit[:8]}"
        )
    if foreign := len(common) - len(compared_settings):
        left_out.append(
            f"{format_count(foreign, 'cell')} measured with other settings at {head_commit[:8]} than at "
            f"{base_commit[:8]}"
        )
    if later := len({_cell_key(record) for record in head if _is_later_version(record)} - base_settings.keys()):
        left_out.append(
            f"{format_count(later, 'cell')} of {head_commit[:8]} in a later version of their series, as a default was "
            f"changed, of which {base_commit[:8]} has nothing"
        )
    *past, newest = before_head
    changed = detect_cost_changes(names, before_head)
    configs, head_configs = (
        {place: record.config for place, record in _select_records(records, compared_settings)}
        for records in (base, head)
    )
    cells = {place: (config, head_configs[place]) for place, config in configs.items() if place in head_configs}
    return Sides(newest, select_runs(head, compared_settings), tuple(past), changed, tuple(left_out), cells)


def newest_commits(history: recorder.History, head: str, limit: int) -> list[str]:
    """The newest recorded commits of the branch up to `head`, oldest first.

    Older ones are left out where those of `limit` have more than `MAX_RECORDS`.
    """
    names = list(itertools.islice(filter(history.has_results, history.checkout.line(head)), limit))
    counts = itertools.accumulate(history.journal.count_records(name) for name in names)
    return names[: max(sum(count <= MAX_RECORDS for count in counts), 2)][::-1]


def runs_by_commit(history: recorder.History, names: Sequence[str]) -> list[Runs]:
    """All that was measured of commits, oldest first.

    Of a cell those runs count whose settings are the newest's; of several of a seed the last good one.
    """
    newest: dict[Key, Settings] = {}
    measured = [_select_newest_runs(_load_records(history, name), newest) for name in reversed(names)][::-1]
    several = len({family for family, _ in newest} - {""}) > 1
    return [{_label_family(key, several): cell_runs for key, cell_runs in runs.items()} for runs in measured]


def _select_newest_runs(records: Sequence[Record], newest: dict[Key, Settings]) -> dict[Key, dict[int, Run]]:
    """A commit's runs, boiled down at once; `newest` are the settings of each cell, to which new cells are added."""
    runs_by_cell: dict[Key, dict[int, Run]] = {}
    metrics = axes.metrics()
    for record in records:
        if record.status == "skipped" or not _is_tracked(record):
            continue
        key, record_settings = _cell_key(record), _comparable_settings(record)
        if _have_same_settings(record_settings, newest.setdefault(key, record_settings)):
            seed, run = record.config.get("seed", 0), measurements.summarize_record(record, metrics)
            if not run.failed or seed not in runs_by_cell.get(key, {}):
                runs_by_cell.setdefault(key, {})[seed] = run
    return runs_by_cell


def detect_cost_changes(names: Sequence[str], chain: Sequence[Runs]) -> tuple[bool, ...]:
    """Whether the cost changed between neighbouring sittings of commits with these names.

    It did not between sittings of one commit; and where it seems to change more often than not, the machine does.
    """
    costs = [metric for metric in axes.metrics() if metric.judged == "cost"]
    is_changed = [
        earlier != later and judge.has_change(costs, Sides(*pair))
        for (earlier, later), pair in zip(itertools.pairwise(names), itertools.pairwise(chain), strict=True)
    ]
    restless = len(is_changed) >= MIN_PAIRS and 2 * sum(is_changed) > len(is_changed)
    if restless:
        return (False,) * len(is_changed)
    return tuple(is_changed)


def sittings(history: recorder.History, commit: str) -> list[list[Record]]:
    """What was measured of a commit's tracked cells, oldest first; at least one, which may be empty."""
    tracked = [record for record in _load_records(history, commit) if _is_tracked(record)]
    return journal.group_into_sittings(tracked) or [[]]


def settings_by_cell(records: Iterable[Record]) -> dict[Key, Settings]:
    """Of each cell."""
    return {_cell_key(record): _comparable_settings(record) for record in records}


def select_runs(records: Sequence[Record], settings_by_key: Mapping[Key, Settings]) -> Runs:
    """Of the cells and settings that are wanted."""
    return measurements.group_runs(_select_records(records, settings_by_key), axes.metrics())


def _select_records(records: Sequence[Record], settings_by_key: Mapping[Key, Settings]) -> list[tuple[Place, Record]]:
    several = len({family for family, _ in settings_by_key}) > 1
    chosen = []
    for record in records:
        key = _cell_key(record)
        if key in settings_by_key and _have_same_settings(_comparable_settings(record), settings_by_key[key]):
            chosen.append((_label_family(key, several), record))
    return chosen


def _label_family(key: Key, several: bool) -> Place:
    """A cell's place, which names its family where there are several."""
    family, place = key
    if several and family:
        return place._replace(settings=f"family {family}")
    return place


def _load_records(history: recorder.History, commit: str) -> list[Record]:
    """The journal's, and of cells that only asv knows what it keeps: values without settings."""
    asv_values: dict[tuple[str, axes.Cell], dict[str, journal.Replicates]] = {}
    entries = history.journal.read_entries(commit)
    for (family, metric, cell), value in history.replicates(commit, entries).items():
        if value.settings is None:
            asv_values.setdefault((family, cell), {})[metric] = value
    unknown = (asv_cells.build_record(axes.family(name), cell, values) for (name, cell), values in asv_values.items())
    return [*entries, *unknown]


def _sittings_until(history: recorder.History, commit: str) -> Iterator[tuple[str, list[Record]]]:
    """Sittings of a commit and of the recorded ones before it on its branch, newest first."""
    for name in history.checkout.line(commit):
        if history.has_results(name):
            for records in reversed(sittings(history, name)):
                yield name, records


def _is_tracked(record: Record) -> bool:
    if record.series is not None:
        return True
    family = axes.families().get(record.family)
    return family is not None and family.find_cell(record.axes.as_dict()) is not None


def _cell_key(record: Record) -> Key:
    if (record_series := series.entry_series(record)) is not None:
        return "", Place(record_series.model, *record_series.parts[:2], record_series.run)
    return record.family, Place(*record.axes.as_dict().values())


def _is_later_version(record: Record) -> bool:
    return (record_series := series.entry_series(record)) is not None and record_series.version > 1


def _comparable_settings(record: Record) -> Settings:
    """A series of its own holds equal settings only, and paths that may differ."""
    return journal.settings_without_seed(record) if record.series is None else {}


def _have_same_settings(first: Settings, second: Settings) -> bool:
    # asv does not store the settings of its cells.
    if not first or not second or first == second:
        return True
    return _fill_default_settings(first) == _fill_default_settings(second)


def _fill_default_settings(settings: Settings) -> dict[str, object]:
    """With today's defaults for the settings that the method did not have when it was recorded.

    A commit that gives a method another setting is measured with its default, and has to be compared with those before.
    """
    method = settings["method"]
    try:
        method_fields = fields(registry.method_class(method["name"]))  # type: ignore[arg-type]
    except SpinbenchError:  # not installed on this machine
        return dict(settings)
    defaults = {field.name: field.default for field in method_fields if field.default is not MISSING}
    return {**settings, "method": {**plain(defaults), **method}}
