"""Metropolis updates in vectors of 16 chains; the laws of the moves are those of `methods.baselines.metropolis`."""

from __future__ import annotations

from spinbench.backends.numba.gibbs.shared import INLINE
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.functions import ONE, ZERO, at_least, constant
from spinbench.backends.numba.simd.memory import load_lanes
from spinbench.backends.numba.simd.vectors import choose
from spinbench.backends.numba.tables.look_ups import WORDS

RAREST = constant(1e-37, 1e-300)
"""Odds below are those of a zero, and above one over them of a one: `exp` saturates there."""


@njit(**INLINE)
def draw_metropolis_binary(x, away, u):
    """The other state of a binary variable with the lesser of 1 and its odds; those of state 0 are `away`."""
    none, leaves = x & 0, choose(away > RAREST(away), away, ZERO(away))
    rises = u * away < choose(away * RAREST(away) < ONE(away), ONE(away), ZERO(away))
    return choose(x == 0, choose(rises, none + 1, none), choose(u < leaves, none, none + 1))


@njit(**INLINE)
def draw_metropolis(weights, x, size, total, uniform, u):
    """The state to whose chance u falls, x where it is beyond those of all others; none of weight 0."""
    own, rest, others = ZERO(total), ZERO(total), ZERO(total)
    for k in range(size):
        weight = load_lanes(weights, 16 * k, WORDS)
        own = choose(x == k, weight, own)
        rest = rest + choose(x == k, ZERO(own), weight)
        others = others + choose(x == k, ZERO(own), ONE(own))
    goal = u * others if uniform else u
    upto, drawn = ZERO(own), x
    for k in range(size):
        weight = load_lanes(weights, 16 * k, WORDS)
        most = at_least(own, weight) if uniform else at_least(rest, total - weight)
        chance = choose(x == k, ZERO(own), choose(weight > ZERO(own), weight / most, ZERO(own)))
        drawn = choose(upto <= goal, choose(goal < upto + chance, (x & 0) + k, drawn), drawn)
        upto = upto + chance
    return drawn
