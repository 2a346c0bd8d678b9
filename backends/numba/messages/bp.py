"""Belief propagation in compiled code.

Two forms of the same iteration:

    odds      sequential sweeps over binary pairs without damping, messages as odds
    factors   everything else, see `spinbench.backends.numba.messages.schedules`

With odds R = exp(m) the update softplus(c + w) - softplus(c) of a message, c = h - m, H = exp(h), becomes

    R_{i→j} = (R_{j→i} + H_i e^w) / (R_{j→i} + H_i),   H_i = e^{θ_i} Π_k R_{k→i}:

one division and no transcendental function. Variables are visited in the order of the levels of a raster scan, which
gives the same result as their own order; neighbours in that order are not coupled, so the divisions overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Model, States, sweeps
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.messages import schedules
from spinbench.backends.numba.messages.mf import FixedPointKernel
from spinbench.backends.numba.messages.tables import Factors, Queue, make_factors, work_space
from spinbench.backends.numba.simd import Array
from spinbench.mathematics.graphs.message_layouts import Graph
from spinbench.methods.messages.bp import START, BeliefPropagation, Tables, start_messages
from spinbench.methods.messages.fixed_points import State, statistics

# Largest |θ_i| + Σ_j |m_ji| for which odds stay in range: exp(89) overflows in float32, exp(710) in float64. It bounds
# totals and cavities alike, and |m_ji| <= |w_ij| holds after the first update from any start.
LARGEST_FIELD = {"float32": 80.0, "float64": 600.0}


@dataclass(frozen=True)
class Odds:
    """Pairs in compressed rows, by level.

    Attributes:
        field: (N,) real, exp(θ).
        start: (N + 1,) int64, the entries of a row; those below `middle` come from earlier rows.
        middle: (N,) int64.
        factor: (2E,) real, exp(w).
        reverse: (2E,) int64, the entry of the message in the other direction.
        message: (2E,) int64, the message of each entry as `message_layouts` counts.
    """

    field: Array
    start: Array
    middle: Array
    factor: Array
    reverse: Array
    message: Array


class BPKernel(FixedPointKernel):
    """All schedules of `BeliefPropagation`.

    Values of chains are log ratios (r, M) in the order of `message_layouts`, or odds in that of the kernel; totals
    (r, R) of log ratios by rows; and the queue of the residual schedule.
    """

    def __init__(self, method: BeliefPropagation, backend: Backend, model: Model, tables: Tables) -> None:
        super().__init__(method, backend, tables)
        self._method = method
        self._schedule = "sequential" if method.schedule == "auto" else method.schedule
        self._odds: Odds | None = None
        # Odds suit sequential sweeps only. Damping acts on log ratios: with odds it would need a logarithm and an
        # exponential per message.
        plain = self._schedule == "sequential" and method.damping == 0 and not tables.graph.groups
        if plain and _largest_field(tables.graph) < LARGEST_FIELD[self._real.name]:
            self._odds = make_odds(tables.graph, self._real)
            return
        self._factors = make_factors(tables.graph, self._real)
        self._work = work_space(self._factors)
        self._fresh = np.empty(len(tables.incidence.target))

    def init(self, seed: int, start: States) -> State:
        graph, target = self._tables.graph, self._tables.incidence.target
        # In float64, so that float32 runs start from the same point as float64 runs.
        first = start_messages(graph, target, start.astype(np.float64), self._method.restarts, np).T
        values = first if self._odds is None else np.exp(first[:, self._odds.message])
        values = np.ascontiguousarray(values, dtype=self._real)
        all_totals, queue = np.empty((len(first), len(graph.theta)), dtype=self._real), None
        if self._odds is None:
            for messages, totals in zip(values, all_totals, strict=True):
                schedules.sum_up_all(self._factors, messages, totals)
            queue = make_queue(self._factors, values) if self._schedule == "residual" else None
        return State((values, all_totals, queue), *np.zeros((3, len(first))))

    def _observe(self, state: State) -> dict[str, Array]:
        values = state.values[0].T.astype(np.float64)
        if self._odds is not None:
            values[self._odds.message] = np.log(values)
        return statistics("messages", values, state)

    def _iterate(self, state: State, c: int, steps: int) -> tuple[int, float]:
        if self._odds is not None:
            o = self._odds
            tables = o.field, o.start, o.middle, o.factor, o.reverse
            return sweep_odds(*tables, state.values[0][c], self._tolerance, steps)  # type: ignore[no-any-return]
        done, residual = 0, np.inf
        while done < steps and residual > self._tolerance:
            residual = self._sweep(state, c, begun=state.iterations[c] + done > 0)
            done += 1
        return done, residual

    def _sweep(self, state: State, c: int, *, begun: bool) -> float:
        values, totals, queue = state.values
        at = self._factors, values[c], totals[c], self._method.damping, self._work
        if self._schedule == "parallel":
            return float(schedules.parallel_sweep(*at, self._fresh))
        if queue is not None:
            return float(schedules.residual_sweep(*at, Queue(*(part[c] for part in queue)), begun, self._tolerance))
        return float(schedules.sequential_sweep(*at))


def make_queue(factors: Factors, messages: Array) -> Queue:
    """For messages (r, M); a chain's first sweep fills it."""
    slots = (len(messages), len(factors.slots))
    heap, place = np.zeros(slots, dtype=np.int64), np.zeros(slots, dtype=np.int64)
    return Queue(np.empty_like(messages), heap, place, np.zeros(slots, dtype=messages.dtype))


