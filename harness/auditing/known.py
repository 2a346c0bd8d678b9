"""What is known of a model that samples are compared with: exact answers and the inverse temperature that their mean
log weight fits; where these are out of reach, modes that probes find, and bounds on log Z."""

from __future__ import annotations

from time import monotonic

import numpy as np

from spinbench.api import Estimate
from spinbench.auditing.checks import Check, Draws, check_heaviest, informative_states
from spinbench.auditing.statistics import FloatArray, binomial_p_values
from spinbench.errors import IntractableError, SpinbenchError
from spinbench.foundation import defaults
from spinbench.inference import result, runner
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.checks.missed_modes import MOST_VARIABLES, flag_missed_modes
from spinbench.inference.maximising.annealing import scale_log_weights
from spinbench.models import FactorGraph, Model

# Step in β of the finite differences that give variance and skewness of log weights.
SPACING = 0.02
# Largest number of steps of the search for β; without convergence the estimate by pseudo-likelihood is kept.
SECANT_STEPS = 30
SECANT_TOLERANCE = 1e-9
# A field below this share of its terms counts as 0.
ROUNDING = 1e-9
# Sweeps of the search for the heaviest state when elimination is too expensive.
MODE_SAMPLES = 200


def exact_answer(model: Model, seconds: float) -> result.Result | None:
    """With marginals and pairs, if they are predicted to be cheap."""
    try:
        answer = runner.exact(model, budget=f"{seconds} s", pairs=True)
    except IntractableError:
        return None
    if answer.marginals is None or any(np.isnan(p).any() for p in answer.marginals.by_variable()):
        return None
    return answer


def event_probabilities(answer: result.Result, model: Model) -> FloatArray:
    """(Q,) of `marginal_events`."""
    assert answer.marginals is not None
    parts = answer.marginals.by_variable()
    return np.concatenate([p[informative_states(size)] for p, size in zip(parts, model.cardinalities, strict=True)])


def heaviest_probability(answer: result.Result) -> float:
    """Of the heaviest state."""
    assert answer.best_log_weight is not None
    assert answer.log_z is not None
    return float(np.exp(answer.best_log_weight - answer.log_z))


def mean_log_weight(model: Model, beta: float, seconds: float) -> float:
    """E_β[log p*], exact."""
    scaled = scale_log_weights(model, beta)
    answer = runner.exact(scaled, budget=f"{seconds} s", pairs=True, cache=False)
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
    # The derivative of E_β[log p*] by β is its variance.
    curvature = mean_log_weight(model, high + SPACING, seconds) - mean_log_weight(model, high - SPACING, seconds)
    variance = curvature / (2 * SPACING)
    effective = float(draws.effective(draws.log_weights[None])[0])
    return high, float(draws.log_weights.std() / np.sqrt(effective) / variance), "maximum likelihood"


def check_modes(model: Model, draws: Draws, notes: list[str]) -> Check | None:
    """Whether probes of the model find states that the draws have missed (`inference.checks.flag_missed_modes`)."""
    if model.num_variables > MOST_VARIABLES or (not isinstance(model, FactorGraph) and model.groups):
        why = "it has 1-of-K groups"
        if model.num_variables > MOST_VARIABLES:
            why = f"it has over {MOST_VARIABLES} variables"
        notes.append(f"modes that the samples have missed were not looked for by probes of the model: {why}")
        return None
    indicators = [(draws.states[v] == k)[None] for v, size in enumerate(model.cardinalities) for k in range(size)]
    p = np.array([float(each.mean()) for each in indicators])
    effective = np.array([draws.effective(each.astype(np.float64))[0] for each in indicators])
    # Never 0, also for a state that all draws or none show: its probability may still differ from 0 or 1 by one draw.
    errors = np.sqrt(np.maximum(p * (1 - p), 1 / effective) / effective)
    if model.all_binary:
        estimate = Estimate(marginals=p[1::2], marginals_se=errors[1::2])
    else:
        ends = np.cumsum(model.cardinalities)[:-1]
        estimate = Estimate(marginals=np.split(p, ends), marginals_se=np.split(errors, ends))
    missed = bool(flag_missed_modes(model, estimate, long=True))
    return Check("modes", float(not missed), "probes find a mode that is missed" if missed else "probes find no others")


def check_symmetry(model: Model, draws: Draws) -> Check | None:
    """Of a binary pairwise model whose weights stay when all variables change: each has both states equally often. A
    sampler that has missed half of the modes does not know. None of other models."""
    if isinstance(model, FactorGraph) or model.groups:
        return None
    down, up = model.pulls
    # Twice the fields of the ±1 form, which change sign with a flip of all spins; where all fields are 0, weights are
    # symmetric.
    fields = model.biases + (down + up) / 2
    if (np.abs(fields) > ROUNDING * model.reach).any():
        return None
    series = draws.states.astype(np.float64)
    means = series.mean(axis=(1, 2))
    p_values = binomial_p_values(means, np.array(0.5), draws.effective(series))
    worst = int(p_values.argmin())
    detail = f"x{worst} = 1 in {means[worst]:.4g} of the draws, where all variables may change together"
    return Check("symmetry", min(1.0, float(p_values[worst]) * len(means)), detail)


def check_bracket(model: Model, draws: Draws, until: float, seed: int, notes: list[str]) -> Check | None:
    """The heaviest state that annealing finds, beside what a certified bracket of log Z allows it, in half of what is
    left before the monotonic clock's `until`."""
    seconds = until - monotonic()
    if seconds <= 0:
        notes.append("log Z was not bounded, nor the heaviest state looked for: the budget was spent")
        return None
    interval = bracket(model, f"{seconds / 2} s", seed=seed)
    if monotonic() > until:
        notes.append("the heaviest state was not looked for: the budget was spent")
        return None
    if interval.lower is None or interval.upper is None:
        notes.append("log Z has no certified bracket within the budget")
        return None
    heaviest = runner.run(model, defaults.METHOD, defaults.INTERPRETED, MODE_SAMPLES, seed=seed, target="map")
    if heaviest.best_state is None or heaviest.best_log_weight is None:
        return None
    low, high = (np.exp(min(heaviest.best_log_weight - bound.value, 0.0)) for bound in (interval.upper, interval.lower))
    notes.append(f"log Z is certainly in [{interval.lower.value:.6g}, {interval.upper.value:.6g}]")
    return check_heaviest(draws, np.asarray(heaviest.best_state), (float(low), float(high)))
