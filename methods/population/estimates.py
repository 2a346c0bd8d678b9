"""What independent annealed runs tell, each weighed by its Ẑ, and what may be claimed of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api.trace import Trace
from spinbench.mathematics.claims import FEWEST_CHAINS, UNSEEN, t_factor

FloatArray = npt.NDArray[np.float64]

FEWEST_RUNS = 8.0
"""In effect, below which nothing is believed."""
FEWEST_TAIL = 5
"""Weights that tell of the tail."""
HEAVIEST_TAIL = 0.7
"""Index of the tail above which means of weights are not to be trusted, however many there are: Vehtari, Simpson,
Gelman, Yao, Gabry, "Pareto smoothed importance sampling", JMLR 2024."""


class Weighed(NamedTuple):
    """Of all runs.

    Attributes:
        log_z: log of the mean of Ẑ, and log_z_error to claim.
        means: (M,) marginals; errors: (M,) to claim; standard: (M,) standard errors.
        runs: their number; effective: (Σ Ẑ)² / Σ Ẑ².
        supported: whether any of it may be believed.
    """

    log_z: float
    log_z_error: float
    means: FloatArray
    errors: FloatArray
    standard: FloatArray
    runs: int
    effective: float
    supported: bool


def weighed(trace: Trace) -> Weighed:
    """From "z", "square" and "p": means over runs, and their errors from groups of runs, a batch of a chain each.

    Runs are independent, so that groups are, too, however the run was cut.
    """
    counts = np.array(trace.counts, dtype=np.float64)[:, None]
    chains = trace.total("z").shape[-1]
    log_sums = trace.series("z") + np.log(counts)
    top = log_sums.max(initial=-np.inf)
    number = trace.samples * chains
    if not np.isfinite(top):
        half = np.full(len(trace.total("p")), 0.5)
        return Weighed(float(top), np.inf, half, half, half, number, 0.0, supported=False)
    sums = np.exp(log_sums - top)
    total = float(sums.sum())
    squares = float(np.exp(trace.total("square") - 2 * top).sum())
    effective = min(total**2 / squares, float(number))
    parts = np.exp(trace.series("p") + np.log(counts)[:, None] - top)
    means = np.clip(parts.sum(axis=(0, 2)) / total, 0.0, 1.0)
    groups = sums.size
    rest = parts - means[:, None] * sums[:, None, :]
    scale = groups / max(groups - 1, 1)
    standard = np.sqrt((rest**2).sum(axis=(0, 2)) * scale) / total
    factor = float(t_factor(min(effective, groups) - 1))
    farthest = np.maximum(means, 1 - means)
    errors = np.minimum(np.hypot(factor * standard, UNSEEN * farthest / effective), farthest)
    noise = factor * np.sqrt(max(1 / effective - 1 / number, 0.0))
    light = tail(log_sums.ravel(), effective) <= HEAVIEST_TAIL
    supported = effective >= FEWEST_RUNS and groups >= FEWEST_CHAINS and light
    log_z = float(top + np.log(total / number))
    claimed = float(np.hypot(noise, UNSEEN / effective)) if supported else np.inf
    return Weighed(log_z, claimed, means, errors, standard, number, effective, supported)


def tail(log_sums: FloatArray, effective: float) -> float:
    """The index of a Pareto law's tail at the heaviest weights, as many as count in effect and a fifth of all at most.

    Hill, "A simple general approach to inference about the tail of a distribution", Annals of Statistics 1975.
    """
    ordered = np.sort(log_sums[np.isfinite(log_sums)])[::-1]
    count = max(int(min(effective, ordered.size / 5)), FEWEST_TAIL)
    return float(ordered[:count].mean() - ordered[count]) if count < ordered.size else np.inf
