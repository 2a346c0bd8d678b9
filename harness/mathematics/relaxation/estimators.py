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
from dataclasses import dataclass, field

import numpy as np

from spinbench.mathematics import statistics
from spinbench.mathematics.bennett import Ratio, beside, one_sided, ratio
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.claims import UNSEEN, Claim
from spinbench.mathematics.relaxation.density import FloatArray, Relaxation

Rows = tuple[slice, slice, slice]

# Fewer leave nothing to find a standard error from.
MIN_BATCHES = 8
# More would make every checkpoint take many seconds, and p and q hardly overlap there.
MAX_VARIABLES = 1024
MAX_DRAWS = 10_000
# Draws times N² up to which all draws are used, at least 1024 of them; beyond, every k-th batch.
MAX_WORK = 2e8
# So that the mean of two halves claims `UNSEEN` over the draws of both: what one has not seen, the other may have.
_UNSEEN_OF_HALF = UNSEEN / np.sqrt(2)
# Most draws of p(x|s = 0).
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

    estimates: Mapping[str, Claim] = field(default_factory=dict)
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
    halves = [_Draws(relaxation, alpha[rows]) for rows in _halves(*alpha.shape)]
    fits = [_Gaussian.conditional(relaxation, half) for half in halves]
    rng = np.random.default_rng(zlib.crc32(halves[0].z.tobytes()))

    # log q(z) - log p*(z) of each half's draws under the other half's fit
    crossed = [half.series(fits[1 - k].log_density(half.z) - half.log_target) for k, half in enumerate(halves)]
    proposed = [_proposal_log_ratios(relaxation, fits[1 - k], crossed[k].size, rng) for k in (0, 1)]
    bridge = _mean_ratio([ratio(-crossed[k], proposed[k], FEWEST_CHAINS // 2, _UNSEEN_OF_HALF) for k in (0, 1)], memory)
    weights = {"mirrored": crossed}
    if in_sample and sum(half.z.shape[1] for half in halves) > n:
        with contextlib.suppress(np.linalg.LinAlgError):  # rejected proposals repeat draws, which may span too little
            plain = _Gaussian.of_draws(np.concatenate([half.z for half in halves], axis=1))
            in_sample_ratios = [half.series(plain.log_density(half.z) - half.log_target) for half in halves]
            weights["mirrored_in_sample"] = in_sample_ratios
    constant = relaxation.model.log_constant
    estimates = {"bridge": bridge.claim.plus(constant)}
    for name, parts in weights.items():
        level, error = _log_mean_of_halves(parts)
        unsupported = Claim(-level, np.inf, np.inf)
        found = beside(Claim(-level, error, error), bridge) if name == "mirrored" else unsupported
        estimates[name] = found.plus(constant)
    notes = {
        "log_z_draws": float(alpha.shape[0] * chains),
        "log_z_overlap": bridge.overlap,
        "log_z_weight_ess": bridge.weight,
    }
    return LogZEstimates(estimates, notes)


def _too_large() -> LogZEstimates:
    return LogZEstimates({}, {"log_z_max_variables": float(MAX_VARIABLES)})


def _mean_ratio(directions: Sequence[Ratio], memory: float) -> Ratio:
    """The mean of two ratios of the same laws, one from each half of the chains, which is what the other half lacks."""
    values, ses, bounds, overlaps, shared, supported = zip(*directions, strict=True)
    # up to two errors apart by chance
    apart, halves = abs(values[0] - values[1]) / 2, (float(np.hypot(*ses)) / 2, float(np.hypot(*bounds)) / 2)
    se, bound = (max(half, apart - half) for half in halves)
    return Ratio(sum(values) / 2, se, float(np.hypot(bound, memory / 2)), min(overlaps), sum(shared), all(supported))


class _Draws:
    """Draws of one half: z (N, n), log p*(z) (n,) without its constants, p(s = 1|x) (N, n)."""

    def __init__(self, relaxation: Relaxation, alpha: FloatArray) -> None:
        self._batches, n, self._chains = alpha.shape
        field = np.ascontiguousarray(alpha.transpose(1, 0, 2)).reshape(n, -1)
        self.z = _inverse(relaxation.cholesky) @ field
        means, log_normaliser = relaxation.conditional(field.T + relaxation.bias)
        self.means = means.T
        self.log_target = log_normaliser - 0.5 * np.einsum("ij,ij->j", self.z, self.z)

    def series(self, values: FloatArray) -> FloatArray:
        """(n,) to (B, C)."""
        return values.reshape(self._batches, self._chains)


@dataclass(frozen=True)
class _Gaussian:
    """N(mean, root rootᵀ), root lower triangular; densities without (2π)^(-N/2), which cancels."""

    mean: FloatArray
    root: FloatArray

    @classmethod
    def conditional(cls, relaxation: Relaxation, draws: _Draws) -> _Gaussian:
        """From the moments of z given s and those of s given x."""
        n, p = len(draws.means), draws.means
        mean = p.mean(axis=1)
        covariance = _covariance(p, mean)
        within = np.diag((p * (1 - p)).mean(axis=1))
        for group in relaxation.model.groups:
            block = np.ix_(group, group)
            within[block] = np.diag(mean[list(group)]) - p[list(group)] @ p[list(group)].T / p.shape[1]
        L = relaxation.cholesky
        return cls(L.T @ mean, _cholesky(np.eye(n) + L.T @ (covariance + within) @ L))

    @classmethod
    def of_draws(cls, z: FloatArray) -> _Gaussian:
        """From the mean and covariance of the draws."""
        mean = z.mean(axis=1)
        return cls(mean, _cholesky(_covariance(z, mean)))

    def log_density(self, z: FloatArray) -> FloatArray:
        """(n,) for z (N, n)."""
        y = _inverse(self.root) @ (z - self.mean[:, None])
        return np.asarray(-0.5 * np.einsum("ij,ij->j", y, y) - np.log(np.diag(self.root)).sum())


def _cholesky(covariance: FloatArray) -> FloatArray:
    return np.linalg.cholesky(covariance).astype(np.float64, copy=False)


def _inverse(root: FloatArray) -> FloatArray:
    """Of a lower triangular matrix; with many draws, products with it cost a third of triangular solves."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False))


def _covariance(values: FloatArray, mean: FloatArray) -> FloatArray:
    centred = values - mean[:, None]
    return np.asarray(centred @ centred.T / max(values.shape[1] - 1, 1))


def _halves(batches: int, n: int, chains: int) -> list[Rows]:
    everything = slice(None)
    if chains > 1:
        return [(everything, everything, slice(None, chains // 2)), (everything, everything, slice(chains // 2, None))]
    return [(slice(None, batches // 2), everything, everything), (slice(batches // 2, None), everything, everything)]


def _proposal_log_ratios(relaxation: Relaxation, q: _Gaussian, count: int, rng: np.random.Generator) -> FloatArray:
    """log p*(z) - log q(z), (count,), of draws z from q."""
    noise = rng.standard_normal((len(q.mean), count))
    z = q.mean[:, None] + q.root @ noise
    _, log_normaliser = relaxation.conditional((relaxation.cholesky @ z).T + relaxation.bias)
    target = log_normaliser - 0.5 * np.einsum("ij,ij->j", z, z)
    log_q = -0.5 * np.einsum("ij,ij->j", noise, noise) - np.log(np.diag(q.root)).sum()
    return np.asarray(target - log_q)


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
