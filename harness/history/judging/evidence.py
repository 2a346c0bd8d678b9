"""What a record says to the gate: its numbers as logarithms, whether its times can be compared, on which machine."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spinbench.history.axes import Metric
from spinbench.history.journal import Record, numbers

FEWEST_BATCHES = 16
SHORTEST_RUN = 1e-3
"""Seconds: of shorter runs, and of those with fewer batches, the times of a step are shown, not judged."""
PARTS = ("cpu", "cores", "python", "numpy", "numba", "llvmlite", "jax")
"""What must be equal for times to be compared."""

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
        machine: values of `PARTS`; None where the process died before it could tell.
        yardstick: seconds of a fixed loop before and after the run; empty where that was not measured.
        waited: share of the run for which others had the processor; None where that is not known.
        disturbed: whether the measuring process was oversubscribed.
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

    def value(self, metric: str) -> float:
        """The logarithm of a metric; NaN where there is none."""
        return self.values.get(metric, math.nan)


Runs = Mapping[Place, Mapping[int, Run]]
"""A commit's runs, or a sweep's, by cell and seed."""


@dataclass(frozen=True)
class Sides:
    """What is compared, and what is known of the past.

    Attributes:
        base, head: their runs.
        past: of what was measured before base, oldest first.
        changed: for each neighbouring pair of the past, the last one with base: whether its cost changed, so that its
            difference is no noise.
    """

    base: Runs
    head: Runs
    past: tuple[Runs, ...] = ()
    changed: tuple[bool, ...] = ()

    @property
    def common(self) -> list[Place]:
        """Cells of both sides."""
        return sorted(self.base.keys() & self.head.keys())


def run(record: Record, metrics: Iterable[Metric]) -> Run:
    """Boil a record down."""
    if record["status"] != "ok":
        return Run(failed=record.get("error") or "it failed")
    result = record.get("result") or {}
    budget = (record.get("config") or {}).get("budget") or {}
    laps, load = result.get("laps"), result.get("load") or {}
    samples, wall, waited = result.get("samples"), load.get("wall_seconds"), load.get("waited_seconds")
    return Run(
        failed="",
        values={metric.name: value for metric in metrics if (value := _value(record, metric)) is not None},
        scatter={name: float(one["scatter"]) for name, one in record["metrics"].items() if "scatter" in one},
        answer=result.get("answer") or "",
        numbers=result.get("numbers") or "",
        samples=math.log(samples) if samples else math.nan,
        fixed=budget.get("seconds") is None,
        timed=(laps["count"], result["seconds"]["run"]) if laps else None,
        machine=machine(record.get("environment") or {}),
        yardstick=tuple(load.get("yardstick") or ()),
        waited=waited / wall if wall and waited is not None else None,
        disturbed=bool(record.get("oversubscribed")),
    )


def runs(records: Iterable[tuple[Place, Record]], metrics: Sequence[Metric]) -> Runs:
    """By cell and seed; of several records of one seed the last one counts, and refused cells have none."""
    found: dict[Place, dict[int, Run]] = {}
    for place, record in records:
        if record["status"] != "skipped":
            found.setdefault(place, {})[(record.get("config") or {}).get("seed", 0)] = run(record, metrics)
    return found


def _value(record: Record, metric: Metric) -> float | None:
    """None where it was not measured, came to nothing, or was entered as another version of the metric."""
    versions = record.get("versions")
    if versions is not None and versions.get(metric.name) != metric.version:
        return None
    found = numbers(record["metrics"].get(metric.name, {}))
    return math.log(max(statistics.median(found), metric.floor)) if found else None


def machine(environment: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The values of `PARTS`; None where nothing is known."""
    if not environment:
        return None
    known = {**environment, **environment.get("versions", {})}
    return tuple(str(known.get(part, "")) for part in PARTS)


def usual_machine(runs: Runs) -> tuple[str, ...] | None:
    """The machine of most runs."""
    count = Counter(one.machine for seeds in runs.values() for one in seeds.values() if one.machine is not None)
    return count.most_common(1)[0][0] if count else None


def on_machine(runs: Runs, wanted: tuple[str, ...] | None) -> Runs:
    """The runs of one machine, and those of which it is not known."""
    if wanted is None:
        return runs
    kept = {
        place: {seed: one for seed, one in seeds.items() if one.machine in (wanted, None)}
        for place, seeds in runs.items()
    }
    return {place: seeds for place, seeds in kept.items() if seeds}


def differing(one: Sequence[str], other: Sequence[str]) -> str:
    """In what two machines differ: "numba 0.60.0 and 0.61.0"."""
    pairs = zip(PARTS, one, other, strict=True)
    return ", ".join(f"{part} {a or 'unknown'} and {b or 'unknown'}" for part, a, b in pairs if a != b)


def unfit(runs: Sequence[Run], metric: Metric) -> str:
    """Why the times of a cell's runs cannot be judged; empty where they can."""
    if not all(one.fixed for one in runs):
        return "their budgets are in seconds, which sets what a sample costs: measure them with experiment=gate"
    timed = [one.timed for one in runs if one.timed is not None and metric.name in one.values]
    if not timed:
        return NO_TIMES
    batches, seconds = (statistics.median(part) for part in zip(*timed, strict=True))
    if batches < FEWEST_BATCHES or seconds < SHORTEST_RUN:
        return f"they ran for less than {1e3 * SHORTEST_RUN:g} ms or {FEWEST_BATCHES} batches"
    return ""
