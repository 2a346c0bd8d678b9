"""log Z by stepping stones: Bennett's ratio from each inverse temperature β to the next, from a law whose sum is known.

Xie, Lewis, Fan, Kuo, Chen, "Improving marginal likelihood estimation for Bayesian phylogenetic model selection",
Systematic Biology 2011, with the ratio of Bennett (J. Comput. Phys. 1976) in place of one-sided means. At β a state s
has the weight e^{β V(s)}, where V = d log p*_β / dβ; the logarithm of the ratio of two neighbours' weights is Δβ V.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.mathematics.bennett import Ratio, balance
from spinbench.mathematics.chains import FEWEST_CHAINS, are_apart, errors_of_means, r_hat_of
from spinbench.mathematics.claims import (
    FEWEST_BATCHES,
    LARGEST_R_HAT,
    LEAST_OVERLAP,
    LEAST_WEIGHT,
    NOTHING,
    error_bound,
    memory_share,
    t_factor,
)
from spinbench.mathematics.statistics import FloatArray

# Distance of rungs in nats, ∫ sd(V) dβ: at 1 the measured overlap of neighbours is at least 0.55.
STEP = 1.0
# Largest distance: at 2 the overlap is at least 0.22 and short rungs lose no precision; at 3 they do.
WIDEST_STEP = 2.0
# Smallest number of sweeps per rung, a quarter of which is burn-in, since chains come from the rung below. With fewer
# than six, log Z of strong spin glasses comes out about one standard error too low.
FEWEST_SWEEPS = 6
# Below this number of sweeps per rung the number of rungs is reduced first: half as many gave the same errors.
FEW_SWEEPS = 10
# Smallest and largest number of temperatures of the pilot run.
PILOT = (8, 24)


class Schedule(NamedTuple):
    """Attributes: betas (K + 1,) from 0 to 1; sweeps of each rung but the last, which is the run; needed: in all."""

    betas: FloatArray
    sweeps: int
    needed: int


def pilot_betas(sweeps: int) -> FloatArray:
    """Temperatures at which the spread of V is looked at, of which `sweeps` may be spent on about a quarter.

    They are dense near 0, where V varies most.
    """
    count = int(np.clip(sweeps // 8, *PILOT))
    return np.linspace(0.0, 1.0, count + 1) ** 2


def schedule(betas: FloatArray, spread: FloatArray, target_sweeps: int, max_sweeps: int) -> Schedule | None:
    """Rungs at equal steps of ∫ sd(V) dβ.

    Args:
        betas: (P,) of the pilot.
        spread: (P,) sd(V) there.
        wanted: sweeps to spend.
        most: sweeps that may be spent where `wanted` are too few.

    Returns:
        None where not even `most` are enough: see `sweeps_needed`.
    """
    arc = _arc(betas, spread)
    finest, coarsest = (max(1, int(np.ceil(arc[-1] / step))) for step in (STEP, WIDEST_STEP))
    rungs = int(np.clip(target_sweeps // FEW_SWEEPS, coarsest, finest))
    sweeps = max(target_sweeps // rungs, FEWEST_SWEEPS)
    if rungs * sweeps > max(max_sweeps, target_sweeps):
        return None
    return Schedule(np.interp(np.linspace(0.0, arc[-1], rungs + 1), arc, betas), sweeps, rungs * sweeps)


def sweeps_needed(betas: FloatArray, spread: FloatArray) -> int:
    """The fewest sweeps that a schedule takes."""
    return FEWEST_SWEEPS * max(1, int(np.ceil(_arc(betas, spread)[-1] / WIDEST_STEP)))


def stepping_stones(betas: FloatArray, climbed: FloatArray, top: FloatArray) -> Ratio:
    """The log of the sum of weights at β = 1 over that at β = 0.

    Args:
        betas: (K,) of the rungs below 1, ascending; betas[0] = 0, where states are independent draws.
        climbed: (S, K, C) V at states of C chains that walk up, S of each rung.
        top: (L, C) V at states of the same chains at β = 1.
    """
    steps = np.diff(np.append(betas, 1.0))
    pairs = [
        _neighbours(steps[:-1, None] * _flat(climbed[:, 1:]), steps[:-1, None] * _flat(climbed[:, :-1])),
        _neighbours(steps[-1:, None] * _flat(top[:, None]), steps[-1:, None] * _flat(climbed[:, -1:])),
    ]
    value = float(sum(pair.value.sum() for pair in pairs))
    weight = np.concatenate([pair.weight for pair in pairs])
    overlap = np.concatenate([pair.overlap for pair in pairs])
    if not (weight > NOTHING).all():
        return Ratio(value, np.inf, np.inf, 0.0, 0.0, supported=False)
    sways, chains = _sways(pairs, climbed, top), top.shape[1]
    errors = [errors_of_means(sway) for sway in sways]
    variances = np.concatenate([each.se for each in errors]) ** 2
    variance = float(variances.sum())
    # Of a sum of independent variances: Satterthwaite, "An approximate distribution of estimates of variance
    # components", Biometrics Bulletin 1946.
    per_rung = variances**2 / np.concatenate([each.freedom for each in errors])
    freedom = variance**2 / max(float(per_rung.sum()), np.finfo(float).tiny)
    # Sum of a chain's deviations over all rungs: one chain climbs all of them, so that the errors of rungs are
    # correlated.
    along = sum(sway.mean(axis=0).sum(axis=0) for sway in sways)
    between = float(np.var(along, ddof=min(chains - 1, 1))) / chains
    if are_apart(np.sqrt(between), np.sqrt(variance), chains):
        variance, freedom = between, chains - 1.0
    shares = [memory_share(r_hat_of(slopes)) for slopes in (climbed, top[:, None])]
    remembered = np.concatenate([share * each.spread for share, each in zip(shares, errors, strict=True)])
    factor = float(t_factor(freedom))
    se, memory = factor * variance**0.5, factor * float(np.linalg.norm(remembered))
    bound = float(error_bound(se, memory=memory))
    enough = chains >= FEWEST_CHAINS and min(len(climbed), len(top)) >= FEWEST_BATCHES
    # Otherwise chains got stuck on the way up, and log Z is too low.
    enough = enough and bool(r_hat_of(top[:, None])[0] <= LARGEST_R_HAT)
    supported = enough and overlap.min() >= LEAST_OVERLAP and weight.min() >= LEAST_WEIGHT
    return Ratio(value, se, bound, float(overlap.min()), float(weight.min()), bool(supported))


class _Pairs(NamedTuple):
    """Of P pairs of neighbours: value, overlap, weight (P,); upper, lower (P, n), the influence of each draw."""

    value: FloatArray
    overlap: FloatArray
    weight: FloatArray
    upper: FloatArray
    lower: FloatArray


def _arc(betas: FloatArray, spread: FloatArray) -> FloatArray:
    """(P,) ∫ sd(V) dβ from 0, strictly ascending."""
    pieces = np.diff(betas) * (spread[1:] + spread[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(pieces + 1e-12)])


def _flat(slopes: FloatArray) -> FloatArray:
    """(P, S C) from (S, P, C)."""
    sweeps, rungs, chains = slopes.shape
    return slopes.swapaxes(0, 1).reshape(rungs, sweeps * chains)


def _neighbours(upper: FloatArray, lower: FloatArray) -> _Pairs:
    """Bennett's ratio of P pairs at once, from Δβ V at the upper (P, n) and the lower rungs (P, m)."""
    n, m = upper.shape[1], lower.shape[1]
    value, a, b = balance(upper, lower, float(np.log(m / n)))
    weight = (a * (1 - a)).sum(axis=1) + (b * (1 - b)).sum(axis=1)
    safe = np.maximum(weight, np.finfo(float).tiny)[:, None]
    return _Pairs(
        value,
        weight * (n + m) / (n * m),
        weight,
        -(a - a.mean(axis=1, keepdims=True)) * n / safe,
        (b - b.mean(axis=1, keepdims=True)) * m / safe,
    )


def _sways(pairs: list[_Pairs], climbed: FloatArray, top: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much each draw, times the number of its rung's, moves the sum: (S, K, C) and (L, 1, C)."""
    sweeps, rungs, chains = climbed.shape
    below = np.zeros((rungs, sweeps * chains))
    below[1:] += pairs[0].upper
    below[:-1] += pairs[0].lower
    below[-1:] += pairs[1].lower
    return below.reshape(rungs, sweeps, chains).swapaxes(0, 1), pairs[1].upper.reshape(len(top), 1, chains)
