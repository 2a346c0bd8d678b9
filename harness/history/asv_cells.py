"""Cells of a benchmark in asv's result objects; which they are, asv_results.py knows (asv itself is not imported here).

asv stores a list with one entry for each combination of the axes' values: a number, NaN for "not run" or None for
"failed". Values of axes are stored as their `repr`.
"""

from __future__ import annotations

import datetime
import itertools
import math
import tempfile
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spinbench.errors import HistoryError
from spinbench.history.axes import Cell, Family, Metric
from spinbench.history.journal import Replicates, rounded
from spinbench.measuring import record_parts, record_types
from spinbench.scaffold.history import FAMILY_MODULE

if TYPE_CHECKING:
    from asv.results import Results


class Outcome(NamedTuple):
    """What asv's `Results.add_result` takes, with the field names of its `BenchmarkResult`."""

    result: list[Any]
    samples: list[Any]
    number: list[Any]
    errcode: int = 0
    stderr: str = ""
    profile: bytes | None = None


def asv_params(family: Family) -> list[list[str]]:
    """The axes as asv stores them."""
    return [[repr(value) for value in axis.values] for axis in family.axes]


def check_benchmarks(benchmarks: Mapping[str, Any], families: Iterable[Family]) -> None:
    """Compare asv's descriptions of the benchmarks with the families of conf/axes that the suite has.

    Raises:
        HistoryError: one is missing or differs.
    """
    for family in families:
        for metric in family.metrics:
            name = family.benchmark_name(metric.name)
            description = benchmarks.get(name)
            if description is None:
                raise HistoryError(
                    f"asv does not find benchmark {name}; the suite needs {family.name}.py as spinbench has it"
                )
            expected = {"version": metric.version, "unit": metric.unit, "params": asv_params(family)}
            if any(description.get(key) != value for key, value in expected.items()):
                raise HistoryError(f"asv's benchmark {name} is not the one that conf/axes/{family.name}.yaml defines")


def add_cells(results: Results, description: dict[str, Any], cells: Mapping[Cell, Replicates]) -> None:
    """Put the journal's cells of a benchmark into asv's `Results` and keep the other cells' values."""
    name = description["name"]
    combinations = list(itertools.product(*description["params"]))
    positions = {combination: i for i, combination in enumerate(combinations)}
    replicates_by_position = {positions[tuple(map(repr, cell))]: replicates for cell, replicates in cells.items()}
    outcome = build_outcome(len(combinations), replicates_by_position)
    is_stored = name in results.get_result_keys({name: description})
    stored_combinations = set(itertools.product(*results._benchmark_params.get(name) or ()))
    started_at = max(replicates.started_at for replicates in cells.values())
    results.add_result(
        description,
        outcome,
        started_at=datetime.datetime.fromtimestamp(started_at, datetime.UTC),
        duration=sum(replicates.duration for replicates in cells.values()),
        record_samples=True,
        selected_idx=set(replicates_by_position),
    )
    if is_stored:
        # New values of an axis append cells, whose entries are None here: asv would read them as failures.
        merged = results._results[name] or [None] * len(combinations)
        results._results[name] = [
            value if i in replicates_by_position or combination in stored_combinations else math.nan
            for i, (combination, value) in enumerate(zip(combinations, merged, strict=True))
        ]


def build_outcome(size: int, replicates_by_position: Mapping[int, Replicates]) -> Outcome:
    """Values at their places; the others are not run."""
    outcome = Outcome(result=[math.nan] * size, samples=[None] * size, number=[None] * size)
    for i, replicates in replicates_by_position.items():
        if len(replicates.values) > 1:
            # asv computes the median of the samples and its interval itself.
            outcome.result[i] = True
            outcome.samples[i] = [rounded(value) for value in replicates.values]
            outcome.number[i] = 1
        elif replicates.values:
            outcome.result[i] = rounded(replicates.values[0])
        elif not replicates.ran:
            outcome.result[i] = None
    return outcome


def read_cells(results: Results, family: Family, metric: Metric) -> dict[Cell, Replicates]:
    """The cells of a metric that asv's `Results` hold, if they are of the metric's version."""
    name = family.benchmark_name(metric.name)
    if name not in results.get_result_keys({name: {"version": metric.version}}):
        return {}
    current = asv_params(family)
    stored_combinations = set(itertools.product(*results.get_result_params(name)))
    values = results.get_result_value(name, current)
    samples = results.get_result_samples(name, current)
    cells = {}
    combinations = itertools.product(*current)
    for cell, combination, value, cell_samples in zip(family.cells, combinations, values, samples, strict=True):
        if combination in stored_combinations and value is None:
            cells[cell] = Replicates((), failed="asv recorded a failure")
        elif combination in stored_combinations and math.isfinite(value):
            cells[cell] = Replicates(tuple(cell_samples or (value,)))
    return cells


