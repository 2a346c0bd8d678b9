"""Gibbs sampling of factor graphs in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spinbench.api import Backend, Model, States
from spinbench.api.kernel import LookingKernel
from spinbench.backends.numba.gibbs.form import CLIMB_STREAM, LOOK_STREAM
from spinbench.backends.numba.gibbs.shared import block_keys, keys_after, run_in_threads
from spinbench.backends.numba.simd import Array, empty_aligned, zeros_aligned
from spinbench.backends.numba.tables.layout import (
    STATE,
    LaneChains,
    lane_chains,
    lane_tables,
    merge_lane_blocks,
)
from spinbench.backends.numba.tables.single import Single, conditionals, run_single
from spinbench.backends.numba.tables.sweeps import (
    Request,
    force_sweep,
    run_sweeps,
    run_weighed,
    sum_weights,
)
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.gibbs import gibbs, graph_plan

SILENT = Request(False, False, 0, 0)
# Cost of a look in steps: it visits all variables three times (a reversed sweep and log T from both sides), and states
# are copied.
LOOK_STEPS = 4
# Smaller logarithms stand for log 0.
NOWHERE = -1e29


@dataclass
class GraphState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        chains: their number.
        step: steps so far, burn-in included; climbed: sweeps at other temperatures.
        lanes: the chains.
        p: (K, R, B) conditional probabilities as of the last updates; of chains that are advanced one by one.
        looks: (K, 2, B) keys of the numbers that looks take.
        climbs: as many more chains, without variables, of whose numbers sweeps at other temperatures are made.
    """

    chains: int
    step: int
    climbed: int
    lanes: LaneChains
    p: Array
    looks: Array
    climbs: LaneChains


