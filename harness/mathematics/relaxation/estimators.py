"""Log Z from draws of the relaxed density (`spinbench.mathematics.relaxation.density`), with standard errors.

With z = L⁻¹α, LLᵀ = Q, draws of p(x) for any A become draws of p(z) = p*(z) / Z,
log p*(z) = log_constant - ½ z·z + log Σ_s exp(s·u) - (N/2) log 2π, where u = Lz + b.

* zero_state: 1/Z = E[p(s = 0|x)] / p*(s = 0), for p(s = 0) = E[p(s = 0|x)] (Zhang et al. 2012, (14)). Its weights are
  far too uneven on all but small models. zero_state_bar: the same, looked at from the other side too. Draws of
  p(x|s = 0) are independent and free, and Z p(s = 0|x) / p*(s = 0) is the ratio of that law to p(x).
* mirrored: 1/Z = E[q(z) / p*(z)] with a Gaussian q fitted to the draws (ibid., section 3.4). "mirrored_in_sample" is
  the plain version, with the mean and covariance of the draws that are weighed; it is biased low. "mirrored" fits on
  one half of the chains and evaluates on the other, and the other way round.
* bridge: Meng and Wong, "Simulating ratios of normalizing constants", Statistica Sinica 1996, with the same q as
  mirrored and as many draws from q as from p; its RMSE is a fraction of the mirrored estimator's.

The bar and the bridge are `bennett.ratio`, which knows from draws of both sides when it is wrong. Of the others,
zero_state and mirrored claim what they can beside these; mirrored_in_sample claims nothing, for its bias is as large as
its error on easy models, too.

The two cross-fitted ones take the moments of q from E[z|s] = Lᵀs and Cov(z|s) = I: mean Lᵀ E[s] and covariance
I + Lᵀ Cov(s) L, with p(s|x) averaged over the draws. That covariance is positive definite for any number of draws
and, at N = 100, as good from 600 draws as the draws' own covariance from 4000.

An unbiased estimate of 1/Z has E[log Ẑ] >= log Z by Jensen's inequality: zero_state and mirrored tend to overestimate
log Z (the paper's section 3.4 says the reverse).
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spinbench.mathematics import claims, statistics
from spinbench.mathematics.bennett import Ratio, beside, one_sided, ratio
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.relaxation.cross_fits import CrossFit, Draws, Gaussian, halves_of
from spinbench.mathematics.relaxation.density import FloatArray, Relaxation

# Smallest number of batches for a standard error.
MIN_BATCHES = 8
# Largest number of variables: beyond it every checkpoint would take many seconds, and p and q hardly overlap.
MAX_VARIABLES = 1024
# Largest number of draws that the estimators use.
MAX_DRAWS = 10_000
# Limit of draws times N²; above it only every k-th batch is used, and at least 1024 draws.
MAX_WORK = 2e8
# Each half allows `UNSEEN` / √2, so that the mean of both allows `UNSEEN` over all draws: states that one half has not
# shown, the other may have.
_UNSEEN_OF_HALF = claims.UNSEEN / np.sqrt(2)
# Number of draws of p(x|s = 0), which is Gaussian, so that draws are independent.
FROM_ZERO = 4096


@dataclass(frozen=True)
class LogZEstimates:
    """What draws say of log Z.

    Attributes:
        estimates: by name, those that could be had: log Z with its errors, which are infinite where nothing supports
            it.
        diagnostics: "log_z_draws" in use; "log_z_draws_needed", where they are too few; "log_z_max_variables", where
            the model is too large; "log_z_overlap", ∫ 2pq / (p + q) of the two laws, 1 where p = q;
            "log_z_weight_ess", the number of draws, in effect, that both laws share.
    """

    estimates: Mapping[str, claims.Claim] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)


def zero_state(relaxation: Relaxation, series: FloatArray, alpha: FloatArray) -> LogZEstimates:
    """The estimators that compare p(x) with p(x|s = 0).

    Args:
        relaxation: of a model without groups.
        series: (B, C) logs of batch means of Π_i 1 / (1 + exp(u_i)).
        alpha: (B, N, C) draws of α, one of each batch.

    Raises:
        ModelError: as `Relaxation.cholesky`.
    """
    batches, n, chains = alpha.shape
    if n > MAX_VARIABLES:
        return _too_large()
    constant = relaxation.model.log_constant
    rng = np.random.default_rng(zlib.crc32(alpha.tobytes()))
    from_normal = relaxation.cholesky @ rng.standard_normal((n, min(batches * chains, FROM_ZERO)))
    _, ahead = relaxation.conditional(alpha.transpose(0, 2, 1) + relaxation.bias)
    _, back = relaxation.conditional(from_normal.T + relaxation.bias)
    both = ratio(ahead, back)
    level, error = statistics.log_mean(series)
    estimates = {
        "zero_state_bar": both.claim.plus(constant),
        "zero_state": one_sided(-level, error, both).plus(constant),
    }
    return LogZEstimates(estimates, {"log_z_overlap": both.overlap, "log_z_weight_ess": both.weight})


def gaussian(relaxation: Relaxation, alpha: FloatArray, memory: float, *, in_sample: bool = True) -> LogZEstimates:
    """The estimators that fit a Gaussian q to the draws: "bridge", "mirrored", "mirrored_in_sample".

    The chains (of one chain: the batches) are cut into two halves; each half's q is evaluated on the other's draws.
    The two directions are pooled (mirrored) or averaged (bridge). Draws from q are seeded by the draws themselves.

    The bridge's bound has what the distance of its two directions, halved, has beyond chance, and half of what the
    chains remember in nats: q is fitted to the same, perhaps stuck, chains, so that p and q overlap where both miss the
    same states.

    Args:
        relaxation: of the model.
        alpha: (B, N, C) draws of α, B successive ones of each of C chains.
        memory: the largest share of a marginal's spread that the run's chains remember (`claims.marginal_claims`).
        in_sample: whether to add "mirrored_in_sample", which needs more than N different draws.

    Raises:
        ModelError: as `Relaxation.cholesky`.
    """
    batches, n, chains = alpha.shape
    if n > MAX_VARIABLES:
        return _too_large()
    if batches < (needed := MIN_BATCHES if chains > 1 else 2 * MIN_BATCHES):
        counts = {"log_z_draws": float(batches * chains), "log_z_draws_needed": float(needed * chains)}
        return LogZEstimates({}, counts)
    most = min(MAX_DRAWS, max(1024.0, MAX_WORK / n**2))
    step = max(1, min(int(np.ceil(batches * chains / most)), batches // needed))
    alpha = alpha[step - 1 :: step]
    halves = [Draws(relaxation, alpha[rows]) for rows in halves_of(*alpha.shape)]
    fit = CrossFit(relaxation, *(Gaussian.conditional(relaxation, half) for half in halves))
    found = _bridge(*fit.compare_halves(halves), relaxation.model.log_constant, memory)
    if in_sample and sum(half.z.shape[1] for half in halves) > n:
        # After rejections the draws may be too few for an invertible covariance.
        with contextlib.suppress(np.linalg.LinAlgError):
            plain = Gaussian.fit(np.concatenate([half.z for half in halves], axis=1))
            level, _ = _log_mean_of_halves(
                [half.series(plain.log_density(half.z) - half.log_target) for half in halves]
            )
            plain_claim = claims.Claim(-level, np.inf, np.inf).plus(relaxation.model.log_constant)
            return replace(found, estimates={**found.estimates, "mirrored_in_sample": plain_claim})
    return found


def bridge(forward: FloatArray, backward: FloatArray, constant: float, memory: float) -> LogZEstimates:
    """ "bridge" and "mirrored", of draws that were compared with a fit to earlier ones.

    Args:
        forward, backward: (B, C) of `CrossFit.compare`, C > 1.
        constant: the model's, which is added.
        memory: as of `gaussian`.
    """
    half = forward.shape[1] // 2
    columns = slice(None, half), slice(half, None)
    return _bridge([forward[:, c] for c in columns], [backward[:, c].ravel() for c in columns], constant, memory)


def _bridge(
    forward: Sequence[FloatArray], backward: Sequence[FloatArray], constant: float, memory: float
) -> LogZEstimates:
    """Of both halves."""
    directions = [
        ratio(ahead, back, FEWEST_CHAINS // 2, _UNSEEN_OF_HALF) for ahead, back in zip(forward, backward, strict=True)
    ]
    mean = _mean_ratio(directions, memory)
    level, error = _log_mean_of_halves([-ahead for ahead in forward])
    mirrored = beside(claims.Claim(-level, error, float(claims.error_bound(error))), mean)
    notes = {
        "log_z_draws": float(sum(ahead.size for ahead in forward)),
        "log_z_overlap": mean.overlap,
        "log_z_weight_ess": mean.weight,
    }
    return LogZEstimates({"bridge": mean.claim.plus(constant), "mirrored": mirrored.plus(constant)}, notes)


def _too_large() -> LogZEstimates:
    return LogZEstimates({}, {"log_z_max_variables": float(MAX_VARIABLES)})


def _mean_ratio(directions: Sequence[Ratio], memory: float) -> Ratio:
    """The mean of two ratios of the same laws, one from each half of the chains, which is what the other half lacks."""
    values, ses, bounds, overlaps, shared, supported = zip(*directions, strict=True)
    # two estimates may differ by two standard errors by chance
    apart, half = abs(values[0] - values[1]) / 2, float(np.hypot(*ses)) / 2
    se = max(half, apart - half)
    bound = max(float(np.hypot(*bounds)) / 2, claims.BOUND * se)
    return Ratio(sum(values) / 2, se, float(np.hypot(bound, memory / 2)), min(overlaps), sum(shared), all(supported))


def _log_mean_of_halves(parts: Sequence[FloatArray]) -> tuple[float, float]:
    """Log of the mean weight over both halves, and its standard error.

    Each half's draws also made the fit that weighs the other's, so that the two means are as good as one: where q is
    close to p, they err together. Their standard errors are added as those of fully correlated numbers: right there,
    and up to a quarter too large where q fits p badly.
    """
    values, errors = (np.array(column) for column in zip(*map(statistics.log_mean, parts), strict=True))
    sizes = np.array([part.size for part in parts])
    logs = values + np.log(sizes / sizes.sum())
    value = np.logaddexp.reduce(logs)
    return float(value), float(np.exp(logs - value) @ errors)
