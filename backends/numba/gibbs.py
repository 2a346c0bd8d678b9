"""Gibbs sampling in compiled code: whole batches of sweeps of all chains in one call.

Six forms of the same sweep; which one runs depends on the settings, the model and the number of chains (`_form`):

    bits      states are bits of words, vectors run over 512 chains (precision_bits)
    lanes     vectors run over the chains
    sites     vectors run over the rows of a colour or level
    raster    one row after the other; what does not depend on the row before is done in vectors
    dense     long rows: the fields of all rows are kept, and changed when a row flips
    units     everything else: 1-of-K groups, random scans, single updates
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba import gibbs_bits, gibbs_rows, gibbs_sites, gibbs_sweeps, gibbs_units
from spinbench.backends.numba.gibbs_tables import (
    LANES,
    block_bounds,
    head_and_tail,
    make_bands,
    make_flat,
    make_rows,
)
from spinbench.backends.numba.random import chain_keys
from spinbench.backends.numba.vectors import aligned_zeros
from spinbench.layouts import dense_rows, is_dense
from spinbench.methods.gibbs import Gibbs
from spinbench.methods.heat_bath import Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]
Form = Literal["bits", "lanes", "sites", "raster", "dense", "units"]

MANY_CHAINS = 16
"""From so many chains on vectors run over chains: a float32 vector of AVX-512 holds 16."""
BLOCK_VECTORS = 4
"""Vectors of chains that are advanced together: enough to hide an instruction's latency, few enough for the cache."""
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
        keys: (C, 2) uint64, of the chains; (K, 2, B) in the forms "lanes" and "bits", there of words.
        s: (C, N) 0 and 1; in the form "lanes" (K, N, B), chains in K blocks of B with idle ones at the end; in the form
            "sites" with the columns before and after that `gibbs_tables.Bands` asks for; in the form "bits" words
            (K, N, B) of 64 chains.
        x: (C, N), the fields as of the last updates ("units") or of s ("dense", with columns to spare); else empty.
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


