"""How far marginals are from the exact ones, beside their RMSE."""

from __future__ import annotations

import numpy as np

from spinbench.api.host_arrays import PerVariable
from spinbench.api.metric import Measured, Metric
from spinbench.inference.result import Result
from spinbench.models import Model


class HellingerDistance(Metric):
    """Mean over the variables of the Hellinger distance of their marginals, sqrt(1 - Σ sqrt(p q)), in 0 to 1.

    By it the UAI competitions rate the task MAR. Variables whose exact marginals are not known are left out.
    """

    title = ""  # the tables of every sweep are wide enough

    def measure(self, model: Model, result: Result, reference: Result | None) -> Measured | str:
        if result.marginals is None:
            return f"{result.method} gives no marginals"
        if reference is None or reference.marginals is None:
            return "the exact marginals are out of reach"
        distance = mean_hellinger_distance(result.marginals, reference.marginals)
        return "the exact marginals are out of reach" if distance is None else Measured(distance)


def mean_hellinger_distance(estimated: PerVariable, exact: PerVariable) -> float | None:
    """Over the variables whose exact marginals are known; None where there is none."""
    distances = [
        hellinger_distance(np.asarray(p), np.asarray(q))
        for p, q in zip(estimated, exact, strict=True)
        if np.isfinite(q).all()
    ]
    return float(np.mean(distances)) if distances else None


def hellinger_distance(p: np.ndarray, q: np.ndarray) -> float:
    """Of two distributions over (K,) states, or of two probabilities of a binary variable's state 1.

    The differences of the roots are squared, since 1 - Σ sqrt(p q) has no digits left below 1e-8.
    """
    if p.ndim == 0:
        p, q = np.array([1.0 - p, p]), np.array([1.0 - q, q])
    return float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2))
