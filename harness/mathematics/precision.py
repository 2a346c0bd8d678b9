"""What the precision of the chains' arithmetic may add to the errors of their means."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spinbench.models import Model

Precision = Literal["float32", "float64"]
FloatArray = npt.NDArray[np.float64]


def widened(errors: Any, marginals: Any, model: Model, precision: Precision) -> Any:
    """Claims of marginals, no finer than the numbers that chains compute with.

    What the factors of a variable add to its states' log weights (a field a_i + Σ_j w_ij s_j) is off by a unit in the
    last place of their terms, and a probability by p(1 - p) times that, beside a unit of its own: of many chains'
    means, whose errors are as small as that, this is what remains.

    Args:
        errors, marginals: (N,), or lists of (K,) arrays.
        model: that was sampled.
        precision: of the chains' states and sums.

    Returns:
        In the layout of `errors`.
    """
    unit = float(np.finfo(precision).eps)
    if isinstance(errors, list):
        parts = zip(errors, marginals, model.reach, strict=True)
        return [np.hypot(error, unit * _remaining(p, reach)) for error, p, reach in parts]
    return np.hypot(errors, unit * _remaining(marginals, model.reach))


def _remaining(marginals: Any, reach: Any) -> FloatArray:
    p = np.clip(np.asarray(marginals, dtype=np.float64), 0.0, 1.0)
    return np.asarray(1.0 + p * (1.0 - p) * reach)


def widened_log_z(error: float, log_z: float, model: Model, precision: Precision) -> float:
    """The claim of an estimate of log Z, no finer than the sums of log weights of which chains make it.

    Args:
        error: claimed.
        log_z: the estimate.
        model: that was sampled.
        precision: of the chains' states and sums.
    """
    return float(np.hypot(error, float(np.finfo(precision).eps) * (abs(log_z) + float(model.reach.sum()))))
