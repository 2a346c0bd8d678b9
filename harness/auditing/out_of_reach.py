"""What is known of a model whose exact answer is out of reach: modes that probes find, and bounds on log Z."""

from __future__ import annotations

import numpy as np

from spinbench.api import Estimate
from spinbench.auditing.checks import Check, Draws, check_heaviest
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.checks.missed_modes import MOST_VARIABLES, missed_modes
from spinbench.inference.runner import run
from spinbench.models import FactorGraph, Model

MODE_SAMPLES = 200
"""Sweeps of the search for the heaviest state where elimination is out of reach."""


def check_modes(model: Model, draws: Draws, notes: list[str]) -> Check | None:
    """Whether probes of the model find states that the draws have missed (`inference.checks.missed_modes`)."""
    if model.num_variables > MOST_VARIABLES or (not isinstance(model, FactorGraph) and model.groups):
        notes.append(f"modes are looked for in models of {MOST_VARIABLES} variables at most, without 1-of-K groups")
        return None
    indicators = [(draws.states[v] == k)[None] for v, size in enumerate(model.cardinalities) for k in range(size)]
    p = np.array([float(each.mean()) for each in indicators])
    effective = np.array([draws.effective(each.astype(np.float64))[0] for each in indicators])
    errors = np.sqrt(np.maximum(p * (1 - p), 1 / effective) / effective)
    if model.all_binary:
        said = Estimate(marginals=p[1::2], marginals_se=errors[1::2])
    else:
        ends = np.cumsum(model.cardinalities)[:-1]
        said = Estimate(marginals=np.split(p, ends), marginals_se=np.split(errors, ends))
    missed = bool(missed_modes(model, said, long=True))
    return Check("modes", float(not missed), "probes find a mode that is missed" if missed else "probes find no others")


def check_bracket(model: Model, draws: Draws, seconds: float, seed: int, notes: list[str]) -> Check | None:
    """The heaviest state that annealing finds, beside what a certified bracket of log Z allows it."""
    known = bracket(model, f"{seconds / 2} s", seed=seed)
    if known.lower is None or known.upper is None:
        notes.append("log Z has no certified bracket within the budget")
        return None
    found = run(model, "gibbs", "numpy", MODE_SAMPLES, seed=seed, target="map")
    if found.best_state is None or found.best_log_weight is None:
        return None
    low, high = (np.exp(min(found.best_log_weight - bound.value, 0.0)) for bound in (known.upper, known.lower))
    notes.append(f"log Z is certainly in [{known.lower.value:.6g}, {known.upper.value:.6g}]")
    return check_heaviest(draws, np.asarray(found.best_state), (float(low), float(high)))