def build_record(family: Family, cell: Cell, values: Mapping[str, Replicates]) -> record_types.Record:
    """What asv knows of a cell, in the form of a record: by which settings and where it was measured, is not known."""
    measured = {metric: replicates for metric, replicates in values.items() if replicates.values}
    error = next((replicates.failed for replicates in values.values() if not measured), None)
    return record_types.Record(
        id=f"asv {family.name} {cell}",
        key="",
        family=family.name,
        axes=record_parts.Axes(**dict(zip((axis.name for axis in family.axes), cell, strict=True))),
        config={},
        protocol="",
        status="ok" if measured else "failed",
        error=error,
        traceback=None,
        git=record_parts.CodeState(),
        metrics={
            metric: record_parts.Metric(samples=list(replicates.values)) for metric, replicates in measured.items()
        },
        result_or_none=None,
        reference=None,
        environment=record_parts.Environment(),
        started_at=0,
        duration=0.0,
    )


_CELL_TABLES = ("_results", "_samples", "_stats")
_AXIS_TABLES = ("_benchmark_params", "_benchmark_version")
# Result tables of asv: those with one entry per cell, the one that defines cells, and the others.
_OTHER_TABLES = ("_profiles", "_started_at", "_duration")


def add_missing_results(mine: Results, theirs: Results) -> bool:
    """Add to asv's `Results` of a commit what only other ones of it have; whether there was anything.

    Of a benchmark that both have with the same axes and version, cells that were not run in one are the other's.
    """
    my_names = mine.get_all_result_keys()
    changed = False
    for name in theirs.get_all_result_keys():
        if name not in my_names:
            for table in (*_CELL_TABLES, *_AXIS_TABLES, *_OTHER_TABLES):
                getattr(mine, table)[name] = getattr(theirs, table).get(name)
            changed = True
        elif all(getattr(mine, axis_table)[name] == getattr(theirs, axis_table)[name] for axis_table in _AXIS_TABLES):
            changed = _fill_missing_cells(mine, theirs, name) or changed
    return changed


def remove_cells(results: Results, family: Family, cells: Set[Cell]) -> bool:
    """Take cells out of asv's `Results` of a commit, as if they had not been run; whether any had been."""
    removed_combinations = {tuple(map(repr, cell)) for cell in cells}
    removed = False
    for name in {family.benchmark_name(metric.name) for metric in family.metrics} & {*results.get_all_result_keys()}:
        combinations = list(itertools.product(*results._benchmark_params[name]))
        values = results._results[name] or [None] * len(combinations)
        measured = [i for i, value in enumerate(values) if not _is_not_run(value)]
        positions = {i for i in measured if combinations[i] in removed_combinations}
        remaining = [math.nan if i in positions else value for i, value in enumerate(values)]
        if positions and all(map(_is_not_run, remaining)):
            results.remove_result(name)
        elif positions:
            results._results[name] = remaining
        removed = removed or bool(positions)
    return removed


def _fill_missing_cells(mine: Results, theirs: Results, name: str) -> bool:
    """Whether any cell of a benchmark was filled."""
    old, new = mine._results[name], theirs._results[name]
    if old is None or new is None:
        return False
    empty = [i for i, value in enumerate(old) if _is_not_run(value) and not _is_not_run(new[i])]
    for table in _CELL_TABLES:
        columns = getattr(mine, table)
        if empty and (columns[name] or getattr(theirs, table)[name]):
            my_values = columns[name] or [None] * len(old)
            their_values = getattr(theirs, table)[name] or [None] * len(old)
            columns[name] = [their_values[i] if i in empty else value for i, value in enumerate(my_values)]
    return bool(empty)


def _is_not_run(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def write_suite(folder: Path, families: Iterable[str]) -> str:
    """Write a suite whose benchmarks are those of some families; its folder."""
    suite = Path(tempfile.mkdtemp(dir=folder, prefix="suite"))
    (suite / "__init__.py").touch()
    for name in families:
        (suite / f"{name}.py").write_text(FAMILY_MODULE.format(name=name), encoding="utf-8")
    return str(suite)
