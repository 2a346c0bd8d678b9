"""One cell: a configuration to a record, measured in a process of its own and compared with the exact answer."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.errors import IntractableError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.records import CELL, METRICS, SCHEMA, Record, axes, cell_key, plain, protocol

if TYPE_CHECKING:
    from spinbench.isolation import Pool
    from spinbench.models import Model
    from spinbench.result import Result

Answer = dict[str, Any]
"""The part of a record that the measuring process gives: status, error, traceback, metrics, result, reference."""

TIME_LIMIT = 300.0
"""Seconds that a cell may take beyond its budget unless the configuration says otherwise (`time_limit`)."""

CACHE_VARIABLES = ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
"""Environment variables with the folders in which compiled code is kept from one process to the next."""


def measure_cell(config: Any, *, git: Mapping[str, Any] | None = None, pool: Pool | None = None) -> Record:
    """Measure one cell in a child process; whatever happens there comes back as a record.

    Args:
        config: a composed configuration (plain or OmegaConf); see conf/config.yaml.
        git: state of the measured code; None: asked now.
        pool: of warm workers; None: one process for this cell alone.
    """
    from spinbench import environment, isolation

    whole = _plain_config(config)
    cell = cell_of(whole)
    state = environment.git_state(environment.root()) if git is None else dict(git)
    limit = float(whole.get("time_limit") or TIME_LIMIT) + float(cell["budget"].get("seconds") or 0.0)
    started, since = int(time.time()), time.perf_counter()
    if pool is None:
        with contextlib.closing(isolation.Pool()) as single:
            answer = single.measure(cell, limit)
    else:
        answer = pool.measure(cell, limit)
    return {
        "schema": SCHEMA,
        "id": uuid.uuid4().hex,
        "key": cell_key(cell, state),
        "family": str(whole.get("family", "inference")),
        "axes": axes(cell),
        "config": cell,
        "protocol": protocol(cell),
        "git": state,
        **answer,
        "environment": answer["environment"] or environment.describe(),
        "started_at": started,
        "duration": time.perf_counter() - since,
    }


def cell_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a plain configuration that say what is measured, as a record holds them."""
    return {name: _finite(config[name]) for name in CELL}


def failure(sentence: str, details: str | None = None) -> Answer:
    """The answer of a cell that gave no result."""
    return {
        "status": "failed",
        "error": sentence,
        "traceback": details,
        "metrics": {name: {"failed": sentence} for name in METRICS},
        "result": None,
        "reference": None,
        "environment": {},
    }


def measure_here(cell: Mapping[str, Any], *, warm: bool = False) -> Answer:
    """Measure a cell in this process.

    A refusal (unsupported pair or model, missing dependency, too wide for the exact method) gives the status
    "skipped", any other exception "failed".

    Args:
        cell: the parts `CELL` of a configuration.
        warm: whether this process has measured cells of the same method and backend before.
    """
    from spinbench import environment

    try:
        answer = _measure(cell, warm=warm)
    except (UnsupportedError, UnavailableError, IntractableError) as refusal:
        answer = {**failure(str(refusal)), "status": "skipped", "metrics": {}}
    except SpinbenchError as error:
        answer = failure(str(error))
    except MemoryError as error:
        answer = failure(f"out of memory: {error}", traceback.format_exc())
    except Exception as error:  # a defect of a method, a backend or a kernel costs its own cell
        text = " ".join(str(error).split())
        answer = failure(f"{type(error).__name__}: {text}", traceback.format_exc())
    answer["environment"] = environment.describe()
    cleaned: Answer = plain(answer)
    return cleaned


def _measure(cell: Mapping[str, Any], *, warm: bool) -> Answer:
    from spinbench.models import specs

    model = specs.build(cell["model"])
    with _compilation(cell["backend"]["name"], warm=warm) as compilation:
        result = _run(model, cell)
    reference, described = _reference(model)
    tracked, spread = _metrics(result, reference, described)
    if compilation["kind"] in ("warm", "cached"):
        del tracked["compile_seconds"]  # what was compiled earlier was not measured now
    return {
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": tracked,
        "result": {**_summary(result, reference), "marginal_rmse_se": spread, "compilation": compilation["kind"]},
        "reference": described,
    }


def _run(model: Model, cell: Mapping[str, Any]) -> Result:
    from spinbench import registry
    from spinbench.budget import Budget
    from spinbench.runner import run

    settings = dict(cell["method"])
    method = registry.make_method(settings.pop("name"), settings)
    place = dict(cell["backend"])
    backend = place.pop("name")

    def once() -> Result:
        budget = Budget(**cell["budget"])
        return run(model, method, backend, budget, chains=cell["chains"], seed=cell["seed"], **place)

    result = once()
    if method.anytime or "loop" not in registry.backend_class(backend).provides:
        return result
    # Such a method compiles while it runs: what the second run saves is the compilation.
    again = once()
    compiling = max(result.seconds.total - again.seconds.total, 0.0)
    return dataclasses.replace(again, seconds=dataclasses.replace(again.seconds, compile=compiling))


