"""`blocks` in compiled code: vectors of chains, each of which does all its steps before the next;
transitions to s* and log weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spinbench.api import Backend, Kernel, Model, States
from spinbench.backends.numba.blocks.maps import make_maps
from spinbench.backends.numba.blocks.sums import (
    OPTIONS,
    Room,
    add_log_probability,
    add_marginals,
    draw,
    forward,
    make_weights,
)
from spinbench.backends.numba.gibbs.form import CLIMB_STREAM, LOOK_STREAM
from spinbench.backends.numba.gibbs.shared import in_blocks
from spinbench.backends.numba.kernel_cache import Options, njit
from spinbench.backends.numba.simd import LINE, Array, chain_keys, uniform, zeros_aligned
from spinbench.backends.numba.tables.array_sweeps import sum_log_weights
from spinbench.mathematics.graphs.table_layouts import Entries
from spinbench.methods.blocks.blocks import Blocks
from spinbench.methods.blocks.program import DESCENT_SWEEPS
from spinbench.methods.blocks.tables import Tables

JIT: Options = {"error_model": "numpy", "fastmath": {"contract"}, "cache": True}


class Chains(NamedTuple):
    """x (G, N, L) states, keys (G, 2, L) of random numbers, beta (G, L)."""

    x: Array
    keys: Array
    beta: Array


class Steps(NamedTuple):
    """What is to be done.

    Attributes:
        first, end: numbers of steps, the last one not among them.
        tempered: whether β differs from 1 anywhere.
        fixed: what takes the place of uniform numbers; below 0: nothing does.
    """

    first: int
    end: int
    tempered: bool
    fixed: float


@njit(**OPTIONS)
def _fill_uniform(keys, counter, count, fixed, u):
    """Numbers counter, counter + 1, … of each chain."""
    for i in range(count):
        for lane in range(u.shape[1]):
            # The descent to s* passes a constant in place of the random number and so shares this loop.
            u[i, lane] = fixed if fixed >= 0 else uniform(keys[0, lane], keys[1, lane], counter + np.uint64(i))


@njit(**JIT)
def run_steps(m, w, room, blocks, chains, steps, sums, target, logs):
    """Draw the listed blocks in each step; or, given a target, find how likely they end there, and put them there.

    One function, which is compiled once. `sums` (G, N, K, L), to which marginals are added, has no variables where
    nothing is wanted, `target` (N, L) neither; logs (G, L) += log of the probability of the target.
    """
    # Every step reserves a number for each variable of all blocks, even if only some blocks are drawn: the numbers of a
    # block do not depend on which other blocks are drawn.
    total = np.uint64(m.starts[-1])
    for g in range(chains.x.shape[0]):
        x, keys, beta = chains.x[g], chains.keys[g], chains.beta[g]
        for step in range(steps.first, steps.end):
            for block in blocks:
                forward(m, w, block, x, beta, steps.tempered, room)
                if target.shape[0]:
                    add_log_probability(m, block, target, x, room, logs[g])
                    continue
                first = m.starts[block]
                counter = np.uint64(step) * total + np.uint64(first)
                _fill_uniform(keys, counter, m.starts[block + 1] - first, steps.fixed, room.u)
                draw(m, block, x, room)
                if sums.shape[1]:
                    add_marginals(m, block, room, sums[g])


@dataclass
class BlocksState:
    """Chains of one run; consumed by `advance` and `warm`.

    Attributes:
        x: (G, N, L) states of vectors of chains, the last of which repeat the first chain.
        keys, look_keys, climb_keys: (G, 2, L) uint64.
        chains: C.
        step, climbed: steps so far, and sweeps at other temperatures.
        mode: (N,) s*; weight: log p*(s*), less the model's constant.
    """

    x: Array
    keys: Array
    look_keys: Array
    climb_keys: Array
    chains: int
    step: int
    climbed: int
    mode: Array
    weight: float


class BlocksKernel(Kernel[Tables, BlocksState]):
    """float32 and float64, of tables, products and messages."""

    def __init__(self, method: Blocks, backend: Backend, model: Model, tables: Tables) -> None:
        real = np.dtype(backend.precision)
        self._t, self._looks, self._lanes = tables, method.log_z != "none", LINE // real.itemsize
        self._maps, entries, rows = make_maps(tables)
        self._weights = make_weights(tables, real)
        bases, variables, strides = (
            np.ascontiguousarray(part.T, dtype=np.int32) for part in (tables.offsets, tables.members, tables.strides)
        )
        self._entries = Entries(tables.values, np.array(0), bases, variables, strides)
        rows = max(rows, len(tables.states)) + 1
        W, T, A = (zeros_aligned((size, self._lanes), real) for size in (rows, entries, rows))
        bases, u = np.zeros(self._lanes, dtype=np.int64), np.zeros((len(tables.places), self._lanes))
        lost = zeros_aligned((len(tables.places), self._lanes), real)
        self._room = Room(W, T, A, bases, u, lost)

    def init(self, seed: int, start: States) -> BlocksState:
        chains = start.shape[1]
        keys, look_keys, climb_keys = (
            self._vectors(chain_keys(seed + stream, chains)) for stream in (0, LOOK_STREAM, CLIMB_STREAM)
        )
        x = self._vectors(start.astype(np.int64))
        state = BlocksState(x, keys, look_keys, climb_keys, chains, 0, 0, x[0, :, 0].copy(), -np.inf)
        return self._with_likeliest_mode(state) if self._looks else state

    def adapt(self, state: BlocksState, last: bool) -> BlocksState:
        return self._with_likeliest_mode(state) if last and self._looks else state

    def advance(self, state: BlocksState, steps: int) -> tuple[BlocksState, dict[str, Array]]:
        vectors, variables, lanes = state.x.shape
        # Float64 whatever the precision: sums of a whole batch in float32 would lose digits.
        sums = np.zeros((vectors, variables, len(self._t.states), lanes))
        self._draw(self._t.sweep, state.x, state.keys, Steps(state.step, state.step + steps, False, -1.0), sums=sums)
        p = sums.transpose(1, 2, 0, 3).reshape(-1, vectors * lanes)
        return replace(state, step=state.step + steps), {"p": p[self._t.rows, : state.chains]}

    def look(self, state: BlocksState) -> dict[str, Array]:
        if not self._looks:
            return {}
        draws, blocks, keys = np.empty_like(state.x), self._t.transition, state.look_keys
        draws[:] = state.mode[None, :, None]
        once = Steps(state.step, state.step + 1, False, -1.0)
        self._draw(blocks, draws, keys, once)
        # R is the transition with its blocks in reverse order. Bennett's ratio needs log R of a reversed sweep from s*
        # (docs/explanations/log-z.md).
        last_first = blocks[::-1].copy()
        ends = (self._draw(last_first, x, keys, once, mode=state.mode) for x in (state.x.copy(), draws))
        return {name: logs[: state.chains] - state.weight for name, logs in zip(("log_t", "log_r"), ends, strict=True)}

    def temper(self, state: BlocksState, betas: Array, sweeps: int) -> tuple[BlocksState, Array]:
        slopes = np.empty((sweeps, len(betas), state.chains))
        for k, beta in enumerate(betas.tolist()):
            for i in range(sweeps):
                state = self._sweep_at(state, np.full(state.chains, beta))
                slopes[i, k] = self.slope(state)["slope"]
        return state, slopes

    def _sweep_at(self, state: BlocksState, betas: Array) -> BlocksState:
        """A sweep at the inverse temperatures β (C,) of the chains, as the program's `temper`."""
        steps = Steps(state.climbed, state.climbed + 1, True, -1.0)
        self._draw(self._t.sweep, state.x, state.climb_keys, steps, beta=self._vectors(betas))
        return replace(state, climbed=state.climbed + 1)

    def slope(self, state: BlocksState) -> dict[str, Array]:
        return {"slope": self._log_weights(state.x)[: state.chains]}

    def states(self, state: BlocksState) -> Array:
        return np.moveaxis(state.x, 0, 1).reshape(state.x.shape[1], -1)[:, : state.chains].copy()

    def _draw(
        self,
        blocks: Array,
        x: Array,
        keys: Array,
        steps: Steps,
        *,
        beta: Array | None = None,
        sums: Array | None = None,
        mode: Array | None = None,
    ) -> Array:
        """Blocks of x (G, N, L) in place, at inverse temperatures β (G, L), drawn or put into the states of s*.

        Returns:
            (G L,) log of how likely the blocks, drawn one after the other, end in s*; 0 where none is given.
        """
        vectors, _, lanes = x.shape
        chains = Chains(x, keys, np.ones((vectors, lanes)) if beta is None else beta)
        marginal_sums, logs = np.zeros((vectors, 0, 0, lanes)) if sums is None else sums, np.zeros((vectors, lanes))
        target = np.repeat(np.zeros((0, 1), dtype=np.int64) if mode is None else mode[:, None], lanes, axis=1)
        run_steps(self._maps, self._weights, self._room, blocks, chains, steps, marginal_sums, target, logs)
        return logs.ravel()

    def _log_weights(self, x: Array) -> Array:
        """(G L,) less the model's constant."""
        weights: Array = sum_log_weights(self._entries, 0, np.moveaxis(x, 1, 0).reshape(x.shape[1], -1))
        return weights

    def _with_likeliest_mode(self, state: BlocksState) -> BlocksState:
        """With the likeliest of s* and the ends of all chains' descents for s*, which take no random numbers."""
        x = state.x.copy()
        # β doubles at each sweep, so that draws with the constant ½ become deterministic descents.
        for i in range(DESCENT_SWEEPS):
            self._draw(self._t.sweep, x, state.keys, Steps(0, 1, True, 0.5), beta=np.full(x.shape[::2], 2.0**i))
        weights = self._log_weights(x)
        best = int(weights.argmax())
        # s* is only replaced by a likelier state: burn-in must not lose a better one.
        if weights[best] <= state.weight:
            return state
        return replace(state, mode=x[best // self._lanes, :, best % self._lanes].copy(), weight=float(weights[best]))

    def _vectors(self, chains: Array) -> Array:
        """(G, …, L) from (…, C); what is missing to whole vectors is like the first chain."""
        return in_blocks(chains, -(-chains.shape[-1] // self._lanes), self._lanes)
