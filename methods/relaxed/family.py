"""What block Gibbs and DHMC share: conditional draws on a backend's arrays, and the way from a trace to an estimate.

All arrays of chains are (N, C). u = α + b are the log-odds of the units given x (`mathematics.relaxation.density`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Key,
    MarginalClaims,
    Model,
    Namespace,
    PairwiseModel,
    Trace,
    marginal_claims,
)
from spinbench.api.trace import MAX_BATCHES
from spinbench.errors import UnsupportedError
from spinbench.foundation.arithmetic import take
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import BOUND, log_z_parts
from spinbench.mathematics.relaxation import estimators
from spinbench.mathematics.relaxation.density import DENSE_BYTES, EdgeFactor, Relaxation, Sites, bytes_of
from spinbench.mathematics.relaxation.estimators import LogZEstimates
from spinbench.methods.relaxed.digest import GaussianDigest

FloatArray = npt.NDArray[np.float64]
LogZ = Literal["bridge", "mirrored", "mirrored_in_sample", "zero_state", "none"]
# Quantile of the variables' autocorrelation times that error bounds use, here the slowest variable: a few strongly
# coupled units cross between wells of x together, and no other variable may show it.
SLOWEST_SHARE = 1.0
# A chain mean farther than this many standard errors from the run's mean shows that burn-in was too short; among N
# variables at several times some are off by 3 by chance.
MAX_ARRIVAL_SE = 4.0


def planning_seconds(model: Model, factor: str) -> float:
    """About what factors of Q take on one core: eigenvectors, else Cholesky's and an inverse; none where it is sparse,
    or refused."""
    n, cubes = model.num_variables, {"edges": 0.0, "harmonium": 1.6e-10}.get(factor, 8e-11)
    return cubes * n**3 if bytes_of(n) <= DENSE_BYTES else 0.0


def check_model(model: PairwiseModel, log_z: LogZ) -> None:
    """Raises UnsupportedError for the estimator that groups rule out."""
    if log_z == "zero_state" and model.groups:
        raise UnsupportedError(
            f"{model.name}: log_z=zero_state needs the state s = 0, which its 1-of-K groups forbid; bridge is allowed"
        )


def unit_means(xp: Namespace, sites: Sites | None, u: Array) -> Array:
    """(N, C): p(s_i = 1|x)."""
    if sites is None:
        # tanh neither overflows nor branches, where 1 / (1 + e^-u) does in float32.
        return 0.5 * xp.tanh(0.5 * u) + 0.5
    return xp.exp(u - xp.take(_site_normalisers(xp, sites, u), sites.site, axis=0))


def log_normaliser(xp: Namespace, sites: Sites | None, u: Array) -> Array:
    """(C,): log Σ_s exp(s·u)."""
    if sites is None:
        return xp.sum(xp.maximum(u, 0.0) + xp.log1p(xp.exp(-xp.abs(u))), axis=0)
    return xp.sum(_site_normalisers(xp, sites, u), axis=0)


def _site_normalisers(xp: Namespace, sites: Sites, u: Array) -> Array:
    """(M, C): log of the summed weights of each site's choices."""
    off = xp.zeros_like(u[:1, :])
    padded = take(xp, xp.concat([u, off, off - np.inf], axis=0), sites.members)
    top = xp.max(padded, axis=1)
    return top + xp.log(xp.sum(xp.exp(padded - top[:, None, :]), axis=1))


def draw_units(backend: Backend, key: Key, sites: Sites | None, p: Array) -> Array:
    """(N, C) states drawn from p(s|x), of the backend's real type, for `p` from `unit_means`."""
    xp = backend.xp
    if sites is None:
        return xp.astype(backend.uniform(key, p.shape) < p, backend.real)
    v = backend.uniform(key, (sites.members.shape[0], p.shape[1]))
    none = xp.zeros_like(p[:1, :])
    cumulative = xp.cumulative_sum(take(xp, xp.concat([p, none, none], axis=0), sites.members), axis=1)
    num_passed = xp.count_nonzero(v[:, None, :] >= cumulative, axis=1)
    choices = xp.minimum(num_passed, sites.last[:, None])
    return xp.astype(xp.take(choices, sites.site, axis=0) == sites.slot[:, None], backend.real)


def edge_gram_product(xp: Namespace, edges: EdgeFactor, v: Array, noise: Array | None = None) -> Array:
    """(N, C): Qv, plus a draw of N(0, Q) where `noise`, (E + N, C) standard normal, is given."""
    first, second = edges.ends[:, 0], edges.ends[:, 1]
    edge_terms = edges.weights[:, None] * (
        xp.take(v, first, axis=0) + edges.signs[:, None] * xp.take(v, second, axis=0)
    )
    unit_terms = edges.rest[:, None] * v
    if noise is not None:
        on_edges, on_units = _scale_noise(xp, edges, noise)
        edge_terms, unit_terms = edge_terms + on_edges, unit_terms + on_units
    return _sum_incident_edges(xp, edges, edge_terms, unit_terms)


