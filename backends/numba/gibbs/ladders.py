"""What log Z asks beside the chains of any form: looks from both sides, and Murray and Salakhutdinov's ladders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from spinbench.backends.numba.gibbs.form import Array, Steps
from spinbench.backends.numba.gibbs.shared import INLINE, JIT, log_add, pointers, whole_vectors
from spinbench.backends.numba.gibbs.tables import Flat
from spinbench.backends.numba.gibbs.unit_updates import log_transition, update_unit
from spinbench.backends.numba.simd.memory import address, keep, load_table, load_uniform
from spinbench.backends.numba.simd.random import below, chain_keys, fill_rows


class Ladders(NamedTuple):
    """Those of all chains, see `spinbench.methods.gibbs.program.Ladder`.

    Attributes:
        keys: (C, 2) uint64.
        places: (2,) uint64, key of the places of the first states, shared by all chains.
        s: (C, N) the state reached.
        middle: (C, N) the first state.
        log_sum: (C,) log of the sum of T.
    """

    keys: Array
    places: Array
    s: Array
    middle: Array
    log_sum: Array


@dataclass
class LadderState:
    """The ladders and the states made so far, `rungs`."""

    ladders: Ladders
    rungs: int


def begin_ladders(seed: int, states: Array) -> LadderState:
    """Beside chains in `states` (N, C)."""
    n, chains = states.shape
    keys = chain_keys(seed, chains + 1).T.copy()
    empty = np.zeros((chains, n), dtype=states.dtype)
    return LadderState(Ladders(keys[1:], keys[0], empty, empty.copy(), np.zeros(chains)), 0)


def climb(flat: Flat, mode: Array, length: int, state: LadderState, rungs: int) -> dict[str, Array]:
    """The statistics of the next `rungs` states; mode (N,): s*, length: S."""
    total = np.full(len(state.ladders.s), -np.inf)
    run_ladders(flat, Steps(state.rungs, state.rungs + rungs), length, mode, state.ladders, total)
    ended = (state.rungs + rungs) // length - state.rungs // length
    state.rungs += rungs
    return {"ladder": total, "ladders": np.full(len(total), float(ended))}


@nb.njit(**INLINE)
def _sweep(g, units, backward, v, s, x):
    for k in range(units):
        q = units - 1 - k if backward else k
        update_unit(g, q, s, x, load_uniform(v, load_table(g.first, q)))


@nb.njit(**JIT)
def run_ladders(f, steps, length, mode, ladders, total):
    """total (C,) float64: log of the sum of S / Σ T over the ladders that end."""
    keys, places, s, middle, log_sum = ladders
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u, x = np.empty(whole_vectors(n), dtype=s.dtype), np.empty_like(s[0])
    v, fields = address(u, 0), address(x, 0)
    for c in range(s.shape[0]):
        row = address(s, c * n)
        for t in range(steps.first, steps.end):
            done = t % length
            place = below(places[0], places[1], np.uint64(t // length), length)
            if done == 0:
                s[c] = mode
            elif done == length - place:
                s[c] = middle[c]
            fill_rows(keys[c], np.uint64(t) * np.uint64(n + 1), u)
            _sweep(g, units, done == 0 or done >= length - place, v, row, fields)
            if done == 0:
                middle[c] = s[c]
            log_t = log_transition(g, units, row)
            log_sum[c] = log_t if done == 0 else log_add(log_sum[c], log_t)
            if done == length - 1:
                total[c] = log_add(total[c], np.log(length) - log_sum[c])
    keep(u)
    keep(x)


@nb.njit(**JIT)
def run_looks(f, keys, step, mode, s, log_t, log_r):
    """log T(s* <- s) at the states s (C, N) into log_t (C,), and at as many draws of R(. <- s*) into log_r (C,).

    keys (C, 2), apart from those of the sweeps; mode (N,) s*. R is the sweep in reverse order.
    """
    g, units, n = pointers(f), f.first.size, s.shape[1]
    u, x, drawn = np.empty(whole_vectors(n), dtype=s.dtype), np.empty(n, dtype=s.dtype), np.empty(n, dtype=s.dtype)
    v, fields, row = address(u, 0), address(x, 0), address(drawn, 0)
    for c in range(s.shape[0]):
        log_t[c] = log_transition(g, units, address(s, c * n))
        drawn[:] = mode
        fill_rows(keys[c], np.uint64(step) * np.uint64(n + 1), u)
        for k in range(units):
            q = units - 1 - k
            update_unit(g, q, row, fields, load_uniform(v, load_table(g.first, q)))
        log_r[c] = log_transition(g, units, row)
    keep(u)
    keep(x)
    keep(drawn)