def whole_vectors(n: int) -> int:
    """n, rounded up to whole vectors."""
    return -(-n // LANES) * LANES


def lane_blocks(chains: int, real: np.dtype[Any]) -> tuple[int, int]:
    """(blocks, chains of a block) for the form "lanes"."""
    lanes = 64 // real.itemsize
    vectors = -(-chains // lanes)
    blocks = -(-vectors // BLOCK_VECTORS)
    return blocks, -(-vectors // blocks) * lanes


class GibbsKernel(Kernel):
    """All scans and settings of `Gibbs`; float32 and float64.

    Uniform numbers have 24 bits in float32 and 53 in float64 (single updates and random scans: always 53).
    """

    def __init__(self, method: Gibbs, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._method = method
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._model = model
        self._plain = not model.groups and method.sample == "sweep" and method.scan != "random"
        rows = make_rows(model, tables)
        self._dense = is_dense(rows) and len(rows.columns) >= LONG_ROWS * model.num_variables
        self._flat = make_flat(model, tables, rows, self._real)
        self._head, self._tail = head_and_tail(rows)
        # what rows without later neighbours add to log T
        away = (self._flat.sign * self._flat.forced).astype(np.float64)[self._tail :]
        self._fixed = -float(np.logaddexp(0.0, away).sum())
        self._form_tables: Any = None
        self._made_for: Form | None = None

    def _prepare(self, form: Form) -> None:
        """Make the tables of a form; those of another one are dropped."""
        if form == self._made_for:
            return
        model, tables = self._model, self._tables
        if len(self._flat.columns) < 2 * model.num_edges and self._plain:
            self._flat = make_flat(model, tables, make_rows(model, tables), self._real)
        self._form_tables, self._made_for = None, form
        if form == "dense":
            rows = make_rows(model, tables)
            n = model.num_variables
            self._form_tables = aligned_zeros((n, whole_vectors(n)), self._real)
            self._form_tables[:, :n] = dense_rows(rows, 0, n)
        elif form == "bits":
            exact = make_flat(model, tables, make_rows(model, tables), np.dtype(np.float64))
            self._form_tables = gibbs_bits.make_digits(exact, self._method.precision_bits)
        elif form == "sites":
            self._form_tables = make_bands(self._flat, block_bounds(tables))
            if self._head >= self._tail and self._method.log_z != "chib_ms":  # nothing else reads the entries
                self._flat = self._flat._replace(
                    columns=self._flat.columns[:0].copy(), weights=self._flat.weights[:0].copy()
                )

    def init(self, seed: int, start: Array) -> GibbsState:
        chains = start.shape[1]
        states = start[self._tables.order].astype(self._real)
        form = self._form(chains)
        self._prepare(form)
        keys = chain_keys(seed, chains).T.copy()
        if form == "lanes":
            blocks, size = lane_blocks(chains, self._real)
            keys = aligned_zeros((blocks, 2, size), np.dtype(np.uint64))
            keys[:] = chain_keys(seed, blocks * size).reshape(2, blocks, size).swapaxes(0, 1)
            s = aligned_zeros((blocks, len(states), size), self._real)
            for k in range(chains):
                s[k // size, :, k % size] = states[:, k]
        elif form == "bits":
            blocks, size = gibbs_bits.word_blocks(chains)
            keys = chain_keys(seed, blocks * size).reshape(2, blocks, size).swapaxes(0, 1).copy()
            s = aligned_zeros((blocks, len(states), size), np.dtype(np.uint64))
            s[:] = gibbs_bits.pack_states(states, blocks, size)
        elif form == "sites":
            before, after = self._form_tables.before, self._form_tables.after
            s = aligned_zeros((chains, before + len(states) + after), self._real)
            s[:, before : before + len(states)] = states.T
        else:
            s = np.ascontiguousarray(states.T)
        state = GibbsState(
            step=0,
            rungs=0,
            keys=keys,
            s=s,
            x=np.empty((0, 0), dtype=self._real),
            held=np.zeros(chains),
            ladder=None,
        )
        if form in ("units", "dense"):
            n = len(states)
            state.x = aligned_zeros((chains, whole_vectors(n) if form == "dense" else n), self._real)
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
        if self._method.precision_bits:
            return "bits"
        if not self._plain:
            return "units"
        if self._dense:
            return "dense"
        if chains >= MANY_CHAINS:
            return "lanes"
        return "sites" if n >= WIDE_BLOCK * (len(block_bounds(self._tables)) - 1) else "raster"

    def _run(self, state: GibbsState, steps: int, *, chib: bool) -> tuple[Array, Array]:
        """Sums (N, C) of p or s and log of the sum of T (C,) over `steps` steps."""
        chains, n = len(state.held), len(self._flat.biases)
        form = self._form(chains)
        averaged = self._method.marginals == "rao_blackwell"
        sums, log_t = np.zeros((chains, n)), np.full(chains, -np.inf)
        if form == "lanes":
            sums, log_t = np.zeros(state.s.shape), np.full(state.s[:, 0].shape, -np.inf)
        elif form == "bits":
            sums = np.zeros((*state.s.shape[:2], state.s.shape[2] * gibbs_bits.WORD))
        flat, tables, single = self._flat, self._form_tables, self._method.sample == "update"
        forced = (averaged, chib, self._head, self._tail, self._fixed)
        wave = gibbs_sites.wave_of(tables, whole=chib and self._head < self._tail) if form == "sites" else ()

        def run(part: slice) -> None:
            span, s = (state.keys[part], state.step, steps), state.s[part]
            out = (sums[part], log_t[part])
            if form == "lanes":
                gibbs_sweeps.run_lanes(flat, *span, *forced, s, *out)
            elif form == "bits":
                gibbs_bits.run_bits(tables, *span, s, sums[part], (0,) * s.shape[2])
            elif form == "sites":
                gibbs_sites.run_sites(flat, tables, *wave, *span, *forced, s, *out)
            elif form == "raster":
                gibbs_rows.run_raster(flat, *span, *forced, s, *out)
            elif form == "dense":
                gibbs_rows.run_dense(flat, tables, *span, averaged, chib, s, state.x[part], *out)
            else:
                rest = (self._method.scan == "random", averaged, chib, s, state.x[part], *out)
                if single:
                    gibbs_units.run_updates(flat, *span, *rest, state.held[part])
                else:
                    gibbs_units.run_sweeps(flat, *span, *rest)

        self._share(run, len(state.s))
        state.step += steps
        if form in ("lanes", "bits"):
            sums = sums.swapaxes(1, 2).reshape(-1, n)[:chains]
        return sums.T, log_t.ravel()[:chains]

    def _share(self, run: Callable[[slice], None], count: int) -> None:
        """`run` for all of `count` chains, or blocks of them, shared out among the threads."""
        threads = min(self._method.threads, count)
        if threads == 1:
            run(slice(0, count))
            return
        cuts = np.linspace(0, count, threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(run, slice(low, high)) for low, high in pairwise(cuts)]:
                done.result()

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
