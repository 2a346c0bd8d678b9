"""The series of all that was ever swept: they grow by themselves, and nothing is ever taken away.

    .asv/journal/.series/series-DIGEST.json     a series, one of its configurations, and metrics that it has

A file is written once and never changed, so that folders of several machines merge by copying. A configuration that was
seen keeps its label for ever. One that was not, under a known label, goes on with the newest version of the series that
it contradicts in nothing: it merely has more or fewer settings (a new setting at its default). Where it contradicts all
versions, a default was changed, and a new version of the series begins. A cell of conf/axes is a column of asv's table,
which its first configuration keeps: later versions have a series of their own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinbench.conf import searchpath
from spinbench.errors import HistoryError, SpinbenchError
from spinbench.foundation.atomic import clear_fragments, write_json
from spinbench.history import axes, journal
from spinbench.history.axes import Column
from spinbench.measuring.cells import drop_ended_defaults
from spinbench.measuring.record_types import Record, parse_record
from spinbench.measuring.records import digest, model_label, plain

# Folder beside the journals of machines, whose names do not begin with a dot.
FOLDER = ".series"
# Prefix of the benchmarks' names in asv, swept.MODEL.track_METRIC.
PREFIX = "swept"
AXIS = "cell"
TIMEOUT = 300.0
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
MAX_SLUG_LENGTH = 60
# Longest setting's value in characters that a label shows; longer ones are replaced by a hash.
MAX_VALUE_LENGTH = 40
# Hexadecimal digits of a file's hash in labels.
HASH_DIGITS = 8


@dataclass(frozen=True)
class Identity:
    """Of a series.

    Attributes:
        model: its label; own files by name and content, "mine.uai@1a2b3c4d".
        parts: method, backend and run with what differs from the defaults, "dhmc(form=sparse)", "numba", "chains=4".
        config: all that was measured but for the seed, with hashes in the place of paths.
    """

    model: str
    parts: tuple[str, str, str]
    config: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Equal for records of the same configuration and contents."""
        return digest(self.config)


@dataclass(frozen=True)
class Series:
    """A model, and method, backend and run as labels; `version` counts changes of defaults.

    What is swept beyond conf/axes has no `column`.
    """

    model: str
    parts: tuple[str, str, str]
    version: int = 1
    column: Column = ()

    @property
    def run(self) -> str:
        """What else the label holds, besides method and backend."""
        return " ".join([*filter(None, self.parts[2:]), *([f"v{self.version}"] if self.version > 1 else [])])

    @property
    def label(self) -> str:
        """A value of asv's axis."""
        return " ".join(filter(None, [*self.parts[:2], self.run]))

    def benchmark_name(self, metric: str) -> str:
        """asv's name of the benchmark that tracks a metric of this model."""
        return f"{PREFIX}.{slug(self.model)}.track_{metric}"

    def as_json(self) -> dict[str, Any]:
        """For files."""
        place = {"column": dict(self.column)} if self.column else {}
        return {"model": self.model, "parts": list(self.parts), "version": self.version, **place}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Series:
        """What `as_json` gave.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: it is something else.
        """
        method, backend, run = map(str, stored["parts"])
        column = tuple((str(name), str(value)) for name, value in stored.get("column", {}).items())
        return cls(str(stored["model"]), (method, backend, run), int(stored["version"]), column)


def entry_series(record: Record) -> Series | None:
    """The series of a journal's entry; None where it belongs to a family of conf/axes."""
    return None if record.series is None else Series.from_json(record.series)


def label_entry(record: Record, series: Series) -> Record:
    """A journal's entry of what belongs to a series: in the column of conf/axes, however it was swept, or beyond."""
    entry = {key: value for key, value in record.content.items() if key != "series"}
    if not series.column:
        return parse_record({**entry, "series": series.as_json()})
    axes_by_name = dict(series.column)
    return parse_record({**entry, "family": axes_by_name.pop("family"), "axes": axes_by_name})


