"""Gibbs sampling in compiled code: whole batches of sweeps of all chains in one call, in the form that suits them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.api import Backend, PairwiseModel
from spinbench.api.kernel import LookingKernel
from spinbench.backends.numba.gibbs import dense, pattern_lanes, pattern_rows, patterns, single_updates, sites
from spinbench.backends.numba.gibbs.form import CLIMB_STREAM, LOOK_STREAM, Chains, Copies, Form, Request, Source, Steps
from spinbench.backends.numba.gibbs.lanes import Lanes
from spinbench.backends.numba.gibbs.looks import (
    Rungs,
    climb_rungs,
    lane_slopes,
    load_looks,
    looks,
)
from spinbench.backends.numba.gibbs.shared import by_chain, in_blocks, keys_after, lane_blocks, run_in_threads
from spinbench.backends.numba.simd import Array, chain_keys
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.sweeps import Tables

# Number of chains from which vectors run over chains: a float32 vector of AVX-512 holds 16, and idle lanes cost as much
# as busy ones.
MANY_LANES = 16
# The same with tables, where a vector holds 32 chains and one chain over rows is four times slower per update than a
# full vector.
MANY_PATTERN_CHAINS = 8
# The same for rows with too many neighbours for tables: with 8 neighbours and 100 chains, vectors over chains take 1.1
# ns an update and vectors over rows, which gather neighbours, 4.3 ns (docs/explanations/gibbs-forms.md).
MANY_GATHERING_CHAINS = 4
# Table entries per chain above which reading tables takes longer than summing fields: 200 x 200 with 16 chains.
ENTRIES_A_CHAIN = 2**15
# Mean number of rows of a block from which vectors over rows are faster than tables: 16 rows of float32, 8 of float64.
# On 32 x 32, float64, the processors differ: 1.1 ns an update against 1.5 of tables on an EPYC of the Zen 5 generation,
# 2.4 against 1.6 on a Xeon of the Sapphire Rapids class.
LONG_BLOCK = {np.dtype(np.float32): 64, np.dtype(np.float64): 512}
# Row length of a dense model from which adding a row at each flip is cheaper than a product for every update: only some
# updates flip.
LONG_ROWS = 128
# The same with too few chains for vectors over chains: at N = 100 adding rows is 5.9 times as fast as a product for
# every update.
LONG_ROWS_OF_FEW = 24
# Number of axes of states that are stored in blocks of chains.
BLOCKED = 3


def choose(source: Source, chains: int) -> type[Form]:
    """The form for so many chains of a model."""
    method, n = source.method, source.model.num_variables
    # Only tables support rounded probabilities.
    if method.precision_bits:
        return pattern_lanes.PatternLanes
    if method.sample != "sweep" or method.scan == "random":
        return single_updates.SingleUpdates
    if source.dense_row >= (LONG_ROWS if chains >= MANY_LANES else LONG_ROWS_OF_FEW):
        return dense.Dense
    # Tables have no term for log T, which needs the fields of s* for each state.
    tabled = not method.records_log_t
    entries = min(patterns.MOST_ENTRIES, ENTRIES_A_CHAIN * chains)
    if tabled and chains >= MANY_PATTERN_CHAINS and patterns.fit(n, source.widest, entries):
        return pattern_lanes.PatternLanes
    if chains >= (MANY_LANES if source.widest <= patterns.MAX_NEIGHBOURS else MANY_GATHERING_CHAINS):
        return Lanes
    if (
        tabled
        and source.block_rows < LONG_BLOCK[source.real]
        and patterns.fit(n, source.widest, patterns.MOST_ROW_ENTRIES)
    ):
        return pattern_rows.PatternRows
    return sites.Sites


@dataclass
class GibbsState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        step: steps so far, burn-in included.
        keys, s, x: random numbers, states and fields of the chains, as the form keeps them.
        sweep_log_t: (C,) log T at the begin of the present sweep ("single_updates").
        seed: of the run.
        climbed: sweeps so far at other temperatures.
        look_keys: (C, 2) uint64, of looks; None where nothing is looked at.
        look_lanes: (K, 2, B) the same in blocks of chains, once they are needed.
    """

    step: int
    keys: Array
    s: Array
    x: Array
    sweep_log_t: Array
    seed: int
    climbed: int = 0
    look_keys: Array | None = None
    look_lanes: Array | None = None

    @property
    def chains(self) -> int:
        """Their number."""
        return len(self.sweep_log_t)


