"""What records say to the gate and to changepoints: numbers as logarithms, and whether times can be compared."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from spinbench.history.axes import Metric
from spinbench.history.journal import finite_values
from spinbench.history.regression_test.noise import FloatArray
from spinbench.inference import kernels
from spinbench.measuring import record_parts, record_types

MIN_BATCHES = 16
# Step times of shorter runs, and of runs with fewer than `MIN_BATCHES` batches, are shown but not judged.
MIN_RUN_SECONDS = 1e-3
# A run is marked as slowed down if the fixed loop beside it took this many times the typical time in its sitting.
MAX_SLOWDOWN = 1.15
# Largest relative difference between equal numbers that are summed in another order.
ROUNDING_ERROR = 1e-6

NO_TIMES = "their records hold no times of single steps"


class Place(NamedTuple):
    """A cell of a comparison; `settings` says in what its two sides differ, or which of several settings it has."""

    model: str
    method: str
    backend: str
    settings: str = ""

    @property
    def group(self) -> str:
        """Method and backend: cells that share their code."""
        return " × ".join(part for part in self[1:] if part)


@dataclass(frozen=True)
class Run:
    """A record, boiled down.

    Attributes:
        failed: why there is no result; empty where there is one.
        values: logarithms of its metrics, by name.
        scatter: of the batches behind a metric: the logarithm of their median over their first decile.
        answer: fingerprint of the marginals and log Z; empty where the record is older than that.
        numbers: fingerprint of all that metrics may be of; empty where the record is older than that.
        samples: logarithm of their number; NaN where it is not known.
        fixed: whether the budget was in samples.
        timed: batches that were timed, and the seconds of all of them; None where the record is older than that.
        machine: values of `names_of_machine_parts`; None where the process died before it could tell.
        yardstick: seconds of a fixed loop before and after the run; empty where that was not measured.
        waited: share of the run for which others had the processor; None where that is not known.
        disturbed: whether the measuring process was oversubscribed.
        levels: what "marginals" and "log_z" rest on, "exact" to "doubtful"; empty where the record is older than that.
    """

    failed: str
    values: Mapping[str, float] = field(default_factory=dict)
    scatter: Mapping[str, float] = field(default_factory=dict)
    answer: str = ""
    numbers: str = ""
    samples: float = math.nan
    fixed: bool = True
    timed: tuple[int, float] | None = None
    machine: tuple[str, ...] | None = None
    yardstick: tuple[float, ...] = ()
    waited: float | None = None
    disturbed: bool = False
    levels: Mapping[str, str] = field(default_factory=dict)


# {cell: {seed: run}} of a commit or of a sweep.
Runs = Mapping[Place, Mapping[int, Run]]


@dataclass(frozen=True)
class Sides:
    """What is compared, and what is known of the past.

    Attributes:
        base, head: their runs.
        past: of what was measured before base, oldest first.
        changed: for each neighbouring pair of the past, the last one with base: whether its cost changed, so that its
            difference is no noise.
        exclusions: sentences about what has no counterpart.
        cells: configurations of the common cells at base and at head, where the history has them.
    """

    base: Runs
    head: Runs
    past: tuple[Runs, ...] = ()
    changed: tuple[bool, ...] = ()
    exclusions: tuple[str, ...] = ()
    cells: Mapping[Place, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def common(self) -> list[Place]:
        """Cells of both sides."""
        return sorted(self.base.keys() & self.head.keys())

    def without(self, places: Container[Place]) -> Sides:
        """The same less some cells of base and head."""
        base, head = (
            {place: runs for place, runs in side.items() if place not in places} for side in (self.base, self.head)
        )
        return replace(self, base=base, head=head)


def summarize_record(record: record_types.Record, metrics: Iterable[Metric]) -> Run:
    """Boil a record down."""
    if record.status != "ok":
        return Run(failed=record.error or "it failed")
    result = record.result_or_none
    # Only asv has a result of this cell.
    if result is None:
        return Run(failed="", values=_log_metrics(record, metrics))
    load, samples, batches = result.load or record_parts.Load(), result.samples, result.batches
    wall, waited = load.wall_seconds, load.waited_seconds
    return Run(
        failed="",
        values=_log_metrics(record, metrics),
        scatter={name: metric.scatter for name, metric in record.metrics.items() if metric.scatter is not None},
        answer=result.answer or "",
        numbers=result.numbers or "",
        samples=math.log(samples or math.nan),
        fixed=record.config["budget"].get("seconds") is None,
        timed=(int(batches.count), result.timing.run) if batches else None,
        machine=machine_parts(record.environment),
        yardstick=tuple(load.yardstick or ()),
        waited=waited / wall if wall and waited is not None else None,
        disturbed=bool(record.oversubscribed),
        levels=result.levels or {},
    )


def group_runs(records: Iterable[tuple[Place, record_types.Record]], metrics: Sequence[Metric]) -> Runs:
    """By cell and seed; of several records of one seed the last one counts, and refused cells have none."""
    runs: dict[Place, dict[int, Run]] = {}
    for place, record in records:
        if record.status != "skipped":
            runs.setdefault(place, {})[record.config.get("seed", 0)] = summarize_record(record, metrics)
    return runs


def _log_metrics(record: record_types.Record, metrics: Iterable[Metric]) -> dict[str, float]:
    return {metric.name: value for metric in metrics if (value := _log_metric(record, metric)) is not None}


def _log_metric(record: record_types.Record, metric: Metric) -> float | None:
    """None where it was not measured, came to nothing, or was entered as another version of the metric."""
    versions = record.versions
    if versions is not None and versions.get(metric.name) != metric.version:
        return None
    values = finite_values(record.metric(metric.name))
    # Values below the metric's floor count as the floor: the logarithm of 0 is infinite.
    if values:
        return math.log(max(statistics.median(values), metric.floor))
    return None


def names_of_machine_parts() -> list[str]:
    """Parts of the environment that must be equal for times to be comparable; other libraries' packages are none."""
    packages = (kernels.backend_profile(name).packages for name in kernels.backends_by_preference())
    return ["cpu", "cores", "python", "numpy", *(package for group in packages for package in group)]


