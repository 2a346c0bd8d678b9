"""One cell measured in this process and compared with the exact answer: what a worker does."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import traceback
from collections.abc import Mapping
from typing import Any

from spinbench.errors import IntractableError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.foundation import plugins
from spinbench.inference import kernels, registry
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result, replace_pairs
from spinbench.inference.runner import exact, run
from spinbench.measuring import environment, model_features, process_state, records, result_metrics
from spinbench.measuring.process_state import Answer, failure_answer
from spinbench.measuring.stages import Load, Memory, Stages
from spinbench.metrics import MIXING
from spinbench.metrics import registry as metrics
from spinbench.models import Model, specs
from spinbench.reference import pairs as joint_tables

# Largest memory for exact pair probabilities, which are not stored: larger ones would take seconds in each cell.
PAIRS_BYTES = 2**28
# Total variation distance up to which the metric "mixing" counts sweeps.
MIXING_TV = 0.01
MIXING_TITLE = f"sweeps to TV < {MIXING_TV:g}"


def measure_here(cell: Mapping[str, object], *, warm: bool = False) -> Answer:
    """Measure a cell in this process.

    A refusal (unsupported pair or model, missing dependency, too wide for the exact method) gives the status
    "skipped", any other exception "failed".

    Args:
        cell: the parts `CELL` of a configuration, and perhaps seconds for "mixing".
        warm: whether this process has measured cells of the same method and backend before.
    """
    stages = Stages()
    try:
        answer = _measure_stages(cell, stages, warm=warm)
    except (UnsupportedError, UnavailableError, IntractableError) as refusal:
        answer = {**failure_answer(str(refusal)), "status": "skipped", "metrics": {}}
    except SpinbenchError as error:
        answer = failure_answer(str(error))
    except MemoryError as error:
        answer = failure_answer(f"out of memory: {error}", traceback.format_exc())
    except Exception as error:
        # A bug in a method, a backend or a kernel fails only its own cell.
        text = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
        answer = failure_answer(f"{type(error).__name__}: {text}", traceback.format_exc())
    with stages("metrics"):
        answer["environment"] = environment.describe()
        cleaned: Answer = records.plain(answer)
    return {**cleaned, "stages": stages.seconds}


def _measure_stages(cell: Mapping[str, Any], stages: Stages, *, warm: bool) -> Answer:
    with stages("imports"):
        _import_method_and_backend(cell)
    with stages("model"):
        model = specs.build(cell["model"])
    with process_state.detect_compilation(cell["backend"]["name"], warm=warm) as compilation_info:
        result, load, memory = _run_method(model, cell, stages)
    with stages("reference"):
        reference, reference_entry = _compute_reference(model, pairs=result.pairs is not None)
    with stages("metrics"):
        metric_entries, spread = result_metrics.result_metrics(result, reference, reference_entry)
        summary = result_metrics.summarize_result(result, reference)
        features = model_features.describe_model(model, reference)
        for each in filter(None, (result, reference)):
            result_metrics.make_arrays_read_only(each)
        metric_entries = metrics.measure_all(model, result, reference) | metric_entries
    if (seconds := cell.get(MIXING)) is not None:
        with stages("mixing"):
            metric_entries |= _mixing_entry(model, cell, seconds)
    if compilation_info["kind"] != "none" and not (
        compilation_info["kind"] == "fresh" and process_state.has_own_cache()
    ):
        # Its kernels were compiled before, or another process may have compiled them.
        del metric_entries["compile_seconds"]
    return {
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": metric_entries,
        "result": {
            **summary,
            "variables": model.num_variables,
            "marginal_rmse_se": spread,
            "compilation": compilation_info["kind"],
            "load": dataclasses.asdict(load),
            "memory": dataclasses.asdict(memory),
        },
        "reference": reference_entry,
        "features": features,
        "oversubscribed": process_state.oversubscription_message(load),
    }


def _import_method_and_backend(cell: Mapping[str, Any]) -> None:
    """Import what the pair needs before any clock starts; what is wrong with it is said when it is used."""
    method, backend = cell["method"]["name"], cell["backend"]["name"]
    with contextlib.suppress(SpinbenchError):
        wish = kernels.Wish(cell["backend"].get("tier"), cell["backend"].get("kernel"))
        if registry.support(method, backend, wish).runs:
            backend_class = registry.backend_class(backend)
            for module in backend_class.requires:
                importlib.import_module(module)
            # constructing the backend sets the cache folder, which kernels read when they are imported
            backend_class(
                **{name: cell["backend"][name] for name in ("precision", "device") if name in cell["backend"]}
            )
            for point in kernels.candidates(method, backend, wish)[:1]:
                kernels.load(point)


def _run_method(model: Model, cell: Mapping[str, Any], stages: Stages) -> tuple[Result, Load, Memory]:
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
        # Transfers are contained in the other stages.
        if name != "transfer":
            stages.add(name, seconds)
    stages.add("estimate", max(load.wall_seconds - result.seconds.total, 0.0))
    return result, load, memory


def _compute_reference(model: Model, *, pairs: bool) -> tuple[Result | None, dict[str, object]]:
    """The exact answer, or None with the reason; neither may cost the measurement."""
    try:
        reference = exact(model)
    except SpinbenchError as error:
        return None, {"reason": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return None, {"reason": f"the exact solver failed: {type(error).__name__}: {text}"}
    if pairs:
        # Models that are too expensive are refused with a SpinbenchError.
        with contextlib.suppress(SpinbenchError):
            reference = replace_pairs(reference, joint_tables(model, max_bytes=PAIRS_BYTES))
    return reference, {"log_z": reference.log_z, "method": reference.settings.get("solver")}


def _mixing_entry(model: Model, cell: Mapping[str, Any], seconds: float) -> dict[str, dict[str, Any]]:
    """How many sweeps chains take to forget their starts, found in so many seconds, or why that is not known.

    It is a metric of the record; a method whose chains cannot be coupled has none.
    """
    # Here and not above: most cells do not compute it.
    from spinbench.inference.mixing import load_coupling, mixing

    method, backend = cell["method"], cell["backend"]["name"]
    if method["name"] not in plugins.entry_points("couplings"):
        return {}
    options = {name: method[name] for name in ("scan",) if name in method}
    try:
        mixing_backend = backend if backend in load_coupling(method["name"]).backends else None
        mixing_time = mixing(
            model, method["name"], f"{seconds} s", tv=MIXING_TV, seed=cell["seed"], backend=mixing_backend, **options
        )
        if mixing_time.sweeps is not None:
            return {MIXING: {"value": float(mixing_time.sweeps), "title": MIXING_TITLE, "better": "lower"}}
        reason = mixing_time.sentences()[0]
    except SpinbenchError as refusal:
        reason = str(refusal)
    return {MIXING: {"failed": reason, "remark": reason}}