class GraphKernel(LookingKernel[graph_plan.GraphTables, GraphState]):
    """All scans, and all settings of `Gibbs` that factor graphs have; float32 and float64.

    Single updates and random scans compute in float64 with tables of the precision.
    """

    def __init__(self, method: gibbs.Gibbs, backend: Backend, model: Model, tables: graph_plan.GraphTables) -> None:
        self._single = method.sample == "update" or method.scan == "random"
        if self._single and method.records_log_t:
            raise UnsupportedError(
                f"gibbs: on backend=numba log_z={method.log_z} takes sweeps of factor graphs in fixed order, not "
                f"scan={method.scan} with sample={method.sample}"
            )
        flat = factor_tables(model)
        self._method, self._mode = method, tables.mode.astype(np.int64)
        self._real = np.dtype(backend.precision)
        self._t = lane_tables(flat, self._real)
        self._order = sweep_order(flat, "raster" if method.scan == "raster" else "chromatic")[0]
        self._back = self._order[::-1].copy()
        self._rows = len(tables.variables)
        self._averaged = method.marginals == "rao_blackwell"
        self._law: tuple[bool, ...] = ()

    def init(self, seed: int, start: States) -> GraphState:
        lanes = lane_chains(seed, start, self._real)
        p = np.zeros(self._shape(lanes) if self._is_scalar(start.shape[1]) else (0, 0, 0))
        if p.size:
            conditionals(self._t, self._order, lanes.x, p)
        looks = block_keys(seed + LOOK_STREAM, *lanes.betas.shape)
        climbs = lane_chains(seed + CLIMB_STREAM, start[:0], self._real)
        return GraphState(start.shape[1], 0, 0, lanes, p, looks, climbs)

    def warm(self, state: GraphState, steps: int) -> GraphState:
        if steps:
            self._run(state, steps, chib=False)
        return state

    def advance(self, state: GraphState, steps: int) -> tuple[GraphState, dict[str, Array]]:
        chib = self._method.records_log_t
        sums, log_t = self._run(state, steps, chib=chib)
        statistics = {"p" if self._averaged else "s": merge_lane_blocks(sums, state.chains)}
        if chib:
            statistics["log_t"] = _log_levels_by_chain(log_t, state.chains)
        return state, statistics

    def look(self, state: GraphState) -> dict[str, Array]:
        if self._method.log_z == "none":
            return {}
        logs = self._looks(state, np.array([state.step]), state.lanes.x[None].copy())
        return {name: values[0] for name, values in logs.items()}

    def look_steps(self, state: GraphState) -> int:
        is_plain = self._method.log_z != "none" and not self._method.records_log_t and self._method.threads == 1
        return LOOK_STEPS if is_plain and not self._is_scalar(state.chains) else 0

    def advance_and_look(
        self, state: GraphState, steps: int, first: int, every: int
    ) -> tuple[GraphState, dict[str, Array], dict[str, Array]]:
        count = 1 + (steps - first) // every
        copies = empty_aligned((count, *state.lanes.x.shape), STATE)
        sums = np.zeros(self._shape(state.lanes))
        looked_at = state.step + first + every * np.arange(count)
        ends = [*looked_at.tolist(), state.step + steps]
        for k, (begin, end) in enumerate(pairwise([state.step, *ends])):
            run_sweeps(self._t, self._order, Request(True, self._averaged, begin, end), state.lanes, sums)
            if k < count:
                copies[k] = state.lanes.x
        state.step += steps
        statistics = {"p" if self._averaged else "s": merge_lane_blocks(sums, state.chains)}
        return state, statistics, self._looks(state, looked_at, copies)

    def _looks(self, state: GraphState, steps: Array, copies: Array) -> dict[str, Array]:
        """(L, C) of the states (L, K, N, B) after `steps` (L,), which are overwritten."""
        count, blocks, n, lanes = copies.shape
        betas, x = zeros_aligned((count * blocks, lanes), self._real), empty_aligned((count * blocks, n, lanes), STATE)
        betas[:], x[:] = 1.0, self._mode[:, None]
        reversed_chains = LaneChains(keys_after(state.looks, steps, n), x, betas)
        run_sweeps(self._t, self._back, SILENT._replace(end=1), reversed_chains, self._nothing(reversed_chains))
        logs = {}
        for name, states in (("log_t", copies.reshape(x.shape)), ("log_r", x)):
            levels = np.zeros(betas.shape)
            force_sweep(self._t, self._order, self._mode, states, levels)
            logs[name] = _log_levels_by_chain(levels, levels.size).reshape(count, -1)[:, : state.chains]
        return logs

    def temper(self, state: GraphState, betas: Array, sweeps: int) -> tuple[GraphState, Array]:
        if not self._method.may_use_stones:
            return super().temper(state, betas, sweeps)
        slopes = np.empty((sweeps, len(betas), state.chains))
        lanes = state.climbs._replace(x=state.lanes.x)
        for k, beta in enumerate(betas):
            lanes.betas[:] = beta
            for s in range(sweeps):
                request = SILENT._replace(first=state.climbed, end=state.climbed + 1)
                run_sweeps(self._t, self._order, request, lanes, self._nothing(lanes))
                slopes[s, k] = self._slopes(state)
                state.climbed += 1
        # The last conditionals are those of another temperature: random scans would sum them until each variable's next
        # update.
        if state.p.size:
            conditionals(self._t, self._order, lanes.x, state.p)
        return state, slopes

    def slope(self, state: GraphState) -> dict[str, Array]:
        return {"slope": self._slopes(state)} if self._method.may_use_stones else {}

    def states(self, state: GraphState) -> Array:
        return merge_lane_blocks(state.lanes.x, state.chains).astype(np.int64)

    def _is_scalar(self, chains: int) -> bool:
        """Whether chains are advanced one by one: a single one would take as long as 16 in vectors."""
        return self._single or (chains == 1 and not self._method.records_log_t)

    def _shape(self, lanes: LaneChains) -> tuple[int, int, int]:
        return len(lanes.x), self._rows, lanes.x.shape[2]

    def _nothing(self, lanes: LaneChains) -> Array:
        """In place of sums."""
        return np.zeros((len(lanes.x), 0, lanes.x.shape[2]))

    def _slopes(self, state: GraphState) -> Array:
        values = np.empty(state.lanes.betas.shape)
        sum_weights(self._t, True, state.lanes.x, values)
        return merge_lane_blocks(values, state.chains)

    def _run(self, state: GraphState, steps: int, *, chib: bool) -> tuple[Array, Array]:
        """Sums (K, R, B) and log of the sum of T (K, B)."""
        sums, log_t = np.zeros(self._shape(state.lanes)), np.full(state.lanes.betas.shape, -np.inf)
        first, end = state.step, state.step + steps
        scan = self._method.scan == "random", self._method.sample == "update"

        def run(part: slice) -> None:
            lanes = LaneChains(*(array[part] for array in state.lanes))
            request = Request(True, self._averaged, first, end)
            if self._is_scalar(state.chains):
                single = Single(*scan, self._averaged, first, end)
                count = state.chains - part.start * lanes.x.shape[2]
                run_single(self._t, self._order, single, count, lanes, state.p[part], sums[part])
            elif chib:
                run_weighed(self._t, self._order, self._mode, request, lanes, sums[part], log_t[part])
            else:
                run_sweeps(self._t, self._order, request, lanes, sums[part], *self._law)

        run_in_threads(run, len(sums), self._method.threads)
        state.step = end
        return sums, log_t


class MetropolisKernel(GraphKernel):
    """All settings of `Metropolis`: as Gibbs sampling without log Z, but for the law of an update."""

    def __init__(self, method: Metropolis, backend: Backend, model: Model, tables: graph_plan.GraphTables) -> None:
        super().__init__(gibbs.Gibbs(log_z="none", marginals=method.marginals), backend, model, tables)
        self._law = (method.proposal == "uniform",)

    def _is_scalar(self, chains: int) -> bool:
        return False


def _log_levels_by_chain(levels: Array, chains: int) -> Array:
    """(C,) of (K, B); of 0 they are -inf."""
    values = merge_lane_blocks(levels, chains)
    return np.where(values < NOWHERE, -np.inf, values)
