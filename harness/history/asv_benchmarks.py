"""asv benchmarks generated from conf/axes: `asv run` measures the same cells as a sweep, in the same way.

asv starts a process for each metric of each cell. All metrics of a cell come from one measurement: the first
process stores it in a folder that lives as long as the asv command, the others read it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spinbench.foundation.atomic import write_json
from spinbench.history.axes import Cell, Family, Metric, composer, family
from spinbench.history.journal import numbers, rounded

MACHINE_VARIABLE = "SPINBENCH_MACHINE"
"""Environment variable with this machine's name in the history; by default asv's name, the host's."""
SHARED_VARIABLE = "SPINBENCH_ASV_RUN"
"""Environment variable with the folder in which the processes of one asv command share measurements."""

Track = Callable[..., Any]


class CellFailedError(RuntimeError):
    """A cell could not be measured; asv records it as failed and shows the message."""


def tracked(name: str) -> dict[str, Track]:
    """The benchmark functions of a family, by name, for a module of the suite."""
    found = family(name)
    return {f"track_{metric.name}": _track(found, metric) for metric in found.metrics}


def value_for_asv(record: Mapping[str, Any], metric: str) -> Any:
    """What a benchmark returns: a number, or samples of which asv takes the median.

    Raises:
        SkipNotImplemented: the cell was refused, or ran without giving this metric; asv stores "not run".
        CellFailedError: the cell failed.
    """
    from asv_runner.benchmarks.mark import SkipNotImplemented

    if record["status"] == "failed":
        raise CellFailedError(record["error"])
    measured = record["metrics"].get(metric, {"failed": record["error"] or f"this run gave no {metric}"})
    values = [rounded(value) for value in numbers(measured)]
    if not values:
        raise SkipNotImplemented(measured.get("failed", f"{metric} is not finite"))
    return {"samples": values, "number": 1} if len(values) > 1 else values[0]


def _track(found: Family, metric: Metric) -> Track:
    def track(*values: str) -> Any:
        return value_for_asv(_measured(found, values), metric.name)

    track.__name__ = track.__qualname__ = f"track_{metric.name}"
    # asv reads these attributes. The default version would be a hash of this source code.
    attributes = {
        "params": [list(axis.values) for axis in found.axes],
        "param_names": [axis.name for axis in found.axes],
        "pretty_name": metric.title,
        "pretty_source": f"{metric.title}, in {metric.unit}; lower is better",
        "unit": metric.unit,
        "version": metric.version,
        "timeout": found.timeout,
    }
    for key, value in attributes.items():
        setattr(track, key, value)
    return track


def _measured(found: Family, cell: Cell) -> dict[str, Any]:
    folder = os.environ.get(SHARED_VARIABLE)
    if folder is None:
        return _measure(found, cell)
    name = hashlib.sha256(json.dumps([found.name, *cell]).encode()).hexdigest()
    path = Path(folder) / f"{name}.json"
    if not path.exists():
        write_json(path, _measure(found, cell))
    shared: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return shared


def _measure(found: Family, cell: Cell) -> dict[str, Any]:
    from spinbench.measuring.measure import measure_cell

    with composer() as compose:
        config = compose(found.overrides(cell))
    return measure_cell(config)
