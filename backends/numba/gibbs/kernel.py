"""Gibbs sampling in compiled code: whole batches of sweeps of all chains in one call.

Ten forms of the same sweep; which one runs depends on the settings, the model and the number of chains (`_form`):

    pattern_lanes, pattern_sites, pattern_rows
              few neighbours a variable: probabilities are looked up by the neighbours' states, for vectors of chains,
              for vectors of the rows of a colour, and row by row
    bits      states are bits of words, vectors run over 512 chains (precision_bits)
    lanes     vectors run over the chains
    sites     vectors run over the rows of a colour or level
    raster    one row after the other; what does not depend on the row before is done in vectors
    dense     long rows: the fields of all rows are kept, and changed when a row flips
    fixed     the same with integers, where only states are summed
    units     everything else: 1-of-K groups, random scans, single updates
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gibbs import (
    bits,
    dense,
    pattern_lanes,
    pattern_rows,
    pattern_sites,
    patterns,
    rows,
    sites,
    sweeps,
    units,
)
from spinbench.backends.numba.gibbs.bands import make_bands
from spinbench.backends.numba.gibbs.state import (
    Form,
    GibbsState,
    LadderState,
    begin,
    begin_ladder,
    empty_sums,
    of_chains,
    states_of,
    whole_vectors,
)
from spinbench.backends.numba.gibbs.tables import (
    Flat,
    block_bounds,
    empty_flat,
    head_and_tail,
    make_flat,
    make_rows,
)
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.backends.numba.simd.vector_memory import aligned_zeros
from spinbench.mathematics.graphs.rows import Rows, dense_rows, is_dense
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.heat_bath import Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]

MANY_CHAINS = 16
"""From so many chains on vectors run over chains: a float32 vector of AVX-512 holds 16."""
MANY_PATTERN_CHAINS = 8
"""The same with tables, where a vector holds 32 and one chain is as fast as a quarter of it."""
BIT_CHAINS = 256
"""From so many chains on words of 64 are faster than those of one."""
WIDE_BLOCK = 16
"""Mean number of rows of a block from which vectors run over rows."""
LONG_ROWS = 128
"""Rows of a dense model of this length are cheaper to add on a flip than to multiply for every update."""
LOOK_STREAM = 1 << 129
"""Added to the seed for the numbers of looks, as the next one for those of ladders."""
LADDER_STREAM = 1 << 128
"""Added to the seed for the ladders' numbers; no seed of the chains is so large that it matters."""


