"""Log ratios of normalising constants from draws of both laws, by Bennett's ratio, and numbers beside such a ratio."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.mathematics.chains import FEWEST_CHAINS, errors_of_means, r_hat_of
from spinbench.mathematics.claims import (
    BOUND,
    FEWEST_BATCHES,
    LEAST_DRAW,
    LEAST_OVERLAP,
    LEAST_WEIGHT,
    NOTHING,
    UNSEEN,
    Claim,
    error_bound,
    expit,
    memory_share,
    t_factor,
)
from spinbench.mathematics.statistics import FloatArray, standard_error

# Largest distance of two estimates of one number in joint standard errors: two would be 95 %, and several estimates of
# a run are compared.
CONTRADICTED = 3.0
# Newton steps stop when a log ratio moves by less than CLOSE; a step that does not shrink is replaced by bisection, and
# a hundred of these reduce any interval to rounding.
MOST_STEPS, CLOSE = 100, 1e-12
# Smallest error of a one-sided estimate, relative to the two-sided one's: an average over one side uses more draws but
# does not show which states they miss.
SHARED = 0.5


class Ratio(NamedTuple):
    """A log ratio of normalising constants from draws of both laws.

    Attributes:
        value: the log ratio.
        se: its standard error.
        error_bound: its error bound, no less than `se`.
        overlap: of the two laws, 0 to 1; weight: the number of draws, in effect, that both share.
        supported: whether the claim may be believed.
    """

    value: float
    se: float
    error_bound: float
    overlap: float
    weight: float
    supported: bool

    @property
    def claim(self) -> Claim:
        """The value with its errors, which are infinite where nothing supports it."""
        if not self.supported:
            return Claim(self.value, np.inf, np.inf)
        return Claim(self.value, self.se, self.error_bound)


def ratio(
    forward: FloatArray, backward: FloatArray, fewest_chains: int = FEWEST_CHAINS, unseen: float = UNSEEN
) -> Ratio:
    """Log of E_p[e^-x]^-1 = E_q[e^x], x = log of dp/dq up to the constant that is asked for, by Bennett's ratio.

    Bennett, "Efficient estimation of free energy differences from Monte Carlo data", J. Comput. Phys. 1976; Meng and
    Wong, "Simulating ratios of normalizing constants via a simple identity", Statistica Sinica 1996.

    Args:
        forward: (B, C) x at states of chains that sample p, evenly spaced.
        backward: (R,) x at independent draws of q.
        fewest_chains: fewer support nothing.
        unseen: over the number of independent ones of the first is the least bound, for states that they do not show.
    """
    chains, n_backward = forward.shape[1], backward.size
    error = 0.0
    if len(forward) >= FEWEST_BATCHES:
        error = float(standard_error(forward))
    effective = float(forward.size)
    if error > NOTHING:
        # Draws of a chain are correlated: their effective number is n_f = var / se².
        effective = float(np.clip(forward.var() / error**2, 4.0, forward.size))
    shift = float(np.log(n_backward / effective))
    (value,), (a,), (b,) = balance(forward.reshape(1, -1), backward.reshape(1, -1), shift, effective / forward.size)
    value, a = float(value), a.reshape(forward.shape)
    weight = float(effective * (a * (1 - a)).mean() + (b * (1 - b)).sum())
    overlap = weight * (effective + n_backward) / (effective * n_backward)
    if not weight > NOTHING:
        return Ratio(value, np.inf, np.inf, 0.0, 0.0, supported=False)
    of_chains = errors_of_means(a[:, None])
    remembered_spread = float((memory_share(r_hat_of(a[:, None])) * of_chains.spread)[0])
    of_draws = n_backward * float(b.var(ddof=min(n_backward - 1, 1)))

    factor = float(t_factor(of_chains.freedom)[0]) / weight
    scatter = factor * float(np.hypot(effective * of_chains.se[0], np.sqrt(of_draws)))
    memory = factor * effective * remembered_spread
    # Either the relevant states were seen, and the error is their scatter, or they were not, and the bound for unseen
    # states applies.
    se = max(scatter, LEAST_DRAW / effective)
    bound = float(max(error_bound(scatter, memory=memory), error_bound(0.0, unseen / effective)))
    enough = chains >= fewest_chains and len(forward) >= FEWEST_BATCHES and n_backward >= 2
    supported = enough and overlap >= LEAST_OVERLAP and weight >= LEAST_WEIGHT
    return Ratio(value, se, bound, float(overlap), weight, supported)


def beside(estimate: Claim, reference: Ratio) -> Claim:
    """The errors of an estimate that cannot tell by itself when it is wrong, beside one that can.

    Returns:
        Errors that are infinite where the reference supports nothing or contradicts it, else the larger ones of both,
        widened by as much of their distance as these do not explain.
    """
    distance = estimate.value - reference.value
    # Joint standard error that corresponds to both error bounds.
    joint = float(np.hypot(estimate.error_bound, reference.error_bound)) / BOUND
    if not (reference.supported and np.isfinite(estimate.error_bound) and abs(distance) <= CONTRADICTED * joint):
        return Claim(estimate.value, np.inf, np.inf)
    bias = np.sqrt(max(distance**2 - joint**2, 0.0))
    se, bound = max(estimate.se, reference.se), max(estimate.error_bound, reference.error_bound)
    return Claim(estimate.value, float(np.hypot(se, bias)), float(np.hypot(bound, BOUND * bias)))


def one_sided(value: float, se: float, reference: Ratio) -> Claim:
    """The errors of an average that draws of one side made, of which the reference took draws of both.

    Where both are off alike, for they share draws, neither the own error nor the distance shows it.

    Returns:
        Errors that are infinite where the reference supports nothing, else widened by the distance, and no less than
        `SHARED` of the reference's.
    """
    if not (reference.supported and np.isfinite(se)):
        return Claim(value, np.inf, np.inf)
    apart = float(np.hypot(se, value - reference.value))
    return Claim(value, max(apart, SHARED * reference.se), max(BOUND * apart, SHARED * reference.error_bound))


def balance(
    upper: FloatArray, lower: FloatArray, shift: float, each: float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the weights of the two sides of P pairs are equal, and each draw's there: values (P,), (P, n) and (P, m).

    Their difference falls in the value: by Newton's steps, or halves where these lead out of what is left or hardly on.

    Args:
        upper: (P, n) x at draws of one law.
        lower: (P, m) x at draws of the other.
        shift: log of the number of draws of the other over that of the one.
        each: draws of the one that each of its counts for.
    """
    low = np.minimum(upper.min(axis=1), lower.min(axis=1)) - 10.0 - abs(shift)
    high = np.maximum(upper.max(axis=1), lower.max(axis=1)) + 10.0 + abs(shift)
    value, moved = (low + high) / 2, high - low
    for _ in range(MOST_STEPS):
        a, b = expit(value[:, None] - upper + shift), expit(lower - value[:, None] - shift)
        if (moved <= CLOSE * np.maximum(np.abs(value), 1.0)).all():
            break
        # D of Bennett's ratio: Newton's derivative, and the inverse of the variance up to a common factor of both
        # sides.
        weight = each * (a * (1 - a)).sum(axis=1) + (b * (1 - b)).sum(axis=1)
        gap = b.sum(axis=1) - each * a.sum(axis=1)
        low, high = np.where(gap > 0, value, low), np.where(gap > 0, high, value)
        newton = value + np.clip(gap / np.maximum(weight, np.finfo(float).tiny), low - high, high - low)
        fast = (low <= newton) & (newton <= high) & (2 * np.abs(newton - value) <= moved) & (weight > NOTHING)
        following = np.where(fast, newton, (low + high) / 2)
        value, moved = following, np.abs(following - value)
    return value, a, b
