"""What a record says of its model: size, zeros, and how far a trivial answer is from the exact one."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench.inference.result import Result
from spinbench.metrics.marginals import mean_hellinger_distance
from spinbench.models import Model
from spinbench.reference.network import FlatFactors
from spinbench.reference.problem import Problem


def describe_model(model: Model, reference: Result | None) -> dict[str, Any]:
    """The fields of `record_model.ModelFeatures`, of what is left without impossible states.

    Args:
        model: as it was run.
        reference: the exact answer; without one the trivial answer's errors are not known.

    Raises:
        ModelError: hard zeros leave a variable no state.
    """
    flat = Problem(model).flat
    entry: dict[str, Any] = {
        "variables": model.num_variables,
        "factors": len(flat.offset) - 1,
        "states": int(flat.states.max(initial=1)),
        "order": int(np.diff(flat.start).max(initial=0)),
        "zeros": float(np.isneginf(flat.values).mean()) if len(flat.values) else 0.0,
    }
    if reference is not None and reference.log_z is not None:
        entry["trivial_log_z_error"] = abs(uniform_log_z(flat) - reference.log_z)
    if reference is not None and reference.marginals is not None:
        uniform = [np.full(np.shape(p), 1 / max(np.size(p), 2)) for p in reference.marginals]
        entry["trivial_hellinger"] = mean_hellinger_distance(uniform, reference.marginals)
    return entry


def uniform_log_z(flat: FlatFactors) -> float:
    """log Z in nats where each table is replaced by its mean: Σ log mean(table) + Σ log K.

    With it and uniform marginals UAI's scores are normalised here: what the trivial solver of the competition of 2022
    was, its pages do not say.
    """
    log_z = flat.constant + float(np.log(flat.states).sum())
    if not len(flat.values):
        return log_z
    log_sums = np.logaddexp.reduceat(flat.values, flat.offset[:-1])
    return log_z + float((log_sums - np.log(np.diff(flat.offset))).sum())
