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
from typing import TYPE_CHECKING, Any, NamedTuple

from spinbench.errors import HistoryError, SpinbenchError
from spinbench.foundation import remarks
from spinbench.history import asv_cells, axes, journal, series
from spinbench.history.series import AXIS, PREFIX, TIMEOUT, Series, SeriesIndex, slug
from spinbench.inference import kernels
from spinbench.measuring import record_types, records

if TYPE_CHECKING:
    from asv.results import Results

# Prefix in asv of benchmarks that are ratios to other libraries.
PEER_PREFIX = "peers"
RATIO_METRICS = ("step_cpu_seconds", "step_seconds", "seconds_per_ess")
RATIO_UNIT = "x"
# Prefixes in asv of the benchmarks that are generated from the journal.
SERIES_PREFIXES = (f"{PREFIX}.", f"{PEER_PREFIX}.")
# Number of samples from which asv's 99 % interval of a median lies within their range.
MIN_SAMPLES = 8


def benchmark_descriptions(series_index: SeriesIndex) -> dict[str, dict[str, object]]:
    """asv's descriptions of the benchmarks whose metrics are known here, by name."""
    tracked = {metric.name: metric for metric in axes.metrics()}
    benchmarks = {}
    for (name, metric), members in series_index.series_by_benchmark().items():
        if metric in tracked:
            tracked_metric, model = tracked[metric], members[0].model
            code = f"{tracked_metric.title} of {model}, in {tracked_metric.unit}; lower is better"
            benchmarks[name] = _benchmark_description(
                name, model, tracked_metric.title, code, tracked_metric.unit, tracked_metric.version
            )
            benchmarks[name]["params"] = [[repr(member.label) for member in members]]
    labels_by_name: dict[str, set[str]] = defaultdict(set)
    for ours, theirs, metrics in _peer_pairs(series_index):
        for tracked_metric in metrics:
            name, model = _ratio_benchmark_name(ours, theirs, tracked_metric.name), ours.series.model
            labels_by_name[name].add(ours.series.label)
            title = f"{tracked_metric.title}, over that of {theirs.backend}"
            code = f"{title}, on {model}; below 1 the library is slower, lower is better"
            benchmarks[name] = _benchmark_description(name, model, title, code, RATIO_UNIT, tracked_metric.version)
            benchmarks[name]["params"] = [[repr(label) for label in sorted(labels_by_name[name])]]
    return benchmarks


def exclude_series_benchmarks(benchmarks: Mapping[str, object]) -> dict[str, object]:
    """The descriptions of the other benchmarks."""
    return {name: description for name, description in benchmarks.items() if not name.startswith(SERIES_PREFIXES)}


def remove_series(results: Results) -> None:
    """Take these benchmarks out of asv's `Results` of a commit."""
    for name in [name for name in results.get_all_result_keys() if name.startswith(SERIES_PREFIXES)]:
        results.remove_result(name)


def add_series(
    results: Results, benchmarks: Mapping[str, Any], entries: Sequence[record_types.Record], series_index: SeriesIndex
) -> None:
    """Put the journal's cells of a commit, and their ratios to other libraries, into asv's `Results`."""
    measured = journal.collect_replicates(entries, axes.metrics(), series.entry_series)
    tables: dict[str, dict[str, journal.Replicates]] = _peer_ratios(entries, series_index)
    for (metric, entry_series), value in measured.items():
        tables[entry_series.benchmark_name(metric)][entry_series.label] = value
    for name, cells in tables.items():
        if name not in benchmarks:  # every run of this benchmark has failed
            continue
        # As in the benchmark's description, so that asv need not run discovery.
        labels = sorted(cells)
        values = [cells[label] for label in labels]
        started_at = max(replicates.started_at for replicates in values)
        results.add_result(
            {**benchmarks[name], "params": [list(map(repr, labels))]},
            asv_cells.build_outcome(len(values), dict(enumerate(map(_replace_few_samples_by_median, values)))),
            started_at=datetime.datetime.fromtimestamp(started_at, datetime.UTC),
            duration=sum(replicates.duration for replicates in values),
            record_samples=True,
        )


