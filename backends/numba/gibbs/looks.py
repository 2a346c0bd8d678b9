"""What log Z asks beside the chains of any form, in the vectors over chains of the form "lanes".

Looks go from both sides: log T(s* <- s) at the chains' states, and at draws of R(. <- s*), the sweep in reverse order.
Chains climb through inverse temperatures β with the model's tables times β.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Chains, Copies, Request, Source, Steps
from spinbench.backends.numba.gibbs.lanes import (
    Block,
    Lanes,
    draw_row_uniforms,
    log_forced_rows,
    run_lanes,
    update_lanes,
)
from spinbench.backends.numba.gibbs.shared import JIT, WORD, set_walk, vector_width
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import (
    Array,
    address,
    empty_array,
    keep,
    pointers,
    spread,
    store,
    zero_array,
)

LANES = 16
# Largest number of states that are copied between two temperatures' slopes, beyond those of a sweep.
MAX_STATES = 2**18
# Options of sweeps that record nothing but states.
NOTHING = Request(False, False, 0, 0.0)


class Rungs(NamedTuple):
    """Attributes: betas (K,) inverse temperatures, at each of which `sweeps` are made; first: number of the first."""

    betas: Array
    sweeps: int
    first: int


def looks(source: Source, request: Request, keys: Array, step: int, states: Array) -> Array:
    """(2, K, B) log T(s* <- s) at the states (K, N, B), and at as many draws of R(. <- s*), which these become.

    Args:
        source: of the model's rows.
        request: of the kernel.
        keys: (K, 2, B) uint64, apart from those of the sweeps.
        step: that they are told apart by.
        states: 0 and 1 of the kernel's precision, in blocks of B chains.
    """
    # Log T is summed in float64 whatever the precision: Bennett's ratio exponentiates differences of it.
    logs = np.empty((2, len(states), states.shape[-1]))
    run_lane_looks(source.flat, request, keys, step, source.tables.mode.astype(states.dtype), states, logs)
    return logs


def load_looks(source: Source, request: Request) -> None:
    """Compile what looks run."""
    looks(source, request, np.empty((0, 2, LANES), dtype=WORD), 0, np.empty((0, 0, LANES), dtype=source.real))


@njit(**JIT)
def run_lane_looks(f, request, keys, step, mode, s, logs):
    """See `looks`: block by block; s become the draws of R."""
    blocks, n, count = s.shape
    level, u = zero_array(2 * count, s.dtype), zero_array(n * count, s.dtype)
    walk, saved = empty_array(count, np.uint64), empty_array(count, np.uint32)
    g, counter = pointers(f), np.uint64(step) * np.uint64(n + 1)
    walker, spare, v, levels = address(walk, 0), address(saved, 0), address(u, 0), address(level, 0)
    for k in range(blocks):
        gammas, states = address(keys, (2 * k + 1) * count), address(s, k * n * count)
        # A loop over both sides, so that their common code is compiled once.
        for side in range(2):
            b = Block(count, states, walker, gammas, spare, v, levels, address(logs, (side * blocks + k) * count))
            if side:
                set_walk(keys[k], counter, walker)
                for i in range(n):
                    for c in range(0, count, vector_width(states)):
                        store(states, i * count + c, spread(mode[i]))
                    # All random numbers are drawn before the sweep: streams run forward in rows and this sweep runs
                    # backward.
                    draw_row_uniforms(g, i, b)
                for i in range(n - 1, -1, -1):
                    update_lanes(g, i, b)
            logs[side, k] = request.fixed
            log_forced_rows(g, request.tail, b)
    keep(level, u, walk, saved, logs)


@njit(**JIT)
def lane_slopes(f, s, slopes):
    """a·s + ½ sᵀWs of states s (K, N, B) into slopes (K, B) float64."""
    x = empty_array(s.shape[2], np.float64)
    for k in range(s.shape[0]):
        states, total = s[k], slopes[k]
        total[:] = 0.0
        for i in range(len(states)):
            x[:] = f.biases[i]
            # Only entries of later rows: each coupling counts once, which gives the factor ½ of ½ sᵀWs.
            for e in range(f.start[i], f.later[i]):
                w, near = np.float64(f.weights[e]), states[f.columns[e]]
                for c in range(len(x)):
                    x[c] += w * near[c]
            row = states[i]
            for c in range(len(x)):
                total[c] += x[c] * row[c]


def climb_rungs(source: Source, seed: int, rungs: Rungs, states: Array) -> tuple[Array, Array]:
    """From `states` (C, N) through all rungs, one after the other: (states, slopes (K, S, C) after each sweep)."""
    count, lanes, f = len(states), Lanes(source), source.flat
    keys, s, x = lanes.begin(seed, states.T)
    chains = Chains(keys, s, x, np.zeros(count), *lanes.no_sums(s))
    slopes = np.empty((len(rungs.betas), rungs.sweeps, len(s), s.shape[2]))
    together = min(rungs.sweeps, 1 + MAX_STATES // max(s.size, 1))
    copies = Copies(1, 1, np.empty((together, *s.shape), dtype=s.dtype))
    for k, beta in enumerate(rungs.betas.astype(source.real)):
        # `forced` and `sign` are only used for log T, which is not recorded at other temperatures.
        tables = f._replace(weights=beta * f.weights, biases=beta * f.biases)
        for begin in range(0, rungs.sweeps, together):
            first, these = rungs.first + k * rungs.sweeps + begin, slopes[k, begin : begin + together]
            run_lanes(tables, NOTHING, Steps(first, first + len(these)), chains, copies, None)
            visited = copies.states[: len(these)].reshape(len(these) * len(s), *s.shape[1:])
            lane_slopes(f, visited, these.reshape(-1, s.shape[2]))
    return lanes.states(s, count), slopes.reshape(*slopes.shape[:2], -1)[:, :, :count]