def entry_column(record: Record) -> Column:
    """Where conf/axes has a journal's entry; empty for one of a series beyond it."""
    if record.series is not None:
        return ()
    return (("family", record.family), *record.axes.as_dict().items())


def identify(record: Record) -> Identity:
    """What a record belongs to.

    Raises:
        HistoryError: it does not say what its own files held, or its method is not installed here.
    """
    config = config_with_hashes(record)
    return Identity(_model_label(config["model"], record), _label_method_backend_run(config), config)


def config_with_hashes(record: Record) -> dict[str, Any]:
    """All that was measured but for the seed, with hashes in the place of paths.

    Raises:
        HistoryError: the record does not say what its own files held.
    """
    config = journal.settings_without_seed(record)
    return {**config, "model": _replace_paths_by_hashes(config["model"], record.files)}


def format_cell(record: Record) -> str:
    """The cell for people."""
    return " ".join(record.axes.as_dict().values())


class SeriesIndex:
    """All series of a history. Only one process at a time may `enter`."""

    def __init__(self, home: Path) -> None:
        """`home` is the folder of the journals."""
        self._folder = home / FOLDER
        self._configs: dict[str, tuple[Series, Mapping[str, Any]]] = {}
        self._metrics: dict[str, set[str]] = defaultdict(set)
        self._labels: dict[tuple[str, tuple[str, str, str]], set[str]] = defaultdict(set)
        self._columns: dict[Column, list[Mapping[str, Any]]] = defaultdict(list)
        for path in self._folder.glob("series-*.json"):
            self._add_to_index(*_read_series_file(path))

    def find(self, config: Mapping[str, Any]) -> Series | None:
        """The series of a configuration that was seen."""
        return self._configs.get(digest(config), (None, {}))[0]

    def add(self, identity: Identity, metrics: Iterable[str], column: Column = ()) -> Series:
        """The series that a configuration belongs to, noted with its metrics unless both are known.

        Args:
            identity: what was measured.
            metrics: those that it has.
            column: where conf/axes has it; whether it is of the column's series is said here.
        """
        key, metric_names = identity.digest, set(metrics)
        series = self.find(identity.config) or self._assign_series(identity, column)
        if key not in self._configs or not metric_names <= self._metrics[key]:
            all_names = sorted(metric_names | self._metrics[key])
            content = {**series.as_json(), "config": identity.config, "metrics": all_names}
            write_json(self._folder / f"series-{digest([key, all_names])}.json", content)
            self._add_to_index(series, identity.config, all_names)
        return series

    def configurations(self) -> Iterator[tuple[Identity, list[str], Column]]:
        """All that were seen, older versions of a label first, each with its metrics and column."""
        for key, (series, config) in sorted(self._configs.items(), key=lambda item: (item[1][0].version, item[0])):
            yield Identity(series.model, series.parts, config), sorted(self._metrics[key]), series.column

    def configurations_by_column(self) -> Mapping[Column, Sequence[Mapping[str, Any]]]:
        """The configurations whose results stand in a column of conf/axes."""
        return self._columns

    def clear_fragments(self) -> None:
        """Remove what recorders that were killed left unfinished."""
        clear_fragments(self._folder)

    def series_by_benchmark(self) -> dict[tuple[str, str], list[Series]]:
        """The series behind each of asv's benchmarks beyond conf/axes, by (name, metric), sorted by label."""
        series_by_name: dict[tuple[str, str], dict[str, Series]] = defaultdict(dict)
        beyond_axes = {key: series for key, (series, _) in self._configs.items() if not series.column}
        for key, series in beyond_axes.items():
            for metric in self._metrics[key]:
                series_by_name[series.benchmark_name(metric), metric][series.label] = series
        return {key: [values[label] for label in sorted(values)] for key, values in sorted(series_by_name.items())}

    def _assign_series(self, identity: Identity, column: Column) -> Series:
        """The newest version of the label that says the same, or the next; of a new label the column's, unless others
        hold it."""
        same_label = [self._configs[key] for key in sorted(self._labels[identity.model, identity.parts])]
        if not same_label:
            if not _agrees_with_all(self._columns.get(column, ()), identity.config):
                column = ()
            return Series(identity.model, identity.parts, column=column)
        versions = {series.version: series for series, _ in same_label}
        for version in sorted(versions, reverse=True):
            if _agrees_with_all(
                (config for series, config in same_label if series.version == version), identity.config
            ):
                return versions[version]
        return Series(identity.model, identity.parts, max(versions) + 1)

    def _add_to_index(self, series: Series, config: Mapping[str, Any], metrics: Iterable[str]) -> None:
        key = digest(config)
        if series.column and key not in self._configs:
            self._columns[series.column].append(config)
        self._configs[key] = (series, config)
        self._metrics[key] |= set(metrics)
        self._labels[series.model, series.parts].add(key)