def _replace_few_samples_by_median(replicates: journal.Replicates) -> journal.Replicates:
    """The median of few: what asv says of their spread would be extrapolated, and ten times as long as the number."""
    if not 1 < len(replicates.values) < MIN_SAMPLES:
        return replicates
    return replace(replicates, values=(statistics.median(replicates.values),))


def _benchmark_description(name: str, model: str, title: str, code: str, unit: str, version: str) -> dict[str, object]:
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


class _BackendSeries(NamedTuple):
    """What was ever swept on a backend: a configuration, by its digest, its series and the metrics that it has."""

    config: str
    series: Series
    backend: str
    metrics: frozenset[str]


def _peer_pairs(series_index: SeriesIndex) -> Iterator[tuple[_BackendSeries, _BackendSeries, tuple[axes.Metric, ...]]]:
    """The same work, model, method and settings, on a backend of ours and on another library's, and the metrics of
    which there are ratios."""
    configurations = list(series_index.configurations())
    # series without a run of any other library are skipped: there may be tens of thousands
    peer_work = {
        (identity.model, identity.parts[0])
        for identity, *_ in configurations
        if _is_peer(_backend_name(identity.config))
    }
    groups: dict[str, list[_BackendSeries]] = defaultdict(list)
    for identity, metrics, _ in configurations:
        if (identity.model, identity.parts[0]) not in peer_work:
            continue
        member, backend = series_index.find(identity.config), _backend_name(identity.config)
        if member is not None:
            work = records.digest({**identity.config, "backend": {**identity.config["backend"], "name": None}})
            groups[work].append(_BackendSeries(identity.digest, member, backend, frozenset(metrics)))
    tracked = [metric for metric in axes.metrics() if metric.name in RATIO_METRICS]
    for sides in groups.values():
        for theirs, ours in itertools.permutations(sides, 2):
            if _is_peer(theirs.backend) and not _is_peer(ours.backend):
                yield ours, theirs, tuple(metric for metric in tracked if metric.name in ours.metrics & theirs.metrics)


def _ratio_benchmark_name(ours: _BackendSeries, theirs: _BackendSeries, metric: str) -> str:
    """asv's name of the benchmark that tracks the ratio of a metric."""
    return f"{PEER_PREFIX}.{slug(ours.series.model)}.track_{metric}_over_{slug(theirs.backend)}"


def _peer_ratios(
    entries: Sequence[record_types.Record], series_index: SeriesIndex
) -> dict[str, dict[str, journal.Replicates]]:
    """The ratios of a commit, by benchmark and label: of the medians over seeds.

    There is none where one side is missing, or the library took no time that a clock shows.
    """
    ratios: dict[str, dict[str, journal.Replicates]] = defaultdict(dict)
    if not any(_is_peer(_backend_name(entry.config)) for entry in entries):
        return ratios
    tracked = [metric for metric in axes.metrics() if metric.name in RATIO_METRICS]
    measured = journal.collect_replicates(entries, tracked, _configuration_digest)
    for ours, theirs, metrics in _peer_pairs(series_index):
        for metric in metrics:
            our_replicates, their_replicates = (measured.get((metric.name, side.config)) for side in (ours, theirs))
            if not (our_replicates and our_replicates.values and their_replicates and their_replicates.values):
                continue
            time = statistics.median(their_replicates.values)
            if time > 0:
                ratio = statistics.median(our_replicates.values) / time
                started_at = max(our_replicates.started_at, their_replicates.started_at)
                name = _ratio_benchmark_name(ours, theirs, metric.name)
                ratios[name][ours.series.label] = journal.Replicates((ratio,), started_at=started_at)
    return ratios


def _configuration_digest(entry: record_types.Record) -> str | None:
    """What an entry measured, as the book has it."""
    try:
        return records.digest(series.config_with_hashes(entry))
    except HistoryError:  # a local file that the history does not know
        return None


def _backend_name(config: Mapping[str, Any]) -> str:
    return str(config["backend"]["name"])


@cache
def _is_peer(backend: str) -> bool:
    """Whether a backend is another library; one that is not installed here is none, so that it has no ratios."""
    try:
        return kernels.is_peer(backend)
    except SpinbenchError as error:
        remarks.left_out(f"ratios to the backend of a series: {error}")
        return False
