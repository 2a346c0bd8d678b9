"""Multicanonical sampling in compiled code; the laws are those of `methods.baselines.flat`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.simd.functions import exp
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.tables.heights import Flat, sweep_flat, theta_at
from spinbench.backends.numba.tables.layout import LaneChains, lane_chains, lane_tables, of_chains
from spinbench.backends.numba.tables.sweeps import sum_weights
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.baselines.flat import DELAY, GAIN, Tables
from spinbench.methods.baselines.multicanonical import Multicanonical
from spinbench.models import Model

Array = npt.NDArray[Any]
UPDATES = 2**22
"""Of variables in one call, about; a run of a large model may be given up after any."""


class Reported(NamedTuple):
    """Attributes: variables, states: (R,) int64, of which weights are summed; cold: θ's distance from D at the last
    knot; hot: θ at the first."""

    variables: Array
    states: Array
    cold: float
    hot: float


class Seen(NamedTuple):
    """What steps write, (K, B) each but for s.

    Attributes:
        d: D; soft, hard: the same in float64, and with hard zeros.
        risen: as of `State` there.
        s: (K, R, B) weights in states; w, down, trips: sums over steps.
    """

    d: Array
    soft: Array
    hard: Array
    risen: Array
    s: Array
    w: Array
    down: Array
    trips: Array


@nb.njit(**JIT)
def _see(t, x, flat, asked, credited, seen):
    """Which way chains are going; and, where that is asked for, what they are worth."""
    theta, last = address(flat.theta, 0), flat.theta.size - 1
    for k in range(x.shape[0]):
        for c in range(x.shape[2]):
            d = seen.d[k, c]
            top = d >= flat.knots[3]
            if credited and top and seen.risen[k, c] > 0:
                seen.trips[k, c] += 1.0
            if top:
                seen.risen[k, c] = 0.0
            elif d <= flat.knots[0] and seen.risen[k, c] >= 0:
                seen.risen[k, c] = 1.0
            if credited:
                height = theta_at(theta, last, flat, d)
                below = asked.hot - height
                seen.down[k, c] += exp(below) if below > -700.0 else 0.0
                if not t.floored or seen.hard[k, c] > -np.inf:
                    log_w = d - height - asked.cold
                    w = exp(log_w) if log_w > -700.0 else 0.0  # `exp` makes a tiny number of less
                    seen.w[k, c] += w
                    for r in range(asked.variables.size):
                        if x[k, asked.variables[r], c] == asked.states[r]:
                            seen.s[k, r, c] += w


@nb.njit(**JIT)
def run_flat(t, order, asked, credited, first, end, chains, flat, seen):
    """Steps number first … end - 1 of all chains, a sweep each.

    Args:
        t: LaneTables.
        order: in which variables are updated.
        asked: Reported.
        credited: whether sums are added to.
        first, end: numbers of the steps.
        chains: LaneChains at β = 1; x is written to.
        flat: θ.
        seen: written to.
    """
    for step in range(first, end):
        sum_weights(t, True, chains.x, seen.soft)  # what rounding adds stays within a step
        for k in range(seen.d.shape[0]):
            for c in range(seen.d.shape[1]):
                seen.d[k, c] = seen.soft[k, c]
        sweep_flat(t, order, step, chains, flat, seen.d)
        if credited and t.floored:
            sum_weights(t, False, chains.x, seen.hard)
        _see(t, chains.x, flat, asked, credited, seen)


@dataclass
class FlatState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        chains: their number.
        seed: of the run; step: sweeps so far, burn-in included.
        lanes: the chains.
        theta: (M,) float64.
        risen: (K, B) as of `State` there.
    """

    chains: int
    seed: int
    step: int
    lanes: LaneChains
    theta: Array
    risen: Array