def machine_parts(environment: record_parts.Environment) -> tuple[str, ...] | None:
    """The values of `names_of_machine_parts`; None where nothing is known."""
    if environment == record_parts.Environment():
        return None
    parts = {"cpu": environment.cpu, "cores": environment.cores, "python": environment.python, **environment.versions}
    return tuple(str(parts.get(part) or "") for part in names_of_machine_parts())


def most_common_machine(runs: Runs) -> tuple[str, ...] | None:
    """The machine of most runs."""
    count = Counter(run.machine for run in _iterate_runs(runs) if run.machine is not None)
    return max(count, key=count.__getitem__, default=None)


def select_machine(runs: Runs, machine: tuple[str, ...] | None) -> Runs:
    """The runs of one machine, and those of which it is not known."""
    if machine is None:
        return runs
    selected = {
        place: {seed: run for seed, run in cell_runs.items() if run.machine in (machine, None)}
        for place, cell_runs in runs.items()
    }
    return {place: cell_runs for place, cell_runs in selected.items() if cell_runs}


def exclude_slow_runs(runs: Runs) -> Runs:
    """Those next to which the machine had its usual speed."""
    slow = MAX_SLOWDOWN * median_yardstick(runs)
    return {
        place: {seed: run for seed, run in cell_runs.items() if not max(run.yardstick, default=0.0) > slow}
        for place, cell_runs in runs.items()
    }


def median_yardstick(runs: Runs) -> float:
    """The usual seconds of the fixed loop; NaN where they are not known."""
    loop_seconds = [seconds for run in _iterate_runs(runs) for seconds in run.yardstick]
    return float(np.median(loop_seconds or [math.nan]))


def runs_with_metric(cell_runs: Mapping[int, Run], metric: Metric) -> dict[int, Run]:
    """The runs of a cell that gave a metric, by seed."""
    return {seed: run for seed, run in cell_runs.items() if metric.name in run.values}


def is_metric_equal(first: Run, second: Run, metric: Metric) -> bool:
    """Whether a metric is the same in both, but for rounding."""
    return abs(first.values[metric.name] - second.values[metric.name]) <= ROUNDING_ERROR


def stack_blocks(
    metric: Metric, places: Sequence[Place], chain: Sequence[Runs], seeds: Sequence[int] = ()
) -> tuple[FloatArray, FloatArray]:
    """The values of a metric and their scatter, (cells, commits, blocks); NaN where there is none.

    Args:
        metric: which.
        places: the cells.
        chain: their runs, by commit.
        seeds: of the blocks, the same at all commits; empty: a cell's runs at a commit in the order of their seeds.
    """
    width = len(seeds) or max((len(cell_runs) for runs in chain for cell_runs in runs.values()), default=0)
    values = np.full((len(places), len(chain), width), math.nan)
    scatter = np.full(values.shape, math.nan)
    for i, place in enumerate(places):
        for turn, runs in enumerate(chain):
            cell_runs = runs.get(place, {})
            for block, seed in enumerate(seeds or sorted(cell_runs)):
                if seed in cell_runs:
                    values[i, turn, block] = cell_runs[seed].values[metric.name]
                    scatter[i, turn, block] = cell_runs[seed].scatter.get(metric.name, 0.0)
    return values, scatter


def machine_differences(first: Sequence[str], second: Sequence[str]) -> str:
    """In what two machines differ: "numba 0.60.0 and 0.61.0"."""
    pairs = zip(names_of_machine_parts(), first, second, strict=True)
    return ", ".join(f"{part} {a or 'unknown'} and {b or 'unknown'}" for part, a, b in pairs if a != b)


def timing_exclusion_reason(runs: Sequence[Run], metric: Metric) -> str:
    """Why the times of a cell's runs cannot be judged; empty where they can."""
    if not all(run.fixed for run in runs):
        return "their budgets are in seconds, which sets what a sample costs: measure them with experiment=gate"
    timed = [run.timed for run in runs if run.timed is not None and metric.name in run.values]
    if not timed:
        return NO_TIMES
    batches, seconds = (statistics.median(part) for part in zip(*timed, strict=True))
    if batches < MIN_BATCHES or seconds < MIN_RUN_SECONDS:
        return f"they ran for less than {1e3 * MIN_RUN_SECONDS:g} ms or {MIN_BATCHES} batches"
    return ""


def _iterate_runs(runs: Runs) -> Iterable[Run]:
    return (run for cell_runs in runs.values() for run in cell_runs.values())