def _largest_field(graph: Graph) -> float:
    fields = np.abs(graph.theta)
    for rows, neutral in zip(graph.pairs.rows, graph.pairs.neutral, strict=True):
        # An initial message may exceed |w|, by at most START beyond the neutral message: the first sweep must not
        # overflow either.
        largest = np.maximum(np.abs(graph.pairs.weights), np.abs(neutral) + START)
        fields = fields + np.bincount(rows, largest, minlength=len(fields))
    return float(fields.max(initial=0.0))


def make_odds(graph: Graph, real: npt.DTypeLike) -> Odds:
    """The tables of a model that has pairs only."""
    n, edges = len(graph.theta), len(graph.pairs.weights)
    # A stable sort keeps ascending order within a level, which defines the "earlier" and "later" rows of a message.
    order = np.argsort(sweeps.raster_levels(n, graph.pairs.rows.T), kind="stable")
    position = np.argsort(order)
    ends = position[graph.pairs.rows]
    row, other = ends.ravel(), ends[::-1].ravel()
    message = np.argsort(row * n + other, kind="stable")
    entry = np.argsort(message)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    return Odds(
        field=np.exp(graph.theta[order]).astype(real),
        start=start,
        middle=start[:-1] + np.bincount(row[other < row], minlength=n),
        factor=np.exp(np.tile(graph.pairs.weights, 2)[message]).astype(real),
        reverse=np.roll(entry, edges)[message],
        message=message,
    )


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def sweep_odds(field, start, middle, factor, reverse, R, tolerance, steps):
    """Sweeps forth, each variable sending to later ones, and back, until none changes much.

    Returns the number of iterations and the largest change of a log ratio in the last.
    """
    residual = 0.0 * tolerance
    for step in range(steps):
        change = field.dtype.type(0.0)
        for turn in range(2):
            for q in range(field.size):
                i = q if turn == 0 else field.size - 1 - q
                H = field[i]
                for k in range(start[i], start[i + 1]):
                    # H includes the message of every neighbour, so that H / R[k] is the cavity; multiplying numerator
                    # and denominator by R[k] leaves one division.
                    H *= R[k]
                low, high = (middle[i], start[i + 1]) if turn == 0 else (start[i], middle[i])
                for k in range(low, high):
                    new = (R[k] + H * factor[k]) / (R[k] + H)
                    r = reverse[k]
                    distance = abs(new - R[r])
                    # |new - old| / new is compared without a division; only a new maximum is divided.
                    if distance > change * new:
                        change = distance / new
                    R[r] = new
        # Change of the log ratio, the criterion of other schedules and backends: exact where a message falls, to first
        # order where it grows.
        residual = math.log1p(change)
        if residual <= tolerance:
            return step + 1, residual
    return steps, residual