class GibbsKernel(LookingKernel[Tables, GibbsState]):
    """All scans and settings of `Gibbs`; float32 and float64.

    Uniform numbers have 24 bits in float32 and 53 in float64 (single updates and random scans: always 53; where
    probabilities are looked up 64).
    """

    def __init__(self, method: Gibbs, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        self._method = method
        self._real = np.dtype(backend.precision)
        self._tables = tables
        self._source = Source(method, model, tables, self._real)
        self._form_in_use: Form | None = None
        self._request = Request(
            method.marginals == "rao_blackwell", False, self._source.tail, float(tables.log_t_constant)
        )

    def prepare(self, state: GibbsState) -> GibbsState:
        """Compile what every run calls, of no step and no chain: those of a large model may take longer than a run."""
        state, _ = self.advance(state, 0)
        if state.look_keys is not None:
            # Called on empty ranges: compilation depends on types alone.
            none, form = slice(0, 0), self._form_for(state.chains)
            if form.looks_alone:
                form.looks(self._request, state.look_keys[none], 0, state.s[none], state.x[none])
            else:
                load_looks(self._source, self._request)
        return state

    def init(self, seed: int, start: Array) -> GibbsState:
        form = self._form_for(start.shape[1])
        states = start[self._tables.order].astype(self._real)
        looks = chain_keys(seed + LOOK_STREAM, start.shape[1]).T.copy() if self._method.log_z != "none" else None
        return GibbsState(0, *form.begin(seed, states), np.zeros(states.shape[1]), seed, look_keys=looks)

    def warm(self, state: GibbsState, steps: int) -> GibbsState:
        if steps:
            single = self._method.sample == "update"
            self._run_and_sum(state, steps, chib=single and self._method.records_log_t)
        return state

    def advance(self, state: GibbsState, steps: int) -> tuple[GibbsState, dict[str, Array]]:
        chib = self._method.records_log_t
        sums, log_t = self._run_and_sum(state, steps, chib=chib)
        statistics = {"p" if self._request.averaged else "s": by_chain(sums, state.chains)}
        if chib:
            statistics["log_t"] = log_t.ravel()[: state.chains]
        return state, statistics

    def look(self, state: GibbsState) -> dict[str, Array]:
        if state.look_keys is None:
            return {}
        form = self._form_for(state.chains)
        if form.looks_alone:
            logs = form.looks(self._request, state.look_keys, state.step, state.s, state.x)
        else:
            lanes = form.lanes(state.s, state.chains)
            keys = _keys_of_looks(state, len(lanes), lanes.shape[-1])
            logs = looks(self._source, self._request, keys, state.step, lanes)
        log_t, log_r = logs.reshape(2, -1)[:, : state.chains]
        return {"log_t": log_t, "log_r": log_r}

    def look_steps(self, state: GibbsState) -> int:
        is_plain = state.look_keys is not None and not self._method.records_log_t and self._method.threads == 1
        return self._form_for(state.chains).look_steps if is_plain and state.s.ndim == BLOCKED else 0

    def advance_and_look(
        self, state: GibbsState, steps: int, first: int, every: int
    ) -> tuple[GibbsState, dict[str, Array], dict[str, Array]]:
        chains = state.chains
        form, run, count = self._form_for(chains), self._chains_of(state), 1 + (steps - first) // every
        copies = Copies(first, every, np.empty((count, *state.s.shape), dtype=state.s.dtype))
        form.run_and_copy(self._request, Steps(state.step, state.step + steps), copies, run)
        looked_at = state.step + first + every * np.arange(count)
        state.step += steps
        # A block of the form "pattern_lanes" always holds 32 chains. Idle ones are left out of looks, since a look
        # costs as much as some sweeps.
        width = lane_blocks(chains, self._real)[1] if len(state.s) == 1 else state.s.shape[-1]
        lanes = form.lanes(copies.states.reshape(-1, *state.s.shape[1:])[..., :width], chains)
        # Random numbers of a look depend on its step, so that looks made together here equal those that `look` makes
        # one by one.
        keys = keys_after(_keys_of_looks(state, len(state.s), width), looked_at, self._source.model.num_variables)
        log_t, log_r = looks(self._source, self._request, keys, 0, lanes).reshape(2, count, -1)[:, :, :chains]
        statistics = {"p" if self._request.averaged else "s": by_chain(run.sums, chains)}
        return state, statistics, {"log_t": log_t, "log_r": log_r}

    def temper(self, state: GibbsState, betas: Array, sweeps: int) -> tuple[GibbsState, Array]:
        if not self._method.may_use_stones:
            return super().temper(state, betas, sweeps)
        # Here and not in `prepare`: only some runs use stepping stones.
        with deadline.compiling():
            climb_rungs(self._source, 0, Rungs(betas[:1], 1, 0), np.zeros((1, len(self._tables.order))))
        self._source.drop_rows()
        form = self._form_for(state.chains)
        rungs = Rungs(betas, sweeps, state.climbed)
        s, slopes = climb_rungs(self._source, state.seed + CLIMB_STREAM, rungs, form.states(state.s, state.chains))
        _, state.s, state.x = form.begin(state.seed, s.T)
        state.climbed += sweeps * len(betas)
        return state, slopes.swapaxes(0, 1)

    def slope(self, state: GibbsState) -> dict[str, Array]:
        if not self._method.may_use_stones:
            return {}
        lanes = self._form_for(state.chains).lanes(state.s, state.chains)
        slopes = np.empty((len(lanes), lanes.shape[-1]))
        lane_slopes(self._source.flat, lanes, slopes)
        return {"slope": slopes.ravel()[: state.chains]}

    def states(self, state: GibbsState) -> Array:
        return by_variable(self._tables.order, self._form_for(state.chains).rows(state.s, state.chains))

    def _form(self, chains: int) -> type[Form]:
        return choose(self._source, chains)

    def _form_for(self, chains: int) -> Form:
        """The form for so many chains with its tables; those of another one are dropped."""
        kind = self._form(chains)
        if isinstance(self._form_in_use, kind):
            return self._form_in_use
        # The old tables are freed before new ones are allocated: two large ones may not fit into memory together.
        self._form_in_use = None
        self._form_in_use = form = kind(self._source)
        if self._method.log_z != "none" and not form.looks_alone:
            # Looks read the flat rows later, while chains run; they are built while the compressed rows still exist.
            _ = self._source.flat
        self._source.drop_rows()
        return form

    def _run_and_sum(self, state: GibbsState, steps: int, *, chib: bool) -> tuple[Array, Array]:
        """Sums of p or s and log of the sum of T over `steps` steps, as the form keeps them."""
        form, every = self._form_for(state.chains), self._chains_of(state)
        request, numbered = self._request._replace(chib=chib), Steps(state.step, state.step + steps)
        threads = self._method.threads
        run_in_threads(
            lambda part: form.run(request, numbered, Chains(*(a[part] for a in every))), len(state.s), threads
        )
        state.step += steps
        return every.sums, every.log_t

    def _chains_of(self, state: GibbsState) -> Chains:
        """All chains, with sums of nothing."""
        return Chains(state.keys, state.s, state.x, state.sweep_log_t, *self._form_for(state.chains).no_sums(state.s))


def _keys_of_looks(state: GibbsState, blocks: int, size: int) -> Array:
    """(K, 2, B)."""
    assert state.look_keys is not None
    if state.look_lanes is None or state.look_lanes.shape[::2] != (blocks, size):
        state.look_lanes = in_blocks(state.look_keys.T, blocks, size)
    return state.look_lanes
