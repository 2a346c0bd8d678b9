"""Exact answers that samples are compared with, and the inverse temperature that their mean log weight fits."""

from __future__ import annotations

from time import monotonic

import numpy as np
import numpy.typing as npt

from spinbench.auditing.checks import Draws
from spinbench.errors import IntractableError, SpinbenchError
from spinbench.inference.maximising.annealing import scale_log_weights
from spinbench.inference.result import Result
from spinbench.inference.runner import exact
from spinbench.models import FactorGraph, Model

FloatArray = npt.NDArray[np.float64]

# Of the inverse temperatures whose mean log weights give the variance and the skewness of log weights.
SPACING = 0.02
SECANT_STEPS = 30
SECANT_TOLERANCE = 1e-9


def exact_answer(model: Model, seconds: float) -> Result | None:
    """With marginals and pairs, if they are predicted to be cheap."""
    try:
        answer = exact(model, budget=f"{seconds} s", pairs=True)
    except IntractableError:
        return None
    if answer.marginals is None or any(np.isnan(p).any() for p in answer.marginals.by_variable()):
        return None
    return answer


def event_probabilities(answer: Result, model: Model) -> FloatArray:
    """(Q,) of `marginal_events`."""
    assert answer.marginals is not None
    parts = answer.marginals.by_variable()
    return np.concatenate([p[1 if size == 2 else 0 :] for p, size in zip(parts, model.cardinalities, strict=True)])


def heaviest_probability(answer: Result) -> float:
    """Of the heaviest state."""
    assert answer.best_log_weight is not None
    assert answer.log_z is not None
    return float(np.exp(answer.best_log_weight - answer.log_z))


def mean_log_weight(model: Model, beta: float, seconds: float) -> float:
    """E_β[log p*], exact."""
    scaled = scale_log_weights(model, beta)
    answer = exact(scaled, budget=f"{seconds} s", pairs=True, cache=False)
    assert answer.marginals is not None
    if isinstance(model, FactorGraph):
        tables = zip(model.factors, answer.pairs, strict=True)
        parts = [float((p.ravel() * np.where(p > 0, f.log_table.ravel(), 0.0)).sum()) for f, p in tables]
        return model.log_constant + sum(parts)
    return float(model.log_constant + model.biases @ np.asarray(answer.marginals) + model.couplings @ answer.pairs)


def fit_by_energy(
    model: Model, draws: Draws, first: tuple[float, float, str], until: float
) -> tuple[float, float, str]:
    """β at which the exact mean log weight is that of the draws, the maximum of their likelihood, by secants from the
    pseudo-likelihood's; that one stays where they lead nowhere, or not before the monotonic clock's `until`."""
    target = float(draws.log_weights.mean())
    low, high = 1.0, first[0] if np.isfinite(first[0]) and abs(first[0] - 1) > SPACING else 1 + SPACING
    try:
        seconds = max(until - monotonic(), 1e-3)
        below, above = (mean_log_weight(model, beta, seconds) - target for beta in (low, high))
        for _ in range(SECANT_STEPS):
            if monotonic() > until:
                return first
            slope = (above - below) / (high - low)
            if not slope > 0 or abs(above) <= SECANT_TOLERANCE * slope * max(abs(high), 1.0):
                break
            low, high, below = high, high - above / slope, above
            above = mean_log_weight(model, high, seconds) - target
        else:
            return first
    except (SpinbenchError, FloatingPointError):
        return first
    if not slope > 0 or abs(above) > slope * 1e-4:
        return first
    curvature = mean_log_weight(model, high + SPACING, seconds) - mean_log_weight(model, high - SPACING, seconds)
    variance = curvature / (2 * SPACING)
    effective = float(draws.effective(draws.log_weights[None])[0])
    return high, float(draws.log_weights.std() / np.sqrt(effective) / variance), "maximum likelihood"
