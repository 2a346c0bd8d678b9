"""What independent annealed runs tell, each weighed by its Ẑ, and what may be claimed of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api.trace import Trace
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.claims import UNSEEN, t_factor
from spinbench.models.origin import equal_shares

FloatArray = npt.NDArray[np.float64]

FEWEST_RUNS = 8.0
"""In effect, below which nothing is believed."""
CERTAIN = 0.95
"""Of what runs may be said to be at least."""


class Weighed(NamedTuple):
    """Of all runs.

    Attributes:
        log_z: log of the mean of Ẑ, and log_z_error to claim.
        means: (M,) marginals; errors: (M,) to claim; standard: (M,) standard errors.
        runs: their number; effective: (Σ Ẑ)² / Σ Ẑ², or what `expected_runs` says, whichever is less.
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


def weighed(cardinalities: tuple[int, ...], trace: Trace) -> Weighed:
    """From "z", "square" and "p": means over runs, and their errors from groups of runs, a batch of a chain each.

    Runs are independent, so that groups are, too, however the run was cut.
    """
    counts = np.array(trace.counts, dtype=np.float64)[:, None]
    chains = trace.total("z").shape[-1]
    log_sums = trace.series("z") + np.log(counts)
    top = log_sums.max(initial=-np.inf)
    number = trace.samples * chains
    if not np.isfinite(top):
        equal = equal_shares(cardinalities)
        return Weighed(float(top), np.inf, equal, 1 - equal, 1 - equal, number, 0.0, supported=False)
    sums = np.exp(log_sums - top)
    total = float(sums.sum())
    squares = float(np.exp(trace.total("square") - 2 * top).sum())
    effective = min(total**2 / squares, expected_runs(trace.series("z").ravel(), number))
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
    supported = effective >= FEWEST_RUNS and groups >= FEWEST_CHAINS
    log_z = float(top + np.log(total / number))
    claimed = float(np.hypot(noise, UNSEEN / effective)) if supported else np.inf
    return Weighed(log_z, claimed, means, errors, standard, number, effective, supported)


def expected_runs(log_means: FloatArray, number: int) -> float:
    """How many of the runs count in effect, if the logarithms of Ẑ above their median are as those of a normal law.

    Few runs seldom show the heaviest weights of their law, and then claim too little and are believed too easily. So it
    is a law of variance σ², an upper limit (at 95 %) of what the upper half lets see: n e^-σ² of n means count.

    Args:
        log_means: (n,) of groups of runs of equal size.
        number: of all runs.
    """
    from scipy.special import chdtri

    finite = log_means[np.isfinite(log_means)]
    upper = finite[finite > np.median(finite)] - np.median(finite)
    if not upper.size:
        return float(number)
    variance = float((upper**2).sum() / chdtri(upper.size, CERTAIN))
    return 1 / (float(np.exp(min(variance, 500.0)) - 1) / finite.size + 1 / number)
