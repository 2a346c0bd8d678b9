"""One cell: a configuration to a record, measured in a process of its own and compared with the exact answer."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import os
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.errors import IntractableError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.measuring.records import CELL, METRICS, SCHEMA, Record, axes, cell_key, plain, protocol
from spinbench.measuring.stages import Stages, waited

if TYPE_CHECKING:
    from spinbench.inference.result import Result
    from spinbench.measuring.isolation import Pool
    from spinbench.models import Model

Answer = dict[str, Any]
"""The part of a record that the measuring process gives: status, error, traceback, metrics, result, reference,
environment, stages, oversubscribed."""

TIME_LIMIT = 300.0
"""Seconds that a cell may take beyond its budget unless the configuration says otherwise (`time_limit`)."""

WAITING_SHARE = 0.05
"""Of the seconds of a run: a process that waits longer than that for its core does not have it to itself."""

CACHE_VARIABLES = ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
"""Environment variables with the folders in which compiled code is kept from one process to the next."""


def measure_cell(
    config: Any,
    *,
    git: Mapping[str, Any] | None = None,
    pool: Pool | None = None,
    before: Mapping[str, float] | None = None,
) -> Record:
    """Measure one cell in a child process; whatever happens there comes back as a record.

    Args:
        config: a composed configuration (plain or OmegaConf); see conf/config.yaml.
        git: state of the measured code; None: asked now.
        pool: of warm workers; None: one process for this cell alone.
        before: seconds of the stages that the cell has behind it.
    """
    from spinbench.measuring import environment, isolation

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
    duration = time.perf_counter() - since
    answer["stages"] |= {**(before or {}), "exchange": max(duration - sum(answer["stages"].values()), 0.0)}
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
        "duration": duration,
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
        "stages": {},
        "oversubscribed": None,
    }


def measure_here(cell: Mapping[str, Any], *, warm: bool = False) -> Answer:
    """Measure a cell in this process.

    A refusal (unsupported pair or model, missing dependency, too wide for the exact method) gives the status
    "skipped", any other exception "failed".

    Args:
        cell: the parts `CELL` of a configuration.
        warm: whether this process has measured cells of the same method and backend before.
    """
    from spinbench.measuring import environment

    stages = Stages()
    try:
        answer = _measure(cell, stages, warm=warm)
    except (UnsupportedError, UnavailableError, IntractableError) as refusal:
        answer = {**failure(str(refusal)), "status": "skipped", "metrics": {}}
    except SpinbenchError as error:
        answer = failure(str(error))
    except MemoryError as error:
        answer = failure(f"out of memory: {error}", traceback.format_exc())
    except Exception as error:  # a defect of a method, a backend or a kernel costs its own cell
        text = " ".join(str(error).split())
        answer = failure(f"{type(error).__name__}: {text}", traceback.format_exc())
    with stages("metrics"):
        answer["environment"] = environment.describe()
        cleaned: Answer = plain(answer)
    return {**cleaned, "stages": stages.seconds}


def _measure(cell: Mapping[str, Any], stages: Stages, *, warm: bool) -> Answer:
    from spinbench.measuring import tracked
    from spinbench.models import specs

    with stages("imports"):
        _import_plugins(cell)
    with stages("model"):
        model = specs.build(cell["model"])
    with _compilation(cell["backend"]["name"], warm=warm) as compilation:
        result, busy = _run(model, cell, stages)
    with stages("reference"):
        reference, described = _reference(model)
    with stages("metrics"):
        found, spread = tracked.numbers(result, reference, described)
        summary = tracked.summary(result, reference)
    if compilation["kind"] in ("warm", "cached"):
        del found["compile_seconds"]  # what was compiled earlier was not measured now
    return {
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": found,
        "result": {**summary, "marginal_rmse_se": spread, "compilation": compilation["kind"]},
        "reference": described,
        "oversubscribed": busy,
    }


def _import_plugins(cell: Mapping[str, Any]) -> None:
    """Import what the pair needs before any clock starts; what is wrong with it is said when it is used."""
    from spinbench.inference import registry

    method, backend = cell["method"]["name"], cell["backend"]["name"]
    with contextlib.suppress(SpinbenchError):
        how = registry.support(method, backend)
        if how.runs:
            for module in registry.backend_class(backend).requires:
                importlib.import_module(module)
        if how.tier == "native":
            registry.load("kernels", f"{method}.{backend}")


def _run(model: Model, cell: Mapping[str, Any], stages: Stages) -> tuple[Result, str | None]:
    """The result, and a sentence if the process did not have its core to itself."""
    from spinbench.inference import registry
    from spinbench.inference.budget import Budget
    from spinbench.inference.runner import run

    settings = dict(cell["method"])
    method = registry.make_method(settings.pop("name"), settings)
    place = dict(cell["backend"])
    backend = place.pop("name")
    busy: list[str | None] = []

    def once() -> Result:
        budget = Budget(**cell["budget"])
        before, since = waited(), time.perf_counter()
        try:
            result = run(model, method, backend, budget, chains=cell["chains"], seed=cell["seed"], **place)
        except BaseException:
            stages.add("run", time.perf_counter() - since)
            raise
        took = time.perf_counter() - since
        busy.append(_oversubscribed(before, waited(), took))
        for name, seconds in dataclasses.asdict(result.seconds).items():
            if name != "transfer":  # within the others
                stages.add(name, seconds)
        stages.add("estimate", max(took - result.seconds.total, 0.0))
        return result

    result = once()
    if method.anytime or "loop" not in registry.backend_class(backend).provides:
        return result, busy[-1]
    # Such a method compiles while it runs: what the second run saves is the compilation.
    again = once()
    compiling = max(result.seconds.total - again.seconds.total, 0.0)
    return dataclasses.replace(again, seconds=dataclasses.replace(again.seconds, compile=compiling)), busy[-1]


def _oversubscribed(before: float | None, after: float | None, seconds: float) -> str | None:
    """A sentence if more than a core's worth of threads had to share the core that a run was timed on."""
    from spinbench.measuring import environment

    cores = len(environment.affinity())
    for name in environment.THREAD_VARIABLES:
        value = os.environ.get(name, "1")
        if value.isdigit() and int(value) > cores:
            return f"{name}={value} asked for more threads than the {cores} core{'s' * (cores > 1)} of its process"
    if before is None or after is None or after - before <= WAITING_SHARE * seconds:
        return None
    share = (after - before) / seconds
    return f"its process waited for its core in {share:.0%} of the time, because other threads used it"


def _reference(model: Model) -> tuple[Result | None, dict[str, Any]]:
    """The exact answer, or None with the reason; neither may cost the measurement."""
    from spinbench.inference.runner import exact

    try:
        found = exact(model)
    except SpinbenchError as error:
        return None, {"reason": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return None, {"reason": f"the exact solver failed: {type(error).__name__}: {text}"}
    return found, {"log_z": found.log_z, "method": found.settings.get("solver")}


@contextlib.contextmanager
def _compilation(backend: str, *, warm: bool) -> Iterator[dict[str, str]]:
    """Finds out whether the compile seconds of the cell inside are those of a compilation.

    "kind" becomes "fresh" (something was compiled), "cached" (read from the disk), "warm" (the process had it
    already) or "none" (a backend that does not compile loops).
    """
    from spinbench.inference import registry

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
