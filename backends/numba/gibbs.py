"""Gibbs sampling in compiled code: whole batches of sweeps of all chains in one call.

Five forms of the same sweep; which one runs depends on the model, the scan and the number of chains (`_form`):

    lanes     vectors run over the chains
    sites     vectors run over the rows of a colour or level
    raster    one row after the other; what does not depend on the row before is done in vectors
    dense     long rows: the fields of all rows are kept, and changed when a row flips
    units     everything else: 1-of-K groups, random scans, single updates
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba import gibbs_rows, gibbs_sweeps, gibbs_units
from spinbench.backends.numba.gibbs_tables import (
    block_bounds,
    head_and_tail,
    make_flat,
    make_padded,
    make_rows,
)
from spinbench.backends.numba.random import chain_keys
from spinbench.layouts import dense_rows, is_dense
from spinbench.methods.gibbs import Gibbs
from spinbench.methods.heat_bath import Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]
Form = Literal["lanes", "sites", "raster", "dense", "units"]

MANY_CHAINS = 16
"""From so many chains on vectors run over chains: a float32 vector of AVX-512 holds 16."""
WIDE_BLOCK = 16
"""Mean number of rows of a block from which vectors run over rows."""
LONG_ROWS = 128
"""Rows of a dense model of this length are cheaper to add on a flip than to multiply for every update."""
LADDER_STREAM = 1 << 128
"""Added to the seed for the ladders' numbers; no seed of the chains is so large that it matters."""


