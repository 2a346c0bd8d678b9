"""Our time over another library's, in asv's files: where both did the same work at the same commit.

`peers.MODEL.track_METRIC_over_PEER` has one axis, the cells on backends of our own; below 1 ours is faster. What the
machine's mood does to both cancels, and an update of the library shows as well as a change of ours.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from spinbench.errors import HistoryError
from spinbench.history import axes, journal, labels
from spinbench.history.axes import Metric
from spinbench.history.journal import Record, Replicates
from spinbench.history.series import AXIS, TIMEOUT, Book, Series, slug
from spinbench.inference import kernels
from spinbench.measuring.records import digest

PREFIX = "peers"
"""Of asv's names for these benchmarks."""
METRICS = ("step_cpu_seconds", "step_seconds", "seconds_per_ess")
UNIT = "x"


class Pair(NamedTuple):
    """The same work, model, method and settings, on two backends; configurations by their digests.

    Attributes:
        ours, theirs: configurations.
        series: of ours.
        peer: the other library's backend.
        metrics: that both have.
    """

    ours: str
    theirs: str
    series: Series
    peer: str
    metrics: tuple[Metric, ...]

    def benchmark(self, metric: str) -> str:
        """asv's name of the benchmark that tracks the ratio of a metric."""
        return f"{PREFIX}.{slug(self.series.model)}.track_{metric}_over_{slug(self.peer)}"


class _Side(NamedTuple):
    config: str
    series: Series
    backend: str
    metrics: frozenset[str]


def pairs(book: Book) -> list[Pair]:
    """All that were ever swept on a backend of ours and on another library's."""
    known = list(book.configurations())
    # what no library was ever asked for need not be looked at closely: there may be tens of thousands of series
    shared = {(one.model, one.parts[0]) for one, *_ in known if _is_peer(_backend(one.config))}
    groups: dict[str, list[_Side]] = defaultdict(list)
    for identity, metrics, _ in (one for one in known if (one[0].model, one[0].parts[0]) in shared):
        series = book.known(identity)
        if series is not None:
            side = _Side(identity.digest, series, _backend(identity.config), frozenset(metrics))
            groups[_work(identity.config)].append(side)
    return [pair for sides in groups.values() for pair in _paired(sides)]


def descriptions(book: Book) -> dict[str, dict[str, Any]]:
    """asv's descriptions of these benchmarks, by name."""
    found: dict[str, tuple[Pair, Metric, set[str]]] = {}
    for pair in pairs(book):
        for metric in pair.metrics:
            _, _, known = found.setdefault(pair.benchmark(metric.name), (pair, metric, set()))
            known.add(pair.series.label)
    return {name: _described(name, *one) for name, one in sorted(found.items())}


def tables(entries: Sequence[Record], book: Book) -> dict[str, dict[str, Replicates]]:
    """The ratios of a commit, by benchmark and label: of the medians over seeds.

    Args:
        entries: the journal's of the commit.
        book: all series.
    """
    if not any(_is_peer(_backend(entry["config"])) for entry in entries):
        return {}
    measured = journal.gathered(entries, _tracked(METRICS), _configuration)
    found: dict[str, dict[str, Replicates]] = defaultdict(dict)
    for pair in pairs(book):
        for metric in pair.metrics:
            sides = [measured.get((metric.name, config)) for config in (pair.ours, pair.theirs)]
            if ratio := _ratio([one for one in sides if one is not None and one.values]):
                found[pair.benchmark(metric.name)][pair.series.label] = ratio
    return found


def _paired(sides: Sequence[_Side]) -> Iterator[Pair]:
    for theirs in (side for side in sides if _is_peer(side.backend)):
        for ours in (side for side in sides if not _is_peer(side.backend)):
            metrics = _tracked(ours.metrics & theirs.metrics)
            yield Pair(ours.config, theirs.config, ours.series, theirs.backend, metrics)


def _ratio(sides: Sequence[Replicates]) -> Replicates | None:
    """Of ours to theirs; None where one is missing, or took no time that a clock shows."""
    medians = [statistics.median(one.values) for one in sides]
    if len(medians) < 2 or not medians[1] > 0:
        return None
    return Replicates((medians[0] / medians[1],), started_at=max(one.started_at for one in sides))


def _described(name: str, pair: Pair, metric: Metric, known: set[str]) -> dict[str, Any]:
    title = f"{metric.title}, over that of {pair.peer}"
    return {
        "name": name,
        "type": "track",
        "params": [[repr(label) for label in sorted(known)]],
        "param_names": [AXIS],
        "pretty_name": f"{pair.series.model}: {title}",
        "code": f"{title}, on {pair.series.model}; below 1 the library is slower, lower is better",
        "unit": UNIT,
        "version": metric.version,
        "timeout": TIMEOUT,
    }


def _configuration(entry: Record) -> str | None:
    """What an entry measured, as the book has it."""
    try:
        return digest(labels.measured(entry))
    except HistoryError:  # of own files of which nothing is known
        return None


def _work(config: Mapping[str, Any]) -> str:
    """All but the backend's name."""
    return digest({**config, "backend": {**config["backend"], "name": None}})


def _backend(config: Mapping[str, Any]) -> str:
    return str(config["backend"]["name"])


@cache
def _is_peer(backend: str) -> bool:
    return kernels.is_peer(backend)


def _tracked(names: Iterable[str]) -> tuple[Metric, ...]:
    """Of those of `METRICS`."""
    known = {*names}.intersection(METRICS)
    return tuple(metric for metric in axes.metrics() if metric.name in known)
