"""asv benchmarks of the cells of conf/axes: `asv run` measures the same cells as a sweep, in the same way.

This file is that of the checkout in which asv is started, and runs in the builds of past commits, which may have other
cells or none: asv's plugin says which there are, and of a build no more is asked than is imported here.

asv starts a process for each metric of each cell. All metrics of a cell come from one measurement: the first process
stores it in a folder that lives as long as the asv command, the others read it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf import OmegaConf

from spinbench.errors import SpinbenchError
from spinbench.foundation.atomic import write_json
from spinbench.history import axes, journal
from spinbench.inference import registry
from spinbench.measuring import measure

# Environment variable with the folder in which the processes of one asv command share their measurements.
SHARED_VARIABLE = "SPINBENCH_ASV_RUN"
# Environment variable with a JSON file of the families (`axes.Family`) of the process that runs asv. `settings_of` in
# the file has the configurations of cells whose series has begun.
FAMILIES_VARIABLE = "SPINBENCH_ASV_FAMILIES"

Track = Callable[..., object]
# The fields of `axes.Family`, plus `settings_of`.
Family = Mapping[str, Any]


class CellFailedError(RuntimeError):
    """A cell could not be measured; asv records it as failed and shows the message."""


def benchmark_functions(name: str) -> dict[str, Track]:
    """The benchmark functions of a family, by name, for a module of the suite."""
    path = os.environ.get(FAMILIES_VARIABLE)
    family = dataclasses.asdict(axes.family(name)) if path is None else json.loads(Path(path).read_text())[name]
    return {f"track_{metric['name']}": _benchmark_function(family, metric) for metric in family["metrics"]}


def value_for_asv(record: Mapping[str, Any], metric: str) -> Any:
    """What a benchmark returns: a number, or samples of which asv takes the median.

    Raises:
        SkipNotImplemented: the cell was refused, or ran without giving this metric; asv stores "not run", and shows the
            reason with --show-stderr.
        CellFailedError: the cell failed.
    """
    from asv_runner.benchmarks.mark import SkipNotImplemented

    if record["status"] == "failed":
        raise CellFailedError(record["error"])
    measured = record["metrics"].get(metric, {"failed": record["error"] or f"this run gave no {metric}"})
    values = [journal.rounded(value) for value in _numbers(measured)]
    if not values:
        reason = measured.get("failed", f"{metric} is not finite")
        # asv does not print the reason of the exception.
        print(reason)
        raise SkipNotImplemented(reason)
    return {"samples": values, "number": 1} if len(values) > 1 else values[0]


def _numbers(measured: Mapping[str, Any]) -> list[float]:
    """As `journal.finite_values`, of a plain dictionary: the build of a past commit has no other records."""
    values: list[float] = measured.get("samples", [measured["value"]] if "value" in measured else [])
    if measured.get("better") == "higher":
        values = [1 / value if value else math.inf for value in values]
    return values if all(map(math.isfinite, values)) else []


def _benchmark_function(family: Family, metric: Mapping[str, Any]) -> Track:
    def track(*values: str) -> object:
        return value_for_asv(_read_or_measure(family, values), metric["name"])

    track.__name__ = track.__qualname__ = f"track_{metric['name']}"
    # Attributes that asv reads. By default asv would use a hash of this source code as version.
    attributes = {
        "params": [list(axis["values"]) for axis in family["axes"]],
        "param_names": [axis["name"] for axis in family["axes"]],
        "pretty_name": metric["title"],
        "pretty_source": f"{metric['title']}, in {metric['unit']}; lower is better",
        "unit": metric["unit"],
        "version": metric["version"],
        "timeout": family["timeout"],
    }
    for key, value in attributes.items():
        setattr(track, key, value)
    return track


def _read_or_measure(family: Family, cell: Sequence[str]) -> dict[str, Any]:
    folder = os.environ.get(SHARED_VARIABLE)
    if folder is None:
        return _measure_cell(family, cell)
    name = hashlib.sha256(json.dumps([family["name"], *cell]).encode()).hexdigest()
    path = Path(folder) / f"{name}.json"
    if not path.exists():
        write_json(path, _measure_cell(family, cell))
    shared: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return shared


def _measure_cell(family: Family, cell: Sequence[str]) -> dict[str, object]:
    """A record, or the start of one where the build knows no such cell, has other defaults for it than those that its
    series holds, or says at once that the pair does not run."""
    chosen = (
        axis["select"].get(value, [f"{axis['group']}={value}"])
        for axis, value in zip(family["axes"], cell, strict=True)
    )
    try:
        with axes.composer() as compose:
            config = compose([*family["settings"], *itertools.chain.from_iterable(chosen)])
        support = registry.support(config.method.name, config.backend.name)
    except (HydraException, SpinbenchError) as error:
        return _skipped_record(" ".join(str(error).split()))
    config_dict: Any = OmegaConf.to_container(config, resolve=True)
    series_configs = [configs for series_cell, configs in family.get("settings_of", ()) if series_cell == list(cell)]
    for series_config in itertools.chain.from_iterable(series_configs):
        if changed := ", ".join(_setting_differences(series_config, config_dict)):
            return _skipped_record(f"its settings are another version than those of the series: {changed}; sweep it")
    if not support.runs:
        return _skipped_record(support.reason)
    axes_by_name = dict(zip((axis["name"] for axis in family["axes"]), cell, strict=True))
    return {**measure.measure_cell(config_dict), "family": family["name"], "axes": axes_by_name}


def _setting_differences(series_config: object, config: object, path: str = "") -> Iterator[str]:
    """Where two configurations say different things, as "method.damping=0.5 (the series has 0.0)"."""
    if isinstance(series_config, Mapping) and isinstance(config, Mapping):
        for key in sorted((series_config.keys() & config.keys()) - _FILES):
            yield from _setting_differences(series_config[key], config[key], f"{path}.{key}".removeprefix("."))
    elif series_config != config:
        yield f"{path}={json.dumps(config)} (the series has {json.dumps(series_config)})"


# Settings that are file names; a series stores hashes of the files.
_FILES = frozenset({"path", "evidence", "corpus"})


def _skipped_record(reason: str) -> dict[str, object]:
    return {"status": "skipped", "error": reason, "metrics": {}}