class MulticanonicalKernel(Kernel):
    """All settings of `Multicanonical`; float32 and float64. Sums are float64."""

    def __init__(self, method: Multicanonical, backend: Backend, model: Model, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        flat = factor_tables(model)
        self._t = lane_tables(flat, self._real)
        self._order = sweep_order(flat, "raster")[0]
        self._knots, self._levels = tables.knots.astype(np.float64), tables.levels.astype(np.float64)
        self._variables, self._states = (part.astype(np.int64) for part in (tables.variables, tables.states))

    def init(self, seed: int, start: Array) -> FlatState:
        lanes = lane_chains(seed, start, self._real)
        return FlatState(start.shape[1], seed, 0, lanes, self._levels.copy(), np.full(lanes.betas.shape, -1.0))

    def warm(self, state: FlatState, steps: int) -> FlatState:
        """After each step θ falls where chains are, by less from step to step."""
        seen = self._seen(state, 0)
        for _ in range(steps):
            self._run(state, 1, seen, credited=False)
            d = of_chains(seen.d, state.chains).astype(np.float64)
            shares = self._shares(d)
            state.theta = state.theta - GAIN / (state.step + DELAY) * (shares * len(shares) - 1)
        return state

    def advance(self, state: FlatState, steps: int) -> tuple[FlatState, dict[str, Array]]:
        seen, end = self._seen(state, len(self._variables)), state.step + steps
        together = max(1, UPDATES // max(1, state.lanes.x.size))
        while state.step < end:
            deadline.check()
            self._run(state, min(together, end - state.step), seen, credited=True)
        s, w, down, trips = (of_chains(part, state.chains) for part in (seen.s, seen.w, seen.down, seen.trips))
        asked = self._asked(state)
        levels = np.full((1, state.chains), asked.hot + asked.cold)
        return state, {"s": s, "w": w, "up": w[None], "down": down[None], "levels": levels, "trips": trips}

    def look(self, state: FlatState) -> dict[str, Array]:
        x, sizes = state.lanes.x, self._t.sizes[None, :, None]
        free = np.random.default_rng((state.seed, state.step)).integers(0, sizes, size=x.shape).astype(x.dtype)
        found = {}
        for name, states in (("there", x), ("free", free)):
            d = np.zeros(state.lanes.betas.shape)
            sum_weights(self._t, True, states, d)
            d = of_chains(d, state.chains)
            above = np.maximum(d - self._knots[-1], 0.0)
            found[name] = np.interp(d, self._knots, state.theta) + above - state.theta[0]
        return found

    def _run(self, state: FlatState, steps: int, seen: Seen, *, credited: bool) -> None:
        first, *_, last = self._knots
        knots = np.array([first, 1 / (self._knots[1] - first), len(self._knots) - 1, last], dtype=self._real)
        flat, end = Flat(state.theta.astype(self._real), knots), state.step + steps
        run_flat(self._t, self._order, self._asked(state), credited, state.step, end, state.lanes, flat, seen)
        state.step = end

    def _asked(self, state: FlatState) -> Reported:
        cold, hot = float(self._knots[-1] - state.theta[-1]), float(state.theta[0])
        return Reported(self._variables, self._states, cold, hot)

    def _seen(self, state: FlatState, rows: int) -> Seen:
        blocks, count = size = state.lanes.betas.shape
        soft, hard, w, down, trips = (np.zeros(size) for _ in range(5))
        return Seen(
            np.zeros(size, self._real), soft, hard, state.risen, np.zeros((blocks, rows, count)), w, down, trips
        )

    def _shares(self, d: Array) -> Array:
        """(M,) of the chains at each knot, those between two at both."""
        last = len(self._knots) - 1
        inside = np.clip((d - self._knots[0]) / (self._knots[1] - self._knots[0]), 0, last)
        low = np.minimum(inside.astype(np.int64), last - 1)
        part = inside - low
        found = np.bincount(low, 1 - part, last + 1) + np.bincount(low + 1, part, last + 1)
        return np.asarray(found / len(d))
