"""Swaps of rungs in compiled code; `spinbench.methods.tempering.ladders` says what they are.

Ladders are the last axis, filled up to whole vectors of eight by idle ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    ZERO,
    Array,
    Real,
    address,
    chain_keys,
    exp,
    fill_uniform,
    keep,
    load_vector,
    sigmoid,
    smaller,
    spread,
    store,
)

# Float64 numbers in a vector.
LANES = 8


class Ladder(NamedTuple):
    """L ladders of R rungs, whose replicas stand in S >= R slots.

    Attributes:
        slot: (R, L) uint32 of each rung.
        hot: (R, L) uint32, 1 where the rung's replica came from the first rung.
        heat: (S, L) β of each slot, in the precision of the sweeps; cold: 1 at the last rung, else 0.
        energy: (S, L) float64, D of the slots' states.
        zeros: (S, L) float64, hard zeros that they meet.
        betas: (R,) float64; levels: (R - 1,) float64.
        keys: (2, L) uint64, of the swaps' random numbers.
    """

    slot: Array
    hot: Array
    heat: Array
    cold: Array
    energy: Array
    zeros: Array
    betas: Array
    levels: Array
    keys: Array


class Tally(NamedTuple):
    """Sums over steps, float64: up, down, rejected (R - 1, L); at (R, L); trips, lost (L,)."""

    up: Array
    down: Array
    rejected: Array
    at: Array
    trips: Array
    lost: Array


def begin_ladders(seed: int, betas: Array, slots: int, ladders: int, real: Real) -> Ladder:
    """Slot k at rung k; what lies beyond stays at β = 0."""
    rungs = len(betas)
    shape = slots, ladders
    slot = np.repeat(np.arange(rungs, dtype=np.uint32)[:, None], ladders, axis=1)
    heat, cold = np.zeros(shape, dtype=real), np.zeros(shape, dtype=real)
    heat[:rungs], cold[rungs - 1] = betas[:, None], 1.0
    keys = np.ascontiguousarray(chain_keys(seed, ladders))
    hot = (slot == 0).astype(np.uint32)
    levels = np.zeros(rungs - 1)
    return Ladder(slot, hot, heat, cold, np.zeros(shape), np.zeros(shape), betas.copy(), levels, keys)


def zero_tally(rungs: int, ladders: int) -> Tally:
    """Before any step."""
    pair, every = (rungs - 1, ladders), (rungs, ladders)
    zeros = np.zeros
    return Tally(zeros(pair), zeros(pair), zeros(pair), zeros(every), zeros(ladders), zeros(ladders))


@njit(**INLINE)
def _tally_rung_pair(pair, step, level, ladders, at, tally, accepted):
    """What rungs `pair` and `pair` + 1 tell, and how likely they swap; `tally` and the others are pointers."""
    for place in range(pair * ladders, (pair + 1) * ladders, LANES):
        lower = load_vector(at, place) * step
        upper = load_vector(at, place + ladders) * step
        gain = lower - upper
        chance = exp(smaller(gain, ZERO(gain)))
        store(accepted, place, chance)
        up, down, rejected = tally
        c = spread(level)
        store(up, place, load_vector(up, place) + sigmoid(lower - c))
        store(down, place, load_vector(down, place) + sigmoid(c - upper))
        store(rejected, place, load_vector(rejected, place) + (spread(1.0) - chance))


@njit(**INLINE)
def _tally_swaps_into_last_rung(w, tally, at, accepted):
    """The same of the last two rungs, where hard zeros count."""
    r = len(w.levels) - 1
    step, c = w.betas[r + 1] - w.betas[r], w.levels[r]
    for k in range(at.shape[1]):
        # At β = 1 zeros are exact: a state that meets one has weight 0, so that it never moves to the last rung and
        # always leaves it.
        worse = w.zeros[w.slot[r, k], k] - w.zeros[w.slot[r + 1, k], k]
        gain = step * (at[r, k] - at[r + 1, k])
        accepted[r, k] = 0.0 if worse > 0 else 1.0 if worse < 0 else np.exp(min(gain, 0.0))
        tally.rejected[r, k] += 1.0 - accepted[r, k]
        if w.zeros[w.slot[r, k], k] == 0:
            tally.up[r, k] += 1.0 / (1.0 + np.exp(min(c - step * at[r, k], 700.0)))
        tally.down[r, k] += 1.0 / (1.0 + np.exp(min(step * at[r + 1, k] - c, 700.0)))
        tally.lost[k] += w.zeros[w.slot[r + 1, k], k] > 0


@njit(**INLINE)
def _move(w, tally, first, u, accepted):
    """Swaps of rungs first and first + 1, first + 2 and …, without branches, which could not be foreseen."""
    rungs, ladders = w.slot.shape
    for r in range(first, rungs - 1, 2):
        for k in range(ladders):
            swaps = u[r, k] < accepted[r, k]
            low, high = w.slot[r, k], w.slot[r + 1, k]
            w.slot[r, k], w.slot[r + 1, k] = (high, low) if swaps else (low, high)
            low, high = w.hot[r, k], w.hot[r + 1, k]
            w.hot[r, k], w.hot[r + 1, k] = (high, low) if swaps else (low, high)
    for k in range(ladders):
        # Each round trip contains one passage from the hottest rung to the coldest: the mark is set again at the
        # hottest rung.
        tally.trips[k] += w.hot[rungs - 1, k]
        w.hot[rungs - 1, k], w.hot[0, k] = 0, 1


@njit(**INLINE)
def _set_slot_betas(w):
    """β of every slot, by the rung that it has now."""
    rungs, ladders = w.slot.shape
    for r in range(rungs):
        for k in range(ladders):
            w.heat[w.slot[r, k], k] = w.betas[r]
    # The replica on the last rung came from one of the last two rungs: no other slot can have been marked as cold.
    for k in range(ladders):
        w.cold[w.slot[rungs - 2, k], k], w.cold[w.slot[rungs - 1, k], k] = 0, 1


@njit(**JIT)
def swap_rungs(w, tally, step, zeros, scratch):
    """One round of step number `step`; `zeros`: whether the model has any; scratch (3, R, L) float64."""
    at, accepted, u = scratch[0], scratch[1], scratch[2]
    rungs, ladders = w.slot.shape
    for r in range(rungs):
        for k in range(ladders):
            at[r, k] = w.energy[w.slot[r, k], k]
            tally.at[r, k] += at[r, k]
    sums = address(tally.up, 0), address(tally.down, 0), address(tally.rejected, 0)
    energies, chances = address(at, 0), address(accepted, 0)
    for r in range(rungs - 1 - zeros):
        _tally_rung_pair(r, w.betas[r + 1] - w.betas[r], w.levels[r], ladders, energies, sums, chances)
    if zeros:
        _tally_swaps_into_last_rung(w, tally, at, accepted)
    # Seeded by the step's number, so that swaps do not depend on how a run is cut into batches.
    fill_uniform(w.keys, np.uint64(step) * np.uint64(rungs + 1), u)
    # Even and odd pairs alternate: a replica that keeps its direction makes a round trip in O(R) steps, not O(R²)
    # (Okabe et al. 2001; Syed et al. 2022).
    _move(w, tally, step % 2, u, accepted)
    _set_slot_betas(w)
    keep(scratch)