def _agrees_with_all(configs: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> bool:
    return all(_agrees(other_config, config) for other_config in configs)


def _agrees(first: object, second: object) -> bool:
    """Whether what two configurations both say is the same."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return all(_agrees(first[key], second[key]) for key in first.keys() & second.keys())
    return bool(first == second)


def _read_series_file(path: Path) -> tuple[Series, Mapping[str, Any], list[str]]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Series.from_json(stored), drop_ended_defaults(stored["config"]), list(map(str, stored["metrics"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HistoryError(f"{path} is not a series of the history: {error}; restore it, or remove it") from error


def slug(model: str) -> str:
    """A label as a part of a file's name and of asv's; unique by a hash where characters are lost."""
    plain = _UNSAFE.sub("_", model).strip("_")[:MAX_SLUG_LENGTH]
    return plain if plain == model else f"{plain}-{digest(model)[:6]}"


def _replace_paths_by_hashes(model: Mapping[str, Any], files: Mapping[str, str | None] | None) -> dict[str, Any]:
    hashed = dict(model)
    for name in ("path", "evidence", "corpus"):
        if model.get(name) is not None:
            content = (files or {}).get(name)
            if content is None:
                raise HistoryError("do not say what their own files held; sweep again")
            hashed[name] = f"{Path(model[name]).name}@{content[:HASH_DIGITS]}"
    return hashed


def _model_label(model: Mapping[str, Any], record: Record) -> str:
    if model["name"] == "file":
        return _label_with_settings(model_label(model), {"beta": model.get("beta")}, {})
    if model.get("corpus") is not None:
        return model_label(model)
    return record.axes.model


def _label_method_backend_run(config: Mapping[str, Any]) -> tuple[str, str, str]:
    method, backend = config["method"], config["backend"]
    try:
        defaults = plain(searchpath.method_defaults(method["name"]))
    except SpinbenchError as error:
        raise HistoryError(f"have the method {method['name']}, whose defaults are not known here") from error
    usual = axes.run_defaults()
    # a budget has either seconds or samples; the other is null
    budget = {key: value for key, value in config["budget"].items() if value is not None}
    run = _settings_beside_defaults({"chains": config["chains"]}, usual) + _settings_beside_defaults(
        budget, usual["budget"]
    )
    return (
        _label_with_settings(method["name"], method, defaults),
        _label_with_settings(backend["name"], backend, searchpath.backend_defaults(backend["name"])),
        " ".join(run),
    )


def _label_with_settings(name: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    changed = ",".join(
        _settings_beside_defaults({key: value for key, value in settings.items() if key != "name"}, defaults)
    )
    return f"{name}({changed})" if changed else name


def _settings_beside_defaults(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_format_value(value)}" for key, value in settings.items() if value != defaults.get(key)]


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
    if len(text) > MAX_VALUE_LENGTH:
        return f"#{hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]}"
    return text
