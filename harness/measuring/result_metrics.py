"""What a record says of a result: the tracked numbers, and the rest of the result as plain data."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.api import Estimate
from spinbench.inference.result import Result
from spinbench.mathematics import statistics

if TYPE_CHECKING:
    import numpy.typing as npt

    from spinbench.api.host_arrays import PerVariable

# Fields of a result that metrics may depend on and that are no times.
FINGERPRINT_FIELDS = (
    *(
        "marginals",
        "marginals_se",
        "marginals_error_bound",
        "log_z",
        "log_z_se",
        "log_z_error_bound",
        "log_z_estimates",
        "bounds",
        "ess",
        "r_hat",
        "pairs",
        "pairs_se",
    ),
    *("draws", "samples", "status", "diagnostics"),
)


def result_metrics(
    result: Result, reference: Result | None, reference_entry: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], float | None]:
    """The tracked numbers, and the standard error of the marginals' RMSE."""
    rmse, spread = _marginal_rmse_and_se(result, reference)
    points = [(point.seconds, _marginal_rmse_and_se(point.estimate, reference)[0]) for point in result.trajectory]
    errors = [(seconds, error) for seconds, error in points if error is not None]
    target = statistics.TARGET_RMSE
    missing = reference_entry.get("reason")
    reason = f"{result.method} gives no"
    return {
        "marginal_rmse": _metric_entry(rmse, spread, missing or f"{reason} marginals"),
        "log_z_error": _metric_entry(
            _log_z_error(result, reference),
            result.log_z_se,
            missing or (f"{reason} log Z" if result.log_z is None else "log Z is unresolved"),
        ),
        **_cost_metrics(result),
        "time_to_error": _metric_entry(
            statistics.time_to_error(errors),
            None,
            missing or (f"an RMSE of {target:g} was not reached" if errors else f"{reason} marginals"),
        ),
    }, spread


def _log_z_if_resolved(estimate: Result | Estimate) -> float | None:
    """log Z, unless nothing supports it: then its error is infinite, and no number may be made of it."""
    if estimate.log_z_se is not None and math.isinf(estimate.log_z_se):
        return None
    return estimate.log_z


def _log_z_error(estimate: Result | Estimate, reference: Result | None) -> float | None:
    """|log Z - exact log Z| of what is resolved, in nats."""
    log_z = _log_z_if_resolved(estimate)
    if log_z is None or reference is None or reference.log_z is None:
        return None
    return abs(log_z - reference.log_z)


def _cost_metrics(result: Result) -> dict[str, dict[str, object]]:
    """Seconds, in all and of a step, and what an effective sample takes of them and of samples."""
    ess = _statistic(np.nanmedian, result.ess)
    costs = {"seconds_per_ess": result.seconds.run, "samples_per_ess": result.samples * result.chains}
    per_ess: dict[str, Any] = {name: {"failed": f"{result.method} gives no effective sample size"} for name in costs}
    # A short run with few accepted draws has no effective sample size.
    if ess is not None and ess > 0:
        per_ess = {name: _metric_entry(cost / ess, None, "") for name, cost in costs.items()}
    return {
        "run_seconds": _metric_entry(result.seconds.run, None, ""),
        **_step_time_metrics(result),
        "compile_seconds": _metric_entry(result.seconds.compile, None, ""),
        **per_ess,
    }


def _step_time_metrics(result: Result) -> dict[str, dict[str, Any]]:
    """First decile over batches and mean of CPU seconds; what a device does, only the wall clock tells."""
    laps, reason = result.laps, f"{result.method} gives no time of a step"
    if laps is None:
        return {name: {"failed": reason} for name in ("step_seconds", "step_cpu_seconds")}
    decile, _, median = {"cpu": laps.cpu}.get(result.device, laps.wall)
    # Relative scatter of the batches, larger on a busy machine.
    scatter = math.log(median / decile) if decile > 0 else 0.0
    mean: dict[str, Any] = {"failed": "it ran on a device"}
    if result.device == "cpu":
        mean = {"value": laps.mean_cpu, "scatter": scatter}
    return {"step_seconds": {"value": decile, "scatter": scatter}, "step_cpu_seconds": mean}


