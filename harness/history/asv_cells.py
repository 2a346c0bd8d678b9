"""Cells of a benchmark in asv's result objects; which they are, asv_results.py knows (asv itself is not imported here).

asv stores a list with one entry for each combination of the axes' values: a number, NaN for "not run" or None for
"failed". Values of axes are stored as their `repr`.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from spinbench.errors import HistoryError
from spinbench.history.axes import Cell, Family, Metric
from spinbench.history.journal import Replicates, rounded
from spinbench.measuring.record_parts import Axes, CodeState, Environment
from spinbench.measuring.record_parts import Metric as Recorded
from spinbench.measuring.record_types import Record


class Outcome(NamedTuple):
    """What asv's `Results.add_result` takes, with the field names of its `BenchmarkResult`."""

    result: list[Any]
    samples: list[Any]
    number: list[Any]
    errcode: int = 0
    stderr: str = ""
    profile: bytes | None = None


def parameters(family: Family) -> list[list[str]]:
    """The axes as asv stores them."""
    return [[repr(value) for value in axis.values] for axis in family.axes]


def check(benchmarks: Mapping[str, Any], families: Iterable[Family]) -> None:
    """Compare asv's descriptions of the benchmarks with the families of conf/axes that the suite has.

    Raises:
        HistoryError: one is missing or differs.
    """
    for family in families:
        for metric in family.metrics:
            name = family.benchmark(metric.name)
            found = benchmarks.get(name)
            if found is None:
                raise HistoryError(
                    f"asv does not find benchmark {name}; the suite needs {family.name}.py as spinbench has it"
                )
            expected = {"version": metric.version, "unit": metric.unit, "params": parameters(family)}
            if any(found.get(key) != value for key, value in expected.items()):
                raise HistoryError(f"asv's benchmark {name} is not the one that conf/axes/{family.name}.yaml defines")


def enter(results: Any, described: dict[str, Any], cells: Mapping[Cell, Replicates]) -> None:
    """Put the journal's cells of a benchmark into asv's `Results` and keep the other cells' values."""
    name = described["name"]
    combinations = list(itertools.product(*described["params"]))
    index = {combination: i for i, combination in enumerate(combinations)}
    touched = {index[tuple(map(repr, cell))]: one for cell, one in cells.items()}
    outcome = outcome_of(len(combinations), touched)
    kept = name in results.get_result_keys({name: described})
    before = set(itertools.product(*results.get_result_params(name))) if kept else set()
    results.add_result(
        described,
        outcome,
        started_at=datetime.datetime.fromtimestamp(max(one.started_at for one in cells.values()), datetime.UTC),
        duration=sum(one.duration for one in cells.values()),
        record_samples=True,
        selected_idx=set(touched) if kept else None,
    )
    if kept:
        # Cells of values that were appended to an axis since are None now, which would mean that they failed.
        merged = results._results[name] or [None] * len(combinations)
        results._results[name] = [
            value if i in touched or combination in before else math.nan
            for i, (combination, value) in enumerate(zip(combinations, merged, strict=True))
        ]


def outcome_of(size: int, touched: Mapping[int, Replicates]) -> Outcome:
    """Values at their places; the others are not run."""
    outcome = Outcome(result=[math.nan] * size, samples=[None] * size, number=[None] * size)
    for i, one in touched.items():
        if len(one.values) > 1:
            outcome.result[i] = True  # asv takes the median of the samples, and its interval
            outcome.samples[i] = [rounded(value) for value in one.values]
            outcome.number[i] = 1
        elif one.values:
            outcome.result[i] = rounded(one.values[0])
        elif not one.ran:
            outcome.result[i] = None
    return outcome


def stored(results: Any, family: Family, metric: Metric) -> dict[Cell, Replicates]:
    """The cells of a metric that asv's `Results` hold, if they are of the metric's version."""
    name = family.benchmark(metric.name)
    if name not in results.get_result_keys({name: {"version": metric.version}}):
        return {}
    current = parameters(family)
    known = set(itertools.product(*results.get_result_params(name)))
    values = results.get_result_value(name, current)
    samples = results.get_result_samples(name, current)
    found = {}
    for cell, combination, value, drawn in zip(family.cells, itertools.product(*current), values, samples, strict=True):
        if combination in known and value is None:
            found[cell] = Replicates((), failed="asv recorded a failure")
        elif combination in known and math.isfinite(value):
            found[cell] = Replicates(tuple(drawn) if drawn else (value,))
    return found


def as_record(family: Family, cell: Cell, values: Mapping[str, Replicates]) -> Record:
    """What asv knows of a cell, in the form of a record: by which settings and where it was measured, is not known."""
    measured = {metric: one for metric, one in values.items() if one.values}
    error = next((one.failed for one in values.values() if not one.values), "")
    return Record(
        id=f"asv {family.name} {cell}",
        key="",
        family=family.name,
        axes=Axes(**dict(zip((axis.name for axis in family.axes), cell, strict=True))),
        config={},
        protocol="",
        status="ok" if measured else "failed",
        error=None if measured else error,
        traceback=None,
        git=CodeState(),
        metrics={metric: Recorded(samples=list(one.values)) for metric, one in measured.items()},
        result_or_none=None,
        reference=None,
        environment=Environment(),
        started_at=0,
        duration=0.0,
    )


_CELLS = ("_results", "_samples", "_stats")
_MEANING = ("_benchmark_params", "_benchmark_version")
_REST = ("_profiles", "_started_at", "_duration")
"""asv's tables by benchmark: those with an entry for each cell, those that say what a cell is, and others."""


def complete(mine: Any, theirs: Any) -> bool:
    """Add to asv's `Results` of a commit what only other ones of it have; whether there was anything.

    Of a benchmark that both have with the same axes and version, cells that were not run in one are the other's.
    """
    known, found = mine.get_all_result_keys(), False
    for name in theirs.get_all_result_keys():
        if name not in known:
            for table in (*_CELLS, *_MEANING, *_REST):
                getattr(mine, table)[name] = getattr(theirs, table).get(name)
            found = True
        elif all(getattr(mine, one)[name] == getattr(theirs, one)[name] for one in _MEANING):
            found = _filled(mine, theirs, name) or found
    return found


def forget(results: Any, family: Family, cells: Set[Cell]) -> bool:
    """Take cells out of asv's `Results` of a commit, as if they had not been run; whether any had been."""
    gone, found = {tuple(map(repr, cell)) for cell in cells}, False
    for name in {family.benchmark(metric.name) for metric in family.metrics} & {*results.get_all_result_keys()}:
        combinations = list(itertools.product(*results._benchmark_params[name]))
        values = results._results[name] or [None] * len(combinations)
        places = {i for i, one in enumerate(combinations) if one in gone and not _not_run(values[i])}
        kept = [math.nan if i in places else value for i, value in enumerate(values)]
        if places and all(map(_not_run, kept)):
            results.remove_result(name)
        elif places:
            results._results[name] = kept
        found = found or bool(places)
    return found


def _filled(mine: Any, theirs: Any, name: str) -> bool:
    """Whether any cell of a benchmark was filled."""
    old, new = mine._results[name], theirs._results[name]
    if old is None or new is None:
        return False
    empty = [i for i, value in enumerate(old) if _not_run(value) and not _not_run(new[i])]
    for table in _CELLS:
        columns = getattr(mine, table)
        if empty and (columns[name] or getattr(theirs, table)[name]):
            own, other = (getattr(one, table)[name] or [None] * len(old) for one in (mine, theirs))
            columns[name] = [other[i] if i in empty else value for i, value in enumerate(own)]
    return bool(empty)


def _not_run(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
