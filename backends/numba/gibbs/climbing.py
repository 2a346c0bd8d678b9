"""Sweeps at inverse temperatures β: the model's tables times β go through the form "lanes" as they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Asked, Chains, Steps
from spinbench.backends.numba.gibbs.lanes import Lanes, sweep_lanes
from spinbench.backends.numba.gibbs.shared import INLINE, JIT
from spinbench.backends.numba.gibbs.tables import Flat, Source
from spinbench.backends.numba.kernel_cache import njit

NOTHING = Asked(False, False, 0, 0, 0.0)
"""What sweeps report besides their states."""


class Rungs(NamedTuple):
    """Attributes: betas (K,) inverse temperatures, at each of which `sweeps` are made; first: number of the first."""

    betas: Array
    sweeps: int
    first: int


@njit(**INLINE)
def _tempered(f, beta):
    """The tables of p*^β."""
    weights, biases = f.weights.dtype.type(beta) * f.weights, f.biases.dtype.type(beta) * f.biases
    return Flat(f.start, f.later, f.columns, weights, biases, f.forced, f.sign, f.sequence)


@njit(**INLINE)
def _lane_slopes(f, s, slopes):
    """a·s + ½ sᵀWs of states s (K, N, B) into slopes (K, B) float64."""
    x = np.empty(s.shape[2])
    for k in range(s.shape[0]):
        states, total = s[k], slopes[k]
        total[:] = 0.0
        for i in range(len(states)):
            x[:] = f.biases[i]
            for e in range(f.start[i], f.later[i]):
                w, near = np.float64(f.weights[e]), states[f.columns[e]]
                for c in range(len(x)):
                    x[c] += w * near[c]
            own = states[i]
            for c in range(len(x)):
                total[c] += x[c] * own[c]


@njit(**JIT)
def lane_slopes(f, s, slopes):
    _lane_slopes(f, s, slopes)


@njit(**JIT)
def row_slopes(f, s, slopes):
    """The same of states s (C, N) into slopes (C,) float64."""
    for c in range(len(s)):
        states, total = s[c], 0.0
        for i in range(len(states)):
            if states[i] > 0:
                x = np.float64(f.biases[i])
                for e in range(f.start[i], f.later[i]):
                    x += np.float64(f.weights[e]) * states[f.columns[e]]
                total += x
        slopes[c] = total


@njit(**JIT)
def _climb_lanes(f, rungs, keys, s, slopes):
    """slopes (K, S, blocks, B)."""
    sums, log_t = np.zeros(s.shape), np.zeros((s.shape[0], s.shape[2]))
    chains = Chains(keys, s, s[0], log_t, sums, log_t)
    t = rungs.first
    for k in range(len(rungs.betas)):
        g = _tempered(f, rungs.betas[k])
        for j in range(rungs.sweeps):
            sweep_lanes(g, NOTHING, Steps(t, t + 1), chains, None)
            _lane_slopes(f, s, slopes[k, j])
            t += 1


def load_rungs(source: Source) -> None:
    """Compile what `climb_rungs` runs, and what is seen of chains that have climbed."""
    row_slopes(source.flat, np.empty((0, 0), dtype=source.real), np.empty(0))
    none = Rungs(np.empty(0), 1, 0)
    keys, s, _ = Lanes(source).begin(0, np.empty((0, 1), dtype=source.real))
    _climb_lanes(source.flat, none, keys, s, np.empty((0, 1, *s.shape[::2])))


def climb_rungs(source: Source, seed: int, rungs: Rungs, states: Array) -> tuple[Array, Array]:
    """From `states` (C, N) through all rungs, one after the other: (states, slopes (K, S, C) after each sweep)."""
    chains = len(states)
    shape = len(rungs.betas), rungs.sweeps
    lanes = Lanes(source)
    keys, s, _ = lanes.begin(seed, states.T)
    slopes = np.empty((*shape, len(s), s.shape[2]))
    _climb_lanes(source.flat, rungs, keys, s, slopes)
    return lanes.states(s, chains), slopes.reshape(*shape, -1)[:, :, :chains]