def _reference(model: Model) -> tuple[Result | None, dict[str, Any]]:
    """The exact answer, or None with the reason; neither may cost the measurement."""
    from spinbench.runner import exact

    try:
        found = exact(model)
    except SpinbenchError as error:
        return None, {"reason": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return None, {"reason": f"the exact solver failed: {type(error).__name__}: {text}"}
    return found, {"log_z": found.log_z, "method": found.settings.get("solver")}


def _metrics(
    result: Result, reference: Result | None, described: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], float | None]:
    """The tracked numbers, and the standard error of the marginals' RMSE."""
    import numpy as np

    from spinbench import metrics

    rmse, spread = _rmse_of(result, reference)
    log_z_error = None
    if reference is not None and result.log_z is not None and reference.log_z is not None:
        log_z_error = abs(result.log_z - reference.log_z)
    sampling_time = None
    if result.ess is not None and np.isfinite(result.ess).any():
        sampling_time = result.seconds.run / float(np.nanmedian(result.ess))
    points = [(point.seconds, _rmse_of(point.estimate, reference)[0]) for point in result.trajectory]
    known = [(seconds, error) for seconds, error in points if error is not None]
    target = metrics.TARGET_RMSE
    missing = described.get("reason")
    none = f"{result.method} gives no"
    return {
        "marginal_rmse": _metric(rmse, spread, missing or f"{none} marginals"),
        "log_z_error": _metric(log_z_error, result.log_z_se, missing or f"{none} log Z"),
        "run_seconds": _metric(result.seconds.run, None, ""),
        "compile_seconds": _metric(result.seconds.compile, None, ""),
        "seconds_per_ess": _metric(sampling_time, None, f"{none} effective sample size"),
        "time_to_error": _metric(
            metrics.time_to_error(known),
            None,
            missing or (f"an RMSE of {target:g} was not reached" if known else f"{none} marginals"),
        ),
    }, spread


def _metric(value: float | None, spread: float | None, missing: str) -> dict[str, Any]:
    if value is None:
        return {"failed": missing}
    if not math.isfinite(value):
        return {"failed": f"it came out as {value}"}
    known = spread is not None and math.isfinite(spread)
    return {"value": float(value), "standard_error": float(spread or 0.0)} if known else {"value": float(value)}


def _rmse_of(estimate: Any, reference: Result | None) -> tuple[float | None, float | None]:
    """RMSE of the marginals and its standard error, sqrt(Σ d²se²) / (N RMSE) by the delta method.

    The errors of different variables are taken to be independent, which makes the standard error too small where
    they move together.
    """
    import numpy as np

    if reference is None or estimate.marginals is None:
        return None, None
    difference = _flat(estimate.marginals) - _flat(reference.marginals)
    rmse = float(np.sqrt(np.mean(difference**2)))
    if estimate.marginals_se is None or not rmse > 0:
        return rmse, None
    errors = _flat(estimate.marginals_se)
    return rmse, float(np.sqrt(np.sum((difference * errors) ** 2)) / (difference.size * rmse))


def _flat(marginals: Any) -> Any:
    import numpy as np

    return np.concatenate([np.ravel(np.asarray(entry, dtype=np.float64)) for entry in marginals])


def _summary(result: Result, reference: Result | None) -> dict[str, Any]:
    import numpy as np

    def statistic(function: Any, values: Any) -> float | None:
        return None if values is None or not np.isfinite(values).any() else float(function(values))

    exact_log_z = None if reference is None else reference.log_z
    return {
        "tier": result.tier,
        "status": result.status,
        "samples": result.samples,
        "chains": result.chains,
        "burn_in": result.burn_in,
        "log_z": result.log_z,
        "log_z_se": result.log_z_se,
        "log_z_kind": result.log_z_kind,
        "log_z_estimates": result.log_z_estimates,
        "ess_min": statistic(np.nanmin, result.ess),
        "ess_median": statistic(np.nanmedian, result.ess),
        "r_hat_max": statistic(np.nanmax, result.r_hat),
        "seconds": {**dataclasses.asdict(result.seconds), "total": result.seconds.total},
        "diagnostics": result.diagnostics,
        "trajectory": [
            {
                "seconds": point.seconds,
                "samples": point.samples,
                "marginal_rmse": _rmse_of(point.estimate, reference)[0],
                "log_z": point.estimate.log_z,
                "log_z_error": None
                if point.estimate.log_z is None or exact_log_z is None
                else abs(point.estimate.log_z - exact_log_z),
            }
            for point in result.trajectory
        ],
    }


@contextlib.contextmanager
def _compilation(backend: str, *, warm: bool) -> Iterator[dict[str, str]]:
    """Finds out whether the compile seconds of the cell inside are those of a compilation.

    "kind" becomes "fresh" (something was compiled), "cached" (read from the disk), "warm" (the process had it
    already) or "none" (a backend that does not compile loops).
    """
    from spinbench import registry

    found = {"kind": "none"}
    before = _cached_files()
    yield found
    if _cached_files() > before:
        found["kind"] = "fresh"
    elif "loop" in registry.backend_class(backend).provides:
        found["kind"] = "warm" if warm else "cached" if before else "fresh"


def _cached_files() -> int:
    folders = (Path(os.environ[name]) for name in CACHE_VARIABLES if name in os.environ)
    return sum(len(files) for folder in folders for _, _, files in os.walk(folder))


def _plain_config(config: Any) -> dict[str, Any]:
    if isinstance(config, dict):
        return config
    from omegaconf import OmegaConf

    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return whole


def _finite(setting: Any) -> Any:
    """Numbers that JSON has not, as texts: a method that has no use for them says so."""
    if isinstance(setting, dict):
        return {key: _finite(value) for key, value in setting.items()}
    if isinstance(setting, list):
        return [_finite(value) for value in setting]
    return str(setting) if isinstance(setting, float) and not math.isfinite(setting) else setting
