"""The series beyond conf/axes in asv's files: a benchmark for each model and metric, with one axis, the cells.

asv's products of axes would be mostly empty: what is swept on one model is not what is swept on another. asv does not
discover these benchmarks and never runs them; descriptions are put beside those that it finds. The ratios to other
libraries are among them.
"""

from __future__ import annotations

import datetime
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spinbench.history import asv_ratios, axes, journal, series
from spinbench.history.asv_cells import outcome_of
from spinbench.history.axes import Metric
from spinbench.history.journal import Record, Replicates
from spinbench.history.series import AXIS, PREFIX, TIMEOUT, Book, Series

DERIVED = (f"{PREFIX}.", f"{asv_ratios.PREFIX}.")
"""How asv's names of these benchmarks begin: they are made from the journal and nothing else."""
FEWEST_SAMPLES = 8
"""From which on asv's 99 % interval of a median lies within the samples."""


def descriptions(book: Book) -> dict[str, dict[str, Any]]:
    """asv's descriptions of the benchmarks whose metrics are known here, by name."""
    tracked = {metric.name: metric for metric in axes.metrics()}
    swept = {
        name: _described(name, tracked[metric], found)
        for (name, metric), found in book.benchmarks().items()
        if metric in tracked
    }
    return swept | asv_ratios.descriptions(book)


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
    tables: dict[str, dict[str, Replicates]] = defaultdict(dict, asv_ratios.tables(entries, book))
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


def _described(name: str, metric: Metric, found: Iterable[Series]) -> dict[str, Any]:
    known = list(found)
    return {
        "name": name,
        "type": "track",
        "params": [[repr(one.label) for one in known]],
        "param_names": [AXIS],
        "pretty_name": f"{known[0].model}: {metric.title}",
        "code": f"{metric.title} of {known[0].model}, in {metric.unit}; lower is better",
        "unit": metric.unit,
        "version": metric.version,
        "timeout": TIMEOUT,
    }
