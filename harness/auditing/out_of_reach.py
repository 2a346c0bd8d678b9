"""What is known of a model whose exact answer is out of reach: modes that probes find, and bounds on log Z."""

from __future__ import annotations

from time import monotonic

import numpy as np

from spinbench.api import Estimate
from spinbench.auditing.checks import Check, Draws, check_heaviest
from spinbench.auditing.effective import binomial_p_values
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.checks.missed_modes import MOST_VARIABLES, flag_missed_modes
from spinbench.inference.runner import run
from spinbench.models import FactorGraph, Model

# Relative to the terms of a variable's field, below which that is 0.
ROUNDING = 1e-9
# Sweeps of the search for the heaviest state where elimination is out of reach.
MODE_SAMPLES = 200


def check_modes(model: Model, draws: Draws, notes: list[str]) -> Check | None:
    """Whether probes of the model find states that the draws have missed (`inference.checks.flag_missed_modes`)."""
    if model.num_variables > MOST_VARIABLES or (not isinstance(model, FactorGraph) and model.groups):
        why = (
            "it has 1-of-K groups"
            if model.num_variables <= MOST_VARIABLES
            else f"it has over {MOST_VARIABLES} variables"
        )
        notes.append(f"modes that the samples have missed were not looked for by probes of the model: {why}")
        return None
    indicators = [(draws.states[v] == k)[None] for v, size in enumerate(model.cardinalities) for k in range(size)]
    p = np.array([float(each.mean()) for each in indicators])
    effective = np.array([draws.effective(each.astype(np.float64))[0] for each in indicators])
    errors = np.sqrt(np.maximum(p * (1 - p), 1 / effective) / effective)
    if model.all_binary:
        estimate = Estimate(marginals=p[1::2], marginals_error_bound=errors[1::2])
    else:
        ends = np.cumsum(model.cardinalities)[:-1]
        estimate = Estimate(marginals=np.split(p, ends), marginals_error_bound=np.split(errors, ends))
    missed = bool(flag_missed_modes(model, estimate, long=True))
    return Check("modes", float(not missed), "probes find a mode that is missed" if missed else "probes find no others")


def check_symmetry(model: Model, draws: Draws) -> Check | None:
    """Of a binary pairwise model whose weights stay when all variables change: each has both states equally often. A
    sampler that has missed half of the modes does not know. None of other models."""
    if isinstance(model, FactorGraph) or model.groups:
        return None
    down, up = model.pulls
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
    heaviest = run(model, "gibbs", "numpy", MODE_SAMPLES, seed=seed, target="map")
    if heaviest.best_state is None or heaviest.best_log_weight is None:
        return None
    low, high = (np.exp(min(heaviest.best_log_weight - bound.value, 0.0)) for bound in (interval.upper, interval.lower))
    notes.append(f"log Z is certainly in [{interval.lower.value:.6g}, {interval.upper.value:.6g}]")
    return check_heaviest(draws, np.asarray(heaviest.best_state), (float(low), float(high)))