class GibbsKernel(Kernel):
    """All scans and settings of `Gibbs`; float32 and float64.

    Uniform numbers have 24 bits in float32 and 53 in float64 (single updates and random scans: always 53; where
    probabilities are looked up 64).
    """

    def __init__(self, method: Gibbs, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._method = method
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._model = model
        self._plain = not model.groups and method.sample == "sweep" and method.scan != "random"
        rows = self._rows
        self._dense = is_dense(rows) and len(rows.columns) >= LONG_ROWS * model.num_variables
        self._widest = int(np.diff(rows.start).max(initial=0))
        self._head, self._tail = head_and_tail(rows)
        self._fixed = 0.0
        self._form_tables: Any = None
        self._made_for: Form | None = None

    # What large models take memory for is made when it is first read, and dropped when it will not be read again

    @cached_property
    def _rows(self) -> Rows:
        return make_rows(self._model, self._tables)

    @cached_property
    def _flat(self) -> Flat:
        return make_flat(self._model, self._tables, self._rows, self._real)

    def _reads_flat(self, form: Form) -> bool:
        """Whether anything does: vectors over rows have tables of their own, and most often need no others."""
        return form != "sites" or self._method.log_z != "none"

    def _flat_for(self, form: Form) -> Flat:
        return self._flat if self._reads_flat(form) else empty_flat(self._real)

    def _prepare(self, form: Form) -> None:
        """Make the tables of a form; those of another one are dropped."""
        if form == self._made_for:
            return
        model, tables = self._model, self._tables
        self._form_tables, self._made_for = None, form
        if form == "dense":
            n = model.num_variables
            self._form_tables = aligned_zeros((n, whole_vectors(n)), self._real)
            self._form_tables[:, :n] = dense_rows(self._rows, 0, n)
        elif form == "fixed":
            self._form_tables = self._fixed_rows
        elif form == "sites":
            biases, sign = model.biases.astype(self._real)[tables.order], 1 - 2 * tables.mode.astype(self._real)
            self._form_tables = make_bands(self._rows, biases, sign, block_bounds(tables))
        elif form in ("bits", "pattern_lanes", "pattern_sites", "pattern_rows"):
            self._form_tables = self._pattern_tables(form)
        if self._method.weighs_steps:  # what rows without later neighbours add to log T
            away = (self._flat.sign * self._flat.forced).astype(np.float64)[self._tail :]
            self._fixed = -float(np.logaddexp(0.0, away).sum())
        if self._reads_flat(form):
            _ = self._flat  # while there are rows to make it from
        else:
            self.__dict__.pop("_flat", None)
        self.__dict__.pop("_rows", None)

    def _pattern_tables(self, form: Form) -> Any:
        """Probabilities by patterns of neighbours, made in float64 whatever the kernel's precision."""
        precision = self._method.precision_bits
        if form == "bits":
            return bits.make_digits(self._exact(), precision)
        if form == "pattern_sites":
            return self._sites
        found = patterns.make_patterns(self._exact(), self._tail, precision)
        return patterns.make_words(found, self._real) if form == "pattern_lanes" else found

    @cached_property
    def _sites(self) -> patterns.Sites | None:
        """The tables of "pattern_sites", if they are small enough."""
        summed = self._method.marginals == "rao_blackwell" or self._method.weighs_steps
        rough = summed and self._real == np.float32
        most = patterns.MOST_ROUGH_ENTRIES if rough else patterns.MOST_ROW_ENTRIES
        if self._model.num_variables > most:
            return None
        return patterns.make_sites(self._exact(), block_bounds(self._tables), self._head, self._tail, most)

    @cached_property
    def _fixed_rows(self) -> dense.Fixed | None:
        """The tables of "fixed", if states alone are summed and rounding leaves little in doubt."""
        if self._method.marginals != "empirical" or self._method.weighs_steps:
            return None
        return dense.make_fixed(self._flat, self._rows)

    def _exact(self) -> Flat:
        """The tables in float64."""
        return make_flat(self._model, self._tables, self._rows, np.dtype(np.float64))

    def init(self, seed: int, start: Array) -> GibbsState:
        form = self._form(start.shape[1])
        self._prepare(form)
        states = start[self._tables.order].astype(self._real)
        state = begin(form, self._flat_for(form), self._form_tables, seed, states)
        if self._method.log_z != "none":
            state.look_keys = chain_keys(seed + LOOK_STREAM, start.shape[1]).T.copy()
        if self._method.log_z == "chib_ms":
            state.ladder = begin_ladder(seed + LADDER_STREAM, states)
        return state

    def warm(self, state: GibbsState, steps: int) -> GibbsState:
        if steps:
            single = self._method.sample == "update"
            self._run(state, steps, chib=single and self._method.weighs_steps)
        return state

    def advance(self, state: GibbsState, steps: int) -> tuple[GibbsState, dict[str, Array]]:
        chib = self._method.weighs_steps
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

    def look(self, state: GibbsState) -> dict[str, Array]:
        if self._method.log_z == "none":
            return {}
        chains, n = len(state.held), self._model.num_variables
        states = states_of(self._form(chains), self._form_tables, state, n, self._real)
        log_t, log_r = np.empty(chains), np.empty(chains)
        mode = self._tables.mode.astype(self._real)
        units.run_looks(self._flat, state.look_keys, state.step, mode, states, log_t, log_r)
        return {"log_t": log_t, "log_r": log_r}

    def _form(self, chains: int) -> Form:
        n = self._model.num_variables
        if self._method.precision_bits:
            return "bits" if chains >= BIT_CHAINS else "pattern_lanes"
        if not self._plain:
            return "units"
        if self._dense:
            return "dense" if self._fixed_rows is None else "fixed"
        if chains >= MANY_PATTERN_CHAINS and patterns.fit_lanes(n, self._widest):
            return "pattern_lanes"
        if chains >= MANY_CHAINS:
            return "lanes"
        blocks = len(block_bounds(self._tables)) - 1
        if n >= WIDE_BLOCK * blocks:
            return "sites" if self._sites is None else "pattern_sites"
        return "pattern_rows" if patterns.fit_rows(n, self._widest) else "raster"

    def _run(self, state: GibbsState, steps: int, *, chib: bool) -> tuple[Array, Array]:
        """Sums (N, C) of p or s and log of the sum of T (C,) over `steps` steps."""
        chains, n = len(state.held), self._model.num_variables
        form = self._form(chains)
        averaged = self._method.marginals == "rao_blackwell"
        flat, tables, single = self._flat_for(form), self._form_tables, self._method.sample == "update"
        sums, log_t = empty_sums(form, tables, state, n)
        forced = (averaged, chib, self._head, self._tail, self._fixed)
        wave = sites.wave_of(tables, whole=chib and self._head < self._tail) if form == "sites" else ()

        def run(part: slice) -> None:
            span, s = (state.keys[part], state.step, steps), state.s[part]
            out = (sums[part], log_t[part])
            match form:
                case "pattern_lanes":
                    pattern_lanes.run_pattern_lanes(tables, *span, *forced, s, *out)
                case "pattern_sites":
                    pattern_sites.run_pattern_sites(tables, *span, averaged, chib, s, *out)
                case "pattern_rows":
                    pattern_rows.run_pattern_rows(tables, *span, *forced, s, *out)
                case "lanes":
                    sweeps.run_lanes(flat, *span, *forced, s, *out)
                case "bits":
                    bits.run_bits(tables, *span, s, sums[part], (0,) * s.shape[2])
                case "sites":
                    sites.run_sites(flat, tables, *wave, *span, *forced, s, *out)
                case "raster":
                    rows.run_raster(flat, *span, *forced, s, *out)
                case "fixed":
                    dense.run_fixed(flat, tables, *span, s, state.x[part], sums[part])
                case "dense":
                    dense.run_dense(flat, tables, *span, averaged, chib, s, state.x[part], *out)
                case "units":
                    rest = (self._method.scan == "random", averaged, chib, s, state.x[part], *out)
                    if single:
                        units.run_updates(flat, *span, *rest, state.held[part])
                    else:
                        units.run_sweeps(flat, *span, *rest)

        self._share(run, len(state.s))
        state.step += steps
        return of_chains(form, tables, sums, log_t, chains)

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
        units.run_ladders(
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
