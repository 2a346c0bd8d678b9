"""The series beyond conf/axes in asv's files: a benchmark for each model and metric, with one axis, the cells.

asv's products of axes would be mostly empty: what is swept on one model is not what is swept on another. asv does not
discover these benchmarks and never runs them; descriptions are put beside those that it finds.

Among them is our time over another library's, where both did the same work at the same commit:
`peers.MODEL.track_METRIC_over_PEER` has one axis, the cells on backends of our own; below 1 ours is faster. What the
machine's mood does to both cancels, and an update of the library shows as well as a change of ours.
"""

from __future__ import annotations

import datetime
import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from spinbench.errors import HistoryError
from spinbench.history import axes, journal, series
from spinbench.history.asv_cells import outcome_of
from spinbench.history.axes import Metric
from spinbench.history.journal import Replicates
from spinbench.history.series import AXIS, PREFIX, TIMEOUT, Book, Series, slug
from spinbench.inference import kernels
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import digest

PEERS = "peers"
"""Prefix of asv's names for the ratios to other libraries."""
RATIO_METRICS = ("step_cpu_seconds", "step_seconds", "seconds_per_ess")
RATIO_UNIT = "x"
DERIVED = (f"{PREFIX}.", f"{PEERS}.")
"""How asv's names of these benchmarks begin: they are made from the journal and nothing else."""
FEWEST_SAMPLES = 8
"""From which on asv's 99 % interval of a median lies within the samples."""


def descriptions(book: Book) -> dict[str, dict[str, Any]]:
    """asv's descriptions of the benchmarks whose metrics are known here, by name."""
    tracked = {metric.name: metric for metric in axes.metrics()}
    described = {}
    for (name, metric), found in book.benchmarks().items():
        if metric in tracked:
            own, model = tracked[metric], found[0].model
            code = f"{own.title} of {model}, in {own.unit}; lower is better"
            described[name] = _described(name, model, own.title, code, own.unit, own.version)
            described[name]["params"] = [[repr(one.label) for one in found]]
    compared: dict[str, set[str]] = defaultdict(set)
    for ours, theirs, metrics in _pairs(book):
        for own in metrics:
            name, model = _ratio_name(ours, theirs, own.name), ours.series.model
            compared[name].add(ours.series.label)
            title = f"{own.title}, over that of {theirs.backend}"
            code = f"{title}, on {model}; below 1 the library is slower, lower is better"
            described[name] = _described(name, model, title, code, RATIO_UNIT, own.version)
            described[name]["params"] = [[repr(label) for label in sorted(compared[name])]]
    return described


def without(benchmarks: Mapping[str, Any]) -> dict[str, Any]:
    """The descriptions of the other benchmarks."""
    return {name: one for name, one in benchmarks.items() if not name.startswith(DERIVED)}


def forget(results: Any) -> None:
    """Take these benchmarks out of asv's `Results` of a commit."""
    for name in [name for name in results.get_all_result_keys() if name.startswith(DERIVED)]:
        results.remove_result(name)


def enter(results: Any, benchmarks: Mapping[str, Any], entries: Sequence[Record], book: Book) -> None:
    """Put the journal's cells of a commit, and their ratios to other libraries, into asv's `Results`."""
    measured = journal.gathered(entries, axes.metrics(), series.of)
    tables: dict[str, dict[str, Replicates]] = _ratios(entries, book)
    for (metric, one), value in measured.items():
        tables[one.benchmark(metric)][one.label] = value
    for name, cells in tables.items():
        if name not in benchmarks:  # nothing but failures, ever
            continue
        labels = sorted(cells)  # as in the description: asv then has no need to look them up
        values = [cells[label] for label in labels]
        results.add_result(
            {**benchmarks[name], "params": [list(map(repr, labels))]},
            outcome_of(len(values), dict(enumerate(map(_condensed, values)))),
            started_at=datetime.datetime.fromtimestamp(max(one.started_at for one in values), datetime.UTC),
            duration=sum(one.duration for one in values),
            record_samples=True,
        )


def _condensed(one: Replicates) -> Replicates:
    """The median of few: what asv says of their spread would be extrapolated, and ten times as long as the number."""
    return replace(one, values=(statistics.median(one.values),)) if 1 < len(one.values) < FEWEST_SAMPLES else one


def _described(name: str, model: str, title: str, code: str, unit: str, version: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "track",
        "param_names": [AXIS],
        "pretty_name": f"{model}: {title}",
        "code": code,
        "unit": unit,
        "version": version,
        "timeout": TIMEOUT,
    }


class _Side(NamedTuple):
    """What was ever swept on a backend: a configuration, by its digest, its series and the metrics that it has."""

    config: str
    series: Series
    backend: str
    metrics: frozenset[str]


def _pairs(book: Book) -> Iterator[tuple[_Side, _Side, tuple[Metric, ...]]]:
    """The same work, model, method and settings, on a backend of ours and on another library's, and the metrics of
    which there are ratios."""
    known = list(book.configurations())
    # what no library was ever asked for need not be looked at closely: there may be tens of thousands of series
    shared = {(one.model, one.parts[0]) for one, *_ in known if _is_peer(_backend(one.config))}
    groups: dict[str, list[_Side]] = defaultdict(list)
    for identity, metrics, _ in (one for one in known if (one[0].model, one[0].parts[0]) in shared):
        found, backend = book.known(identity), _backend(identity.config)
        if found is not None:
            work = digest({**identity.config, "backend": {**identity.config["backend"], "name": None}})
            groups[work].append(_Side(identity.digest, found, backend, frozenset(metrics)))
    tracked = [metric for metric in axes.metrics() if metric.name in RATIO_METRICS]
    for sides in groups.values():
        for theirs, ours in itertools.permutations(sides, 2):
            if _is_peer(theirs.backend) and not _is_peer(ours.backend):
                yield ours, theirs, tuple(one for one in tracked if one.name in ours.metrics & theirs.metrics)


def _ratio_name(ours: _Side, theirs: _Side, metric: str) -> str:
    """asv's name of the benchmark that tracks the ratio of a metric."""
    return f"{PEERS}.{slug(ours.series.model)}.track_{metric}_over_{slug(theirs.backend)}"


def _ratios(entries: Sequence[Record], book: Book) -> dict[str, dict[str, Replicates]]:
    """The ratios of a commit, by benchmark and label: of the medians over seeds.

    There is none where one side is missing, or the library took no time that a clock shows.
    """
    found: dict[str, dict[str, Replicates]] = defaultdict(dict)
    if not any(_is_peer(_backend(entry.config)) for entry in entries):
        return found
    tracked = [metric for metric in axes.metrics() if metric.name in RATIO_METRICS]
    measured = journal.gathered(entries, tracked, _configuration)
    for ours, theirs, metrics in _pairs(book):
        for metric in metrics:
            one, other = (measured.get((metric.name, side.config)) for side in (ours, theirs))
            if one and other and one.values and other.values and (time := statistics.median(other.values)) > 0:
                ratio = Replicates(
                    (statistics.median(one.values) / time,), started_at=max(one.started_at, other.started_at)
                )
                found[_ratio_name(ours, theirs, metric.name)][ours.series.label] = ratio
    return found


def _configuration(entry: Record) -> str | None:
    """What an entry measured, as the book has it."""
    try:
        return digest(series.measured(entry))
    except HistoryError:  # of own files of which nothing is known
        return None


def _backend(config: Mapping[str, Any]) -> str:
    return str(config["backend"]["name"])


@cache
def _is_peer(backend: str) -> bool:
    return kernels.is_peer(backend)
