"""One cell: a configuration to a record, measured in a process of its own and compared with the exact answer."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Mapping
from typing import Any

from spinbench.measuring import environment, isolation, provenance
from spinbench.measuring.cells import protocol_digest
from spinbench.measuring.process_state import failure_answer
from spinbench.measuring.records import (
    CELL,
    SCHEMA,
    WISHES,
    Content,
    axis_labels,
    cell_key,
    file_hashes,
)
from spinbench.metrics import MIXING

# Seconds that a cell may take beyond its budget by default (`time_limit`).
TIME_LIMIT = 300.0


def measure_cell(
    config: Mapping[str, Any],
    *,
    git: Mapping[str, Any] | None = None,
    plugins: Mapping[str, Any] | None = None,
    pool: isolation.WorkerPool | None = None,
    before: Mapping[str, float] | None = None,
) -> Content:
    """Measure one cell in a child process; whatever happens there comes back as a record.

    Args:
        config: a composed configuration, as plain data; see conf/config.yaml.
        git: state of the measured code; None: asked now.
        plugins: where those of other distributions come from; None: asked now.
        pool: of warm workers; None: one process for this cell alone.
        before: seconds of the stages that the cell has behind it.
    """
    cell = extract_cell(config)
    state = dict(git or environment.code_state())
    limit = float(config.get("time_limit") or TIME_LIMIT) + float(cell["budget"].get("seconds") or 0.0)
    if plugins is None:
        plugins = provenance.foreign_plugins(cell)
    files = file_hashes(cell["model"])
    started, since = int(time.time()), time.perf_counter()
    own_cache = bool(config.get("own_cache"))
    request = cell
    if (seconds := config.get(MIXING)) is not None:
        request, limit = {**cell, MIXING: float(seconds)}, limit + float(seconds)
    if pool is None:
        with contextlib.closing(isolation.WorkerPool()) as single:
            answer = single.measure(request, limit, own_cache=own_cache)
    else:
        answer = pool.measure(request, limit, own_cache=own_cache)
    duration = time.perf_counter() - since
    if file_hashes(cell["model"]) != files:
        answer = failure_answer("a file of the model changed while it was measured; measure again")
    answer["stages"] |= {**(before or {}), "exchange": max(duration - sum(answer["stages"].values()), 0.0)}
    return {
        **record_header(cell, state, dict(plugins), files),
        "family": str(config.get("family", "inference")),
        "class": config.get("class"),
        **answer,
        "environment": answer["environment"] or environment.describe(),
        "started_at": started,
        "duration": duration,
    }


def record_header(
    cell: Mapping[str, Any], git: Mapping[str, Any], plugins: Mapping[str, Any], files: Mapping[str, str | None]
) -> Content:
    """What a new record says of what was measured, and with which code.

    Args:
        cell: the parts `CELL` of a configuration.
        git, plugins: states of the code.
        files: hashes of the model's.
    """
    return {
        "schema": SCHEMA,
        "id": uuid.uuid4().hex,
        "key": cell_key(cell, git, plugins),
        "axes": axis_labels(cell),
        "config": cell,
        "files": files,
        "protocol": protocol_digest(cell),
        "git": git,
        "plugins": plugins,
    }


def extract_cell(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a plain configuration that say what is measured, as a record holds them."""
    cell = {name: _replace_non_finite(config[name]) for name in CELL}
    cell["backend"] = {key: value for key, value in cell["backend"].items() if value is not None or key not in WISHES}
    cell["budget"] = {key: value for key, value in cell["budget"].items() if value or key != "cpu"}  # as of 0.1.0
    return cell


def _replace_non_finite(setting: Any) -> Any:
    """Numbers that JSON has not, as texts: a method that has no use for them says so."""
    if isinstance(setting, dict):
        return {key: _replace_non_finite(value) for key, value in setting.items()}
    if isinstance(setting, list):
        return [_replace_non_finite(value) for value in setting]
    if isinstance(setting, float) and not math.isfinite(setting):
        return str(setting)
    return setting
