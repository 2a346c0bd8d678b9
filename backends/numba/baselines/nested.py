"""Nested sampling in compiled code, whole runs of populations; the laws are those of `methods.baselines.climb`.

The chains are in two halves, as the second makes more sweeps. In each, point j of population c is lane c P + j of
`LaneChains`, lane l place l % B of block l // B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gibbs.shared import CALLED, JIT, log_add
from spinbench.backends.numba.population.runs import choose_particles
from spinbench.backends.numba.simd.arrays import copy_into
from spinbench.backends.numba.tables.heights import sweep_above
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables
from spinbench.backends.numba.tables.sweeps import sum_weights
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.baselines.climb import MORE
from spinbench.methods.baselines.nested import NestedSampling
from spinbench.methods.baselines.shells import WIDTH, Tables
from spinbench.models import Model

Array = npt.NDArray[Any]
ANYWHERE = 1e30
"""So far above a level that all states leave room."""


class Ascent(NamedTuple):
    """Of a run.

    Attributes:
        levels: (T,) ascending, the first below all.
        order: (N',) int64, of the sweeps.
        firsts: (N,) int64, where each variable's states begin among all of them.
        sweeps: after each level.
        width: of a label.
    """

    levels: Array
    order: Array
    firsts: Array
    sweeps: int
    width: float


class Crowd(NamedTuple):
    """Of C populations.

    Attributes:
        spare: (K, N, B) for states; soft, hard: (K, B) D, and with hard zeros; above: (K, B) of the kernel's precision.
        left: (C, P) shares of points that are left; source: (C P,) lanes of those that are copied.
        log_x, scale, total: (C,) log of the share of states that is left; logs of what sums are relative to; these.
        hits: (C, S) of all states of all variables.
    """

    spare: Array
    soft: Array
    hard: Array
    above: Array
    left: Array
    source: Array
    log_x: Array
    scale: Array
    total: Array
    hits: Array


class Sums(NamedTuple):
    """Over steps, logs of sums: z, square (C,) of Ẑ and its square, p (S, C) of Ẑ times the share of each state."""

    z: Array
    square: Array
    p: Array


@nb.njit(**CALLED)
def _room(d, level, width):
    """The share of labels with which D and the label are above the level."""
    return min(max((d + width - level) / width, 0.0), 1.0)


@nb.njit(**JIT)
def _fall(a, k, crowd, u):
    """Of labels above level k - 1 those that are not above level k; which points are copied, if any is left."""
    chains, points = crowd.left.shape
    size = crowd.soft.shape[1]
    for c in range(chains):
        whole = 0.0
        for j in range(points):
            lane, share = c * points + j, 0.0
            if k < a.levels.size:
                d = crowd.soft[lane // size, lane % size]
                own = _room(d, a.levels[k - 1], a.width)
                share = _room(d, a.levels[k], a.width) / own if own > 0.0 else 0.0
            crowd.left[c, j] = share
            whole += share
            crowd.source[lane] = lane
        if whole > 0.0:
            begin = c * points
            choose_particles(crowd.left[c], whole, u[c], begin, crowd.source[begin : begin + points])


@nb.njit(**JIT)
def _gather(a, x, crowd):
    """Adds what falls to the sums, and takes its share off."""
    chains, points = crowd.left.shape
    size, n = crowd.soft.shape[1], x.shape[1]
    for c in range(chains):
        top, whole = -np.inf, 0.0
        for j in range(points):
            lane = c * points + j
            if crowd.left[c, j] < 1.0:
                top = max(top, crowd.hard[lane // size, lane % size])
            whole += crowd.left[c, j]
        top += crowd.log_x[c]
        if top > crowd.scale[c]:
            shrunk = np.exp(crowd.scale[c] - top)
            crowd.total[c] *= shrunk
            crowd.hits[c] *= shrunk
            crowd.scale[c] = top
        for j in range(points):
            lane = c * points + j
            block, place = lane // size, lane % size
            if crowd.left[c, j] < 1.0 and crowd.hard[block, place] > -np.inf and top > -np.inf:
                w = (1.0 - crowd.left[c, j]) * np.exp(crowd.hard[block, place] + crowd.log_x[c] - crowd.scale[c])
                crowd.total[c] += w
                for v in range(n):
                    crowd.hits[c, a.firsts[v] + x[block, v, place]] += w
        crowd.log_x[c] += np.log(whole / points) if whole > 0.0 else -np.inf


@nb.njit(**JIT)
def _copied(x, crowd):
    """As many points as before, drawn from those that are left, with what they weigh."""
    size = x.shape[2]
    copy_into(crowd.spare, x)
    copy_into(crowd.hard, crowd.soft)
    for lane in range(crowd.source.size):
        at = crowd.source[lane]
        if at != lane:
            for i in range(x.shape[1]):
                x[lane // size, i, lane % size] = crowd.spare[at // size, i, at % size]
            crowd.soft[lane // size, lane % size] = crowd.hard[at // size, at % size]


@nb.njit(**JIT)
def climb(t, a, first, u, chains, crowd):
    """A run of every population.

    Args:
        t: LaneTables.
        a: Ascent.
        first: number of the first sweep.
        u: (T, C) uniform numbers.
        chains: LaneChains; x is written to, betas is one over the width of labels.
        crowd: total, scale and hits are what is found.
    """
    crowd.log_x[:], crowd.total[:], crowd.hits[:] = 0.0, 0.0, 0.0
    crowd.scale[:] = -np.inf
    crowd.above[:] = ANYWHERE
    s = first
    for k in range(1, a.levels.size + 1):
        made = 1 if k == 1 else a.sweeps
        sweep_above(t, a.order, s, s + made, chains, crowd.above)  # once: it is inlined
        s += made
        for exact in range(2 if t.floored else 1):
            sum_weights(t, exact == 0, chains.x, crowd.hard if exact else crowd.soft)
        if not t.floored:
            copy_into(crowd.hard, crowd.soft)
        _fall(a, k, crowd, u[k - 1])
        _gather(a, chains.x, crowd)
        if k < a.levels.size:
            _copied(chains.x, crowd)
            for b in range(crowd.above.shape[0]):
                for c in range(crowd.above.shape[1]):
                    crowd.above[b, c] = (crowd.soft[b, c] - a.levels[k]) / a.width + 1.0


@nb.njit(**JIT)
def add_climb(crowd, begin, sums):
    """Adds a run of the populations from `begin` on to the sums."""
    points = crowd.left.shape[1]
    for i in range(crowd.total.size):
        if crowd.total[i] > 0.0:
            c, z = begin + i, crowd.scale[i] + np.log(crowd.total[i] / points)
            sums.z[c], sums.square[c] = log_add(sums.z[c], z), log_add(sums.square[c], 2.0 * z)
            for s in range(crowd.hits.shape[1]):
                if crowd.hits[i, s] > 0.0:
                    sums.p[s, c] = log_add(sums.p[s, c], z + np.log(crowd.hits[i, s] / crowd.total[i]))


@dataclass
class ClimbState:
    """Populations of one run; consumed by `advance`.

    Attributes:
        seed: of the run; step: runs so far.
        halves: points of the chains of both halves, either of which may be none.
        chains: populations in each half.
    """

    seed: int
    step: int
    halves: list[LaneChains]
    chains: tuple[int, int]


class NestedKernel(Kernel):
    """All settings of `NestedSampling`; float32 and float64. Sums are float64."""

    def __init__(self, method: NestedSampling, backend: Backend, model: Model, tables: Tables) -> None:
        flat, self._real = factor_tables(model), np.dtype(backend.precision)
        self._t = lane_tables(flat, self._real)
        sizes = np.asarray(flat.cardinalities, dtype=np.int64)
        firsts = np.cumsum(sizes) - sizes
        order, levels = sweep_order(flat, "raster")[0], tables.levels.astype(np.float64)
        self._halves = [Ascent(levels, order, firsts, more * method.sweeps, WIDTH) for more in (1, MORE)]
        self._points, self._states = len(tables.points), int(sizes.sum())
        self._reported = firsts[tables.variables] + tables.states

    def init(self, seed: int, start: Array) -> ClimbState:
        """Wherever chains start, points are drawn at β = 0."""
        first = start.shape[1] // 2
        counts = first, start.shape[1] - first
        seeds = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        zeros = (np.zeros((start.shape[0], max(count, 1) * self._points), dtype=np.int64) for count in counts)
        halves = [lane_chains(int(own), x, self._real) for own, x in zip(seeds, zeros, strict=True)]
        for half in halves:
            half.betas[:] = 1.0 / WIDTH
        return ClimbState(seed, 0, halves, counts)

    def warm(self, state: ClimbState, steps: int) -> ClimbState:
        """There is nothing to burn in."""
        state.step += steps
        return state

    def advance(self, state: ClimbState, steps: int) -> tuple[ClimbState, dict[str, Array]]:
        chains = sum(state.chains)
        sums = Sums(*(np.full(size, -np.inf) for size in (chains, chains, (self._states, chains))))
        crowds = [self._crowd(count, half) for count, half in zip(state.chains, state.halves, strict=True)]
        for step in range(state.step, state.step + steps):
            u = np.random.default_rng((state.seed, step)).random((len(self._halves[0].levels), chains))
            begin = 0
            for a, count, half, crowd in zip(self._halves, state.chains, state.halves, crowds, strict=True):
                if count:
                    deadline.check()
                    first = step * (1 + len(a.levels) * a.sweeps)
                    climb(self._t, a, first, u[:, begin : begin + count].copy(), half, crowd)
                    add_climb(crowd, begin, sums)
                    begin += count
        state.step += steps
        return state, {"z": sums.z, "square": sums.square, "p": sums.p[self._reported]}

    def _crowd(self, count: int, half: LaneChains) -> Crowd:
        return Crowd(
            spare=np.zeros_like(half.x),
            soft=np.zeros(half.betas.shape),
            hard=np.zeros(half.betas.shape),
            above=np.zeros(half.betas.shape, dtype=self._real),
            left=np.zeros((count, self._points)),
            source=np.zeros(count * self._points, dtype=np.int64),
            log_x=np.zeros(count),
            scale=np.zeros(count),
            total=np.zeros(count),
            hits=np.zeros((count, self._states)),
        )