def _metric_entry(value: float | None, spread: float | None, missing: str) -> dict[str, Any]:
    if value is None:
        return {"failed": missing}
    if not math.isfinite(value):
        return {"failed": f"it came out as {value}"}
    has_error = spread is not None and math.isfinite(spread)
    if has_error:
        return {"value": float(value), "standard_error": float(spread or 0.0)}
    return {"value": float(value)}


def _marginal_rmse_and_se(estimate: Result | Estimate, reference: Result | None) -> tuple[float | None, float | None]:
    """RMSE of the marginals that are known and its standard error, sqrt(Σ d²se²) / (N RMSE) by the delta method.

    The errors of different variables are taken to be independent, which makes the standard error too small where
    they move together.
    """
    if reference is None or estimate.marginals is None:
        return None, None
    difference = _flatten(estimate.marginals) - _flatten(reference.marginals)
    # An exact answer may leave some marginals open.
    is_known = np.isfinite(_flatten(reference.marginals))
    if not is_known.any():
        return None, None
    difference = difference[is_known]
    rmse = float(np.sqrt(np.mean(difference**2)))
    if estimate.marginals_se is None or not rmse > 0:
        return rmse, None
    errors = _flatten(estimate.marginals_se)[is_known]
    return rmse, float(np.sqrt(np.sum((difference * errors) ** 2)) / (difference.size * rmse))


def _flatten(marginals: PerVariable) -> np.ndarray:
    # Binary variables: one probability each.
    if isinstance(marginals, np.ndarray):
        return np.ravel(marginals)
    return np.concatenate([np.ravel(np.asarray(entry, dtype=np.float64)) for entry in marginals])


def _statistic(function: Callable[[np.ndarray], float], values: PerVariable | None) -> float | None:
    """Of numbers of variables; None where none of them is finite."""
    if values is None or not np.isfinite(flat := _flatten(values)).any():
        return None
    return float(function(flat))


def summarize_result(result: Result, reference: Result | None) -> dict[str, object]:
    return {
        "tier": result.tier,
        "kernel": result.kernel,
        "notes": list(result.notes),
        "status": result.status,
        "levels": {name: each.level for name, each in result.evidence.items()},
        "reasons": {name: each.reason for name, each in result.evidence.items() if each.reason},
        "samples": result.samples,
        "chains": result.chains,
        "burn_in": result.burn_in,
        "log_z": _log_z_if_resolved(result),
        "log_z_se": result.log_z_se,
        "log_z_error_bound": result.log_z_error_bound,
        "log_z_kind": result.log_z_kind,
        "bounds": [dataclasses.asdict(bound) for bound in result.bounds],
        "log_z_estimates": result.log_z_estimates,
        "ess_min": _statistic(np.nanmin, result.ess),
        "ess_median": _statistic(np.nanmedian, result.ess),
        "r_hat_max": _statistic(np.nanmax, result.r_hat),
        "marginals_se": _statistic(_root_mean_square, result.marginals_se),
        "marginals_error_bound": _statistic(_root_mean_square, result.marginals_error_bound),
        "seconds": {**dataclasses.asdict(result.seconds), "total": result.seconds.total},
        "laps": result.laps and dataclasses.asdict(result.laps),
        "answer": _fingerprint(result.log_z, [] if result.marginals is None else result.marginals),
        "numbers": _fingerprint(*(getattr(result, name) for name in FINGERPRINT_FIELDS)),
        "diagnostics": result.diagnostics,
        "trajectory": [
            {
                "seconds": point.seconds,
                "samples": point.samples,
                "marginal_rmse": _marginal_rmse_and_se(point.estimate, reference)[0],
                "log_z": _log_z_if_resolved(point.estimate),
                "log_z_error": _log_z_error(point.estimate, reference),
            }
            for point in result.trajectory
        ],
    }


def _root_mean_square(values: npt.ArrayLike) -> float:
    return float(np.sqrt(np.nanmean(np.square(values))))


def _fingerprint(*values: object) -> str:
    """16 hexadecimal digits that are equal if all numbers are, to the last bit."""
    content = hashlib.sha256()
    for value in values:
        for array in _arrays(value):
            content.update(array.tobytes() if isinstance(array, np.ndarray) else repr(array).encode())
    return content.hexdigest()[:16]


def _arrays(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    return [value]


def make_arrays_read_only(result: Result) -> None:
    """Nobody may write into its arrays from now on: other metrics see them, too."""
    for part in vars(result).values():
        for array in _arrays(part):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
