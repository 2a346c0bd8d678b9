"""Annealed populations in compiled code, of any factor graph: sweeps over factor tables, weights, resampling.

Particle j of population c is lane c P + j of `LaneChains`, lane l place l % B of block l // B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import Backend, Kernel, Model
from spinbench.backends.numba.gibbs.shared import CALLED, JIT
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import Array, copy_into, empty_array, exp
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables, merge_lane_blocks
from spinbench.backends.numba.tables.sweeps import Request, run_sweeps, sum_weights
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import marginal_rows, state_rows, sweep_order
from spinbench.methods.population import program, smc

# Variable updates of one call, some 20 ms: between calls a run of a large model can be stopped.
UPDATES = 2**22


class Course(NamedTuple):
    """Of a run.

    Attributes:
        betas: (T + 1,) of the kernel's precision, from 0 to 1.
        order: (N',) int64, of the sweeps.
        moves: sweeps at each temperature.
        resample: share of effective particles below which they are drawn anew; 0: never.
        first: number of the first sweep.
    """

    betas: Array
    order: Array
    moves: int
    resample: float
    first: int


class Particles(NamedTuple):
    """Of C populations. Attributes: log_w (C, P) float64; log_z (C,) what resampling took; spare: (K, N, B) for
    states; source (C P,) int64 lanes; log_p: (K, B) float64."""

    log_w: Array
    log_z: Array
    spare: Array
    source: Array
    log_p: Array


class States(NamedTuple):
    """Of all variables, M. Attributes: rows (M,) of what sweeps report; signs (M,): -1 of 1 - p, 0 of 1."""

    rows: Array
    signs: Array


class StepSums(NamedTuple):
    """Logs of sums over runs. Attributes: z (C,) of Ẑ; square (C,) of Ẑ²; p (M, C) of Ẑ p."""

    z: Array
    square: Array
    p: Array


@njit(**CALLED)
def _raise(rise, part):
    """log_w += rise log_p."""
    chains, count = part.log_w.shape
    size = part.log_p.shape[1]
    for lane in range(chains * count):
        part.log_w[lane // count, lane % count] += rise * part.log_p[lane // size, lane % size]


@njit(**CALLED)
def weigh(log_w, weights):
    """weights (P,) become those of log_w over the largest; (log of the largest, Σ w, Σ w²), -inf first if all are 0."""
    top, total, squares = -np.inf, 0.0, 0.0
    for j in range(log_w.size):
        top = max(top, log_w[j])
    for j in range(log_w.size):
        # `exp` of -∞ gives a tiny number and not 0.
        weights[j] = exp(log_w[j] - top) if log_w[j] > -np.inf else 0.0
        total += weights[j]
        squares += weights[j] * weights[j]
    return top, total, squares


@njit(**CALLED)
def choose_particles(weights, total, u, first, source):
    """Systematic resampling with one uniform number: source (P,) becomes first + the particle of each place."""
    count = weights.size
    reached, i = weights[0], 0
    for j in range(count):
        # At most the last particle: rounding may leave `reached` below the total.
        while reached * count <= (j + u) * total and i < count - 1:
            i += 1
            reached += weights[i]
        source[j] = first + i


@njit(**CALLED)
def _resample(course, u, x, part):
    """Where too few particles count; u (C,). x (K, N, B) is written to."""
    chains, count = part.log_w.shape
    size, weights, any_poor = x.shape[2], empty_array(count, np.float64), False
    for c in range(chains):
        log_w = part.log_w[c]
        top, total, squares = weigh(log_w, weights)
        # Resample if the effective number of particles, (Σ w)² / Σ w², falls below its share of P.
        if total * total <= course.resample * count * squares:
            # log Z takes the mean weight, and weights begin at 1 again (Del Moral, Doucet and Jasra 2006).
            part.log_z[c] += top + np.log(total / count)
            choose_particles(weights, total, u[c], c * count, part.source[c * count : (c + 1) * count])
            log_w[:] = 0.0
            any_poor = True
        else:
            for j in range(count):
                part.source[c * count + j] = c * count + j
    if any_poor:
        copy_into(part.spare, x)
        for lane in range(chains * count):
            at = part.source[lane]
            for i in range(x.shape[1]):
                x[lane // size, i, lane % size] = part.spare[at // size, i, at % size]


@njit(**JIT)
def anneal(t, course, chains, u, part, sums, begin, end):
    """A run of every population, or of its temperatures those from `begin` on, before `end`: `part` holds its weights
    then, and after the last `sums` (K, R, B) the particles' probabilities.

    u (T, C) uniform numbers. Particles at hard zeros have no weight, and no probabilities that mean anything.
    """
    betas, x = course.betas, chains.x
    last, s = betas.size - 1, course.first
    if begin == 0:
        part.log_w[:] = 0.0
        part.log_z[:] = 0.0
        sums[:] = 0.0
    else:
        s += 1 + (begin - 1) * course.moves
    for k in range(begin, min(end, last + 1)):
        # Hard zeros are floors at β < 1 and exact at β = 1. The last step first removes the increments at the floors
        # and then adds the exact ones.
        for exact in range(0 if k == 0 else 2 if k == last else 1):
            sum_weights(t, exact == 0, x, part.log_p)
            _raise(1.0 if exact else (betas[k] if k < last else 0.0) - betas[k - 1], part)
        if 0 < k < last and course.resample > 0:
            _resample(course, u[k], x, part)
        chains.betas[:] = betas[k]
        count = course.moves if 0 < k < last else 1
        # A single call site, since the function is inlined.
        run_sweeps(t, course.order, Request(k == last, True, s, s + count), chains, sums)
        s += count


def add_run(part: Particles, sums: Array, states: States, totals: StepSums) -> None:
    """A run of every population into what is `StepSums`, in the log domain."""
    chains, count = part.log_w.shape
    tops = part.log_w.max(axis=1)
    weights = np.exp(part.log_w - np.where(tops > -np.inf, tops, 0.0)[:, None])
    p = merge_lane_blocks(sums, chains * count).reshape(-1, chains, count)
    # particles of weight 0 have undefined probabilities
    weighted = np.multiply(weights, p, out=np.zeros_like(p), where=weights > 0).sum(axis=2)
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # where no particle has weight
        log_z = part.log_z + tops + np.log(total / count)
        p = (states.signs < 1)[:, None] + states.signs[:, None] * weighted[states.rows] / total
        log_p = np.where(p > 0, log_z + np.log(p), -np.inf)
    for logs, more in ((totals.z, log_z), (totals.square, 2 * log_z), (totals.p, log_p)):
        np.logaddexp(logs, more, out=logs)


@dataclass
class PopulationState:
    """Attributes: step: runs so far; seed: of the run; lanes: the particles; populations: C."""

    step: int
    seed: int
    lanes: LaneChains
    populations: int


class AnnealedKernel(Kernel[program.Tables, PopulationState]):
    """All settings of `Annealed`; float32 and float64. Weights are float64."""

    def __init__(self, method: smc.Annealed, backend: Backend, model: Model, tables: program.Tables) -> None:
        self._method, self._real = method, np.dtype(backend.precision)
        graph = factor_tables(model)
        self._lanes = lane_tables(graph, self._real)
        self._order, _ = sweep_order(graph, "chromatic")
        self._betas, self._count = tables.betas.astype(self._real), len(tables.particles)
        self._sizes, self._states = graph.cardinalities, States(*state_rows(graph.cardinalities))
        self._shift = graph.log_constant + float(np.log(self._sizes).sum()) - float(tables.base)

    def init(self, seed: int, start: Array) -> PopulationState:
        """Wherever chains start, particles are drawn at β = 0."""
        zeros = np.zeros((len(self._sizes), start.shape[1] * self._count), dtype=np.int64)
        return PopulationState(0, seed, lane_chains(seed, zeros, self._real), start.shape[1])

    def warm(self, state: PopulationState, steps: int) -> PopulationState:
        """There is nothing to burn in."""
        state.step += steps
        return state

    def advance(self, state: PopulationState, steps: int) -> tuple[PopulationState, dict[str, Array]]:
        chains, last = state.populations, len(self._betas) - 1
        blocks, _, size = state.lanes.x.shape
        part = Particles(
            np.zeros((chains, self._count)),
            np.zeros(chains),
            np.zeros_like(state.lanes.x),
            np.zeros(chains * self._count, dtype=np.int64),
            np.zeros((blocks, size)),
        )
        sums = np.zeros((len(part.spare), len(marginal_rows(self._sizes)[0]) + 1, part.spare.shape[2]))
        totals = StepSums(*(np.full(shape, -np.inf) for shape in (chains, chains, (len(self._states.rows), chains))))
        sweeps = (last - 1) * self._method.moves + 2
        together = max(1, UPDATES // (state.lanes.x.size * self._method.moves))
        for step in range(state.step, state.step + steps):
            # Seeded by the step's number, so that runs do not depend on how they are cut into batches.
            u = np.random.default_rng((state.seed, step)).random((last, chains))
            course = Course(self._betas, self._order, self._method.moves, self._method.resample, step * sweeps)
            for begin in range(0, last + 1, together):
                deadline.check()
                anneal(self._lanes, course, state.lanes, u, part, sums, begin, begin + together)
            add_run(part, sums, self._states, totals)
        state.step += steps
        # The kernel omits the log constant and the log number of states, and `tables.base` may include them: the shift
        # is the difference.
        shift = self._shift
        return state, {"z": totals.z + shift, "square": totals.square + 2 * shift, "p": totals.p + shift}