def edge_noise(xp: Namespace, edges: EdgeFactor, noise: Array) -> Array:
    """(N, C): a draw of N(0, Q) from `noise`, (E + N, C) standard normal."""
    return _sum_incident_edges(xp, edges, *_scale_noise(xp, edges, noise))


def _scale_noise(xp: Namespace, edges: EdgeFactor, noise: Array) -> tuple[Array, Array]:
    count = edges.weights.shape[0]
    on_edges = xp.sqrt(edges.weights)[:, None] * noise[:count, :]
    return on_edges, xp.sqrt(edges.rest)[:, None] * noise[count:, :]


def _sum_incident_edges(xp: Namespace, edges: EdgeFactor, edge_terms: Array, unit_terms: Array) -> Array:
    padded = xp.concat([edge_terms, xp.zeros_like(unit_terms[:1, :])], axis=0)
    return unit_terms + xp.sum(take(xp, padded, edges.incident) * edges.incident_signs[:, :, None], axis=1)


def relaxed_estimate(
    relaxation: Relaxation,
    trace: Trace,
    log_z: LogZ,
    units: str = "p",
    diagnostics: Mapping[str, float] | None = None,
) -> Estimate:
    """Marginals from the statistic `units`, log Z as `log_z` asks, with their errors.

    Args:
        relaxation: of the model.
        trace: with `units`, "sum" of (N, C), and looks at α.
        log_z: which estimator is the answer; where it has too few draws, there is none and log Z is unresolved.
        units: name of the statistic.
        diagnostics: to be passed on.
    """
    # Merged batches give as good standard errors as all batches, at less cost.
    series = trace.series(units, most=MAX_BATCHES)
    marginals = trace.mean(units).mean(axis=-1)
    impossible, certain = np.zeros(len(marginals)), np.ones(len(marginals))
    errors = marginal_claims(series, trace.samples, impossible, certain, slow=SLOWEST_SHARE)
    if np.isfinite(visits := max_visits_from_arrivals(trace, marginals, errors)):
        errors = marginal_claims(series, trace.samples, impossible, certain, visits, SLOWEST_SHARE)
    doubts = [f"marginals {errors.doubt}"] if errors.doubt else []
    log_z_estimates = LogZEstimates()
    if log_z != "none":
        log_z_estimates = _estimate_log_z(relaxation, trace, log_z, errors.memory)
    reported = log_z_estimates.estimates.get(log_z)
    if log_z != "none" and (reported is None or not np.isfinite(reported.error_bound)):
        doubts.append("log Z unresolved")
    return Estimate(
        marginals=marginals,
        marginals_se=errors.se,
        marginals_error_bound=errors.error_bounds,
        **log_z_parts(reported, log_z_estimates.estimates),
        ess=statistics.effective_sample_size(marginals, errors.mcse, trace.samples * series.shape[-1]),
        r_hat=errors.r_hat,
        diagnostics={**(diagnostics or {}), **log_z_estimates.diagnostics},
        doubts=tuple(doubts),
    )


def _estimate_log_z(relaxation: Relaxation, trace: Trace, log_z: LogZ, memory: float) -> LogZEstimates:
    if relaxation.model.num_variables > estimators.MAX_VARIABLES:
        return LogZEstimates({}, {"log_z_max_variables": float(estimators.MAX_VARIABLES)})
    if isinstance(trace.digest, GaussianDigest) and trace.digest.fit is not None:
        return trace.digest.log_z(trace.looks, memory)
    if not trace.looks:
        return LogZEstimates()
    alpha = trace.looked("alpha")
    if log_z == "zero_state":
        _, normaliser = relaxation.conditional(alpha.transpose(0, 2, 1) + relaxation.bias)
        return estimators.zero_state(relaxation, -normaliser, alpha)
    return estimators.gaussian(relaxation, alpha, memory, in_sample=log_z == "mirrored_in_sample")


def max_visits_from_arrivals(trace: Trace, means: np.ndarray, errors: MarginalClaims) -> float:
    """Independent draws at most: samples of all chains over the steps that the slowest took to leave; else infinite.

    Chains may spend all of a run in one well and none in another that holds a few per cent; nothing in the run then
    tells how slow the way between them is. Its burn-in does: random starts are in both, and who left the lighter one
    after t steps has a way back, which is taken once in t steps for as much as the well weighs.

    Args:
        trace: of the run, with its `arrivals`.
        means: (N,) of what is watched.
        errors: of these means, without such a limit.
    """
    room = 2 / BOUND * errors.error_bounds
    # The value within the mean's error bound that is nearest to ½: the scatter of chains is largest there, which avoids
    # false warnings.
    nearest = np.clip(0.5, np.maximum(means - room, 0.0), np.minimum(means + room, 1.0))
    for arrival in reversed(trace.arrivals):
        chains = arrival.values.shape[-1]
        chance = np.sqrt(nearest * (1 - nearest) / chains)
        if (np.abs(arrival.values.mean(axis=-1) - means) > MAX_ARRIVAL_SE * chance + room).any():
            return float(trace.samples * chains / arrival.steps)
    return math.inf
