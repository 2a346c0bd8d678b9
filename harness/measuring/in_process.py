"""One cell measured in this process and compared with the exact answer: what a worker does."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from spinbench.errors import IntractableError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result, replace_pairs
from spinbench.inference.runner import exact, run
from spinbench.measuring import compilation, environment, result_metrics
from spinbench.measuring.answer import Answer, failure
from spinbench.measuring.load import Load, Memory
from spinbench.measuring.records import plain
from spinbench.measuring.stages import Stages
from spinbench.metrics import MIXING
from spinbench.metrics import registry as metrics
from spinbench.models import Model, specs
from spinbench.reference import pairs as joint_tables

PAIRS_BYTES = 2**28
"""Memory for exact pairs, which are not kept: more would take seconds in each cell."""
WAITING_SHARE = 0.05
"""Of the seconds of a run: a process that waits longer than that for its core does not have it to itself."""


def measure_here(cell: Mapping[str, Any], *, warm: bool = False) -> Answer:
    """Measure a cell in this process.

    A refusal (unsupported pair or model, missing dependency, too wide for the exact method) gives the status
    "skipped", any other exception "failed".

    Args:
        cell: the parts `CELL` of a configuration, and perhaps seconds for "mixing".
        warm: whether this process has measured cells of the same method and backend before.
    """
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
        text = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
        answer = failure(f"{type(error).__name__}: {text}", traceback.format_exc())
    with stages("metrics"):
        answer["environment"] = environment.describe()
        cleaned: Answer = plain(answer)
    return {**cleaned, "stages": stages.seconds}


def _lock(result: Result | None) -> None:
    """Nobody may write into its arrays from now on: other metrics see them, too."""
    for part in () if result is None else vars(result).values():
        for array in part if isinstance(part, list | tuple) else (part,):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)


def _measure(cell: Mapping[str, Any], stages: Stages, *, warm: bool) -> Answer:
    with stages("imports"):
        _import_plugins(cell)
    with stages("model"):
        model = specs.build(cell["model"])
    with compilation.watched(cell["backend"]["name"], warm=warm) as compiled:
        result, load, memory = _run(model, cell, stages)
    with stages("reference"):
        reference, described = _reference(model, pairs=result.pairs is not None)
    with stages("metrics"):
        found, spread = result_metrics.numbers(result, reference, described)
        summary = result_metrics.summary(result, reference)
        for each in (result, reference):
            _lock(each)
        found = metrics.measured(model, result, reference) | found
    if (seconds := cell.get(MIXING)) is not None:
        from spinbench.measuring import mixing_metric  # which most cells do not need

        with stages("mixing"):
            found |= mixing_metric.entry(model, cell, seconds)
    if compiled["kind"] != "none" and not (compiled["kind"] == "fresh" and compilation.own_cache()):
        del found["compile_seconds"]  # compiled earlier, or perhaps by another process
    return {
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": found,
        "result": {
            **summary,
            "marginal_rmse_se": spread,
            "compilation": compiled["kind"],
            "load": dataclasses.asdict(load),
            "memory": dataclasses.asdict(memory),
        },
        "reference": described,
        "oversubscribed": _oversubscribed(load),
    }


def _import_plugins(cell: Mapping[str, Any]) -> None:
    """Import what the pair needs before any clock starts; what is wrong with it is said when it is used."""
    method, backend = cell["method"]["name"], cell["backend"]["name"]
    with contextlib.suppress(SpinbenchError):
        wish = kernels.Wish(cell["backend"].get("tier"), cell["backend"].get("kernel"))
        if registry.support(method, backend, wish).runs:
            made = registry.backend_class(backend)
            for module in made.requires:
                importlib.import_module(module)
            # a backend says where machine code is kept, and kernels keep to what they found when they were imported
            made(**{name: cell["backend"][name] for name in ("precision", "device") if name in cell["backend"]})
            for point in kernels.asked(method, backend, wish)[:1]:
                kernels.load(point)


def _run(model: Model, cell: Mapping[str, Any], stages: Stages) -> tuple[Result, Load, Memory]:
    """The result, how busy the machine was meanwhile, and how much memory the process held."""
    settings = dict(cell["method"])
    method = registry.make_method(settings.pop("name"), settings)
    place = dict(cell["backend"])
    backend, budget = place.pop("name"), Budget(**cell["budget"])
    load, memory = Load(), Memory()
    try:
        with memory, load:
            result = run(model, method, backend, budget, chains=cell["chains"], seed=cell["seed"], **place)
    except BaseException:
        stages.add("run", load.wall_seconds)
        raise
    for name, seconds in dataclasses.asdict(result.seconds).items():
        if name != "transfer":  # within the others
            stages.add(name, seconds)
    stages.add("estimate", max(load.wall_seconds - result.seconds.total, 0.0))
    return result, load, memory


def _oversubscribed(load: Load) -> str | None:
    """A sentence if more than a core's worth of threads had to share the core that a run was timed on."""
    cores = len(environment.affinity())
    for name in environment.THREAD_VARIABLES:
        value = os.environ.get(name, "1")
        if value.isdigit() and int(value) > cores:
            return f"{name}={value} asked for more threads than the {cores} core{'s' * (cores > 1)} of its process"
    if load.waited_seconds is None or load.waited_seconds <= WAITING_SHARE * load.wall_seconds:
        return None
    share = load.waited_seconds / load.wall_seconds
    return f"its process waited for its core in {share:.0%} of the time, because other threads used it"


def _reference(model: Model, *, pairs: bool) -> tuple[Result | None, dict[str, Any]]:
    """The exact answer, or None with the reason; neither may cost the measurement."""
    try:
        found = exact(model)
    except SpinbenchError as error:
        return None, {"reason": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return None, {"reason": f"the exact solver failed: {type(error).__name__}: {text}"}
    if pairs:
        with contextlib.suppress(SpinbenchError):  # what takes them for out of reach says so
            found = replace_pairs(found, joint_tables(model, max_bytes=PAIRS_BYTES))
    return found, {"log_z": found.log_z, "method": found.settings.get("solver")}