@dataclass
class GibbsState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        step: steps so far, burn-in included.
        rungs: states of ladders so far.
        keys: (C, 2) uint64, of the chains; (2, C) in the form "lanes".
        s: (C, N) 0 and 1; (N, C) in the form "lanes".
        x: (C, N), the fields as of the last updates ("units") or of s ("dense"); else empty.
        held: (C,) log T at the begin of the present sweep ("units").
        ladder: None without one.
    """

    step: int
    rungs: int
    keys: Array
    s: Array
    x: Array
    held: Array
    ladder: LadderState | None


@dataclass
class LadderState:
    """Ladders of all chains, see `spinbench.methods.gibbs_program.Ladder`.

    Attributes:
        keys: (C, 2) uint64.
        places: (2,) uint64, key of the places of the first states.
        s: (C, N) the state reached.
        middle: (C, N) the first state.
        log_sum: (C,) log of the sum of T.
    """

    keys: Array
    places: Array
    s: Array
    middle: Array
    log_sum: Array


class GibbsKernel(Kernel):
    """All scans and settings of `Gibbs`; float32 and float64.

    Uniform numbers have 24 bits in float32 and 53 in float64 (single updates and random scans: always 53).
    """

    def __init__(self, method: Gibbs, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._method = method
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._rows = make_rows(model, tables)
        self._flat = make_flat(model, tables, self._rows, self._real)
        self._plain = not model.groups and method.sample == "sweep" and method.scan != "random"
        self._head, self._tail = head_and_tail(self._rows)
        # what rows without later neighbours add to log T
        away = (self._flat.sign * self._flat.forced).astype(np.float64)[self._tail :]
        self._fixed = -float(np.logaddexp(0.0, away).sum())
        self._long: Array | None = None
        self._padded: Any = None

    def init(self, seed: int, start: Array) -> GibbsState:
        chains = start.shape[1]
        states = start[self._tables.order].astype(self._real)
        form = self._form(chains)
        if form == "sites" and self._padded is None:
            self._padded = make_padded(self._rows, block_bounds(self._tables), self._real)
        if form == "dense" and self._long is None:
            self._long = dense_rows(self._rows, 0, len(states)).astype(self._real)
        keys = chain_keys(seed, chains)
        state = GibbsState(
            step=0,
            rungs=0,
            keys=keys if form == "lanes" else keys.T.copy(),
            s=states if form == "lanes" else np.ascontiguousarray(states.T),
            x=np.empty((0, 0), dtype=self._real),
            held=np.zeros(chains),
            ladder=None,
        )
        if form in ("units", "dense"):
            state.x = np.empty_like(state.s)
            gibbs_units.initial_fields(self._flat, state.s, state.x)
        if self._method.log_z == "chib_ms":
            ladder_keys = chain_keys(seed + LADDER_STREAM, chains + 1).T.copy()
            empty = np.zeros((chains, len(states)), dtype=self._real)
            state.ladder = LadderState(ladder_keys[1:], ladder_keys[0], empty, empty.copy(), np.zeros(chains))
        return state

    def warm(self, state: GibbsState, steps: int) -> GibbsState:
        if steps:
            single = self._method.sample == "update"
            self._run(state, steps, chib=single and self._method.log_z != "none")
        return state

    def advance(self, state: GibbsState, steps: int) -> tuple[GibbsState, dict[str, Array]]:
        chib = self._method.log_z != "none"
        before = state.step
        sums, log_t = self._run(state, steps, chib=chib)
        statistics = {"p" if self._method.marginals == "rao_blackwell" else "s": sums}
        if chib:
            statistics["log_t"] = log_t
        if state.ladder is not None:
            units = len(self._flat.first)
            sweeps = steps
            if self._method.sample == "update":  # one rung where a sweep begins
                sweeps = -(-(before + steps) // units) - -(-before // units)
            statistics |= self._climb(state, state.ladder, sweeps)
        return state, statistics

    def _form(self, chains: int) -> Form:
        n = len(self._flat.biases)
        if not self._plain:
            return "units"
        if is_dense(self._rows) and len(self._rows.columns) >= LONG_ROWS * n:
            return "dense"
        if chains >= MANY_CHAINS:
            return "lanes"
        return "sites" if n >= WIDE_BLOCK * (len(block_bounds(self._tables)) - 1) else "raster"

    def _run(self, state: GibbsState, steps: int, *, chib: bool) -> tuple[Array, Array]:
        """Sums (N, C) of p or s and log of the sum of T (C,) over `steps` steps."""
        chains = len(state.held)
        form = self._form(chains)
        averaged = self._method.marginals == "rao_blackwell"
        sums, log_t = np.zeros(state.s.shape), np.full(chains, -np.inf)
        span = (state.keys, state.step, steps)
        forced = (averaged, chib, self._head, self._tail, self._fixed)
        if form == "lanes":
            gibbs_sweeps.run_lanes(self._flat, *span, *forced, state.s, sums, log_t)
        elif form == "sites":
            gibbs_sweeps.run_sites(self._flat, self._padded, *span, *forced, state.s, sums, log_t)
        elif form == "raster":
            gibbs_rows.run_raster(self._flat, *span, *forced, state.s, sums, log_t)
        elif form == "dense":
            gibbs_rows.run_dense(self._flat, self._long, *span, averaged, chib, state.s, state.x, sums, log_t)
        else:
            random = self._method.scan == "random"
            rest = (random, averaged, chib, state.s, state.x, sums, log_t)
            if self._method.sample == "update":
                gibbs_units.run_updates(self._flat, *span, *rest, state.held)
            else:
                gibbs_units.run_sweeps(self._flat, *span, *rest)
        state.step += steps
        return sums if form == "lanes" else sums.T, log_t

    def _climb(self, state: GibbsState, ladder: LadderState, rungs: int) -> dict[str, Array]:
        """The statistics of the ladders' next states."""
        length = self._method.ladder
        total = np.full(len(state.held), -np.inf)
        mode = self._tables.mode.astype(self._real)
        gibbs_units.run_ladders(
            self._flat,
            ladder.keys,
            ladder.places,
            state.rungs,
            rungs,
            length,
            mode,
            ladder.s,
            ladder.middle,
            ladder.log_sum,
            total,
        )
        ended = (state.rungs + rungs) // length - state.rungs // length
        state.rungs += rungs
        return {"ladder": total, "ladders": np.full(len(total), float(ended))}
