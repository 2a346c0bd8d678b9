"""What independent annealed runs tell, each weighed by its Ẑ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Estimate, Model, Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.claims import LEAST_DRAW, UNSEEN, Claim, LogZParts, error_bound, log_z_parts, t_factor
from spinbench.methods.weighted_means import FloatArray, group_sums, ratio_means, with_bounds
from spinbench.models.conditionals import split_fields, uniform_marginals

# Effective number of runs below which estimates get a warning: 10 of 40 measured SMC answers were off by three standard
# errors (root mean square), and none of the 16 with at least this many effective runs.
MIN_EFFECTIVE_RUNS = 8.0
# Confidence of the lower limit on the effective number of runs.
CONFIDENCE = 0.95


class WeightedRuns(NamedTuple):
    """Of all runs.

    Attributes:
        log_z: log of the mean of Ẑ, with its errors, infinite where nothing supports it.
        means, se, mcse: (M,) marginals, their standard errors, and these without Student's t.
        unseen: share of the law that runs may not have shown.
        num_runs: their number; effective_runs: (Σ Ẑ)² / Σ Ẑ², or what `effective_runs_limit` says, whichever is less.
        supported: whether any of it may be believed.
    """

    log_z: Claim
    means: FloatArray
    se: FloatArray
    mcse: FloatArray
    unseen: float
    num_runs: int
    effective_runs: float
    supported: bool


def summarise_runs(cardinalities: tuple[int, ...], trace: Trace) -> WeightedRuns:
    """From "z", "square" and "p": means over runs, and their errors from groups of runs, a batch of a chain each.

    Runs are independent, so that groups are, too, however the run was cut.
    """
    chains = trace.total("z").shape[-1]
    top = float(trace.series("z").max(initial=-np.inf))
    num_runs = trace.samples * chains
    if not np.isfinite(top):
        equal = uniform_marginals(cardinalities)
        return WeightedRuns(
            Claim(top, np.inf, np.inf), equal, 1 - equal, 1 - equal, 1.0, num_runs, 0.0, supported=False
        )
    sums, parts, top = group_sums(trace, "z", "p")
    total = float(sums.sum())
    squares = float(np.exp(trace.total("square") - 2 * top).sum())
    effective_runs = min(total**2 / squares, effective_runs_limit(trace.series("z").ravel(), num_runs))
    means, mcse = ratio_means(sums, parts)
    factor = float(t_factor(min(effective_runs, sums.size) - 1))
    unseen = UNSEEN / effective_runs
    se = factor * float(np.sqrt(max(1 / effective_runs - 1 / num_runs, 0.0)))
    supported = effective_runs >= MIN_EFFECTIVE_RUNS and sums.size >= FEWEST_CHAINS
    log_z = float(top + np.log(total / num_runs))
    claim = Claim(log_z, np.inf, np.inf)
    if supported:
        claim = Claim(log_z, max(se, LEAST_DRAW / effective_runs), float(error_bound(se, unseen)))
    return WeightedRuns(claim, means, factor * mcse, mcse, unseen, num_runs, effective_runs, supported)


def population_estimate(
    model: Model,
    runs: WeightedRuns,
    base_log_z: float,
    particles: int,
    is_supported: bool,
    diagnostics: dict[str, float],
) -> Estimate:
    """Marginals and log Z with their errors.

    Args:
        model: the model.
        runs: of the model.
        base_log_z: what is added to log Ẑ.
        particles: of a run.
        is_supported: whether claims hold.
        diagnostics: beside the numbers of runs.
    """
    mean = runs.log_z.plus(base_log_z)
    doubts: tuple[str, ...] = ()
    if not is_supported:
        mean = Claim(mean.value, np.inf, np.inf)
        doubts = ("marginals not mixed", "log Z unresolved")
    ess = statistics.effective_sample_size(runs.means, runs.mcse, runs.num_runs * particles)
    log_z: LogZParts = {"log_z_se": np.inf}
    if np.isfinite(mean.value):
        log_z = log_z_parts(mean, {"mean": mean})
    return Estimate(
        **split_fields(model.cardinalities, **with_bounds(runs.means, runs.se, runs.unseen), ess=ess),
        **log_z,
        diagnostics={**diagnostics, "runs": float(runs.num_runs), "effective_runs": runs.effective_runs},
        doubts=doubts,
    )


def effective_runs_limit(log_means: FloatArray, num_runs: int) -> float:
    """How many of the runs count in effect, if the logarithms of Ẑ above their median are as those of a normal law.

    Few runs seldom show the heaviest weights of their law, and then claim too little and are believed too easily. So it
    is a law of variance σ², an upper limit (at 95 %) of what the upper half lets see: n e^-σ² of n means count.

    Args:
        log_means: (n,) of groups of runs of equal size.
        num_runs: of all runs.
    """
    from scipy.special import chdtri

    finite = log_means[np.isfinite(log_means)]
    upper = finite[finite > np.median(finite)] - np.median(finite)
    if not upper.size:
        return float(num_runs)
    variance = float((upper**2).sum() / chdtri(upper.size, CONFIDENCE))
    return 1 / (float(np.exp(min(variance, 500.0)) - 1) / finite.size + 1 / num_runs)
