"""Block Gibbs in compiled code: whole batches of steps in one call, one tile of chains after the other (`tiles`).

What limits a step: N normal and N uniform numbers, N sigmoids, and the products. The harmonium has two dense ones
(`products`); for A = I, and with sparse noise, Q and its triangular root are stored by their diagonals where those are
few (`banded`), 5 + 11 on a 10×10 grid, 13 KB, so that the random numbers remain. The edge-factored form takes a
normal number an edge more, and is left for sparse graphs without a narrow band.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, PairwiseModel, States
from spinbench.api.kernel import LookingKernel
from spinbench.backends.numba.gibbs.form import Copies
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.relaxed import factors, tiles
from spinbench.backends.numba.relaxed.factors import Factor, draw_field, make_factor
from spinbench.backends.numba.relaxed.matrices import add_scaled
from spinbench.backends.numba.relaxed.tiles import ENTRY, NEVER, ONCE
from spinbench.backends.numba.relaxed.units import (
    Groups,
    add_to_sums,
    draw_noise,
    draw_units,
    tile_one_of_k_groups,
    unit_means,
)
from spinbench.backends.numba.simd import Array, fill_uniform, zeros_aligned
from spinbench.mathematics.relaxation import density, estimators
from spinbench.methods.relaxed import block_gibbs, dhmc, family
from spinbench.methods.relaxed.tables import RelaxedTables, draw_position, normals_per_draw, unit_log_odds


@dataclass
class TiledState:
    """Chains that lie in tiles: how, and the counter of the next random number."""

    layout: tiles.Layout
    counter: np.uint64


StateT = TypeVar("StateT", bound=TiledState)
# Cost in steps of block Gibbs of a look at copied draws; relative to the longer steps of `dhmc` a look costs less.
LOOK_STEPS = 3


class RelaxedKernel(LookingKernel[RelaxedTables, StateT]):
    """The layout of chains, where they begin, and looks for log Z."""

    def __init__(
        self, method: block_gibbs.BlockGibbs | dhmc.DHMC, backend: Backend, model: PairwiseModel, tables: RelaxedTables
    ) -> None:
        self._real = np.dtype(backend.precision)
        self._method, self._tables = method, tables
        self._has_looks = method.log_z != "none" and len(tables.bias) <= estimators.MAX_VARIABLES
        needed = tables.precision is not None
        self._halves = factors.two_colours(density.Relaxation(model, tables.d).gram) if needed else None

    @abstractmethod
    def sample(self, state: StateT, steps: int, copies: Copies) -> dict[str, Array]:
        """So many steps of the state, their statistics, and copies of `positions` on the way."""

    @abstractmethod
    def positions(self, state: StateT) -> Array:
        """(T, P) or (T, N, L): u or x, all tiles."""

    def advance(self, state: StateT, steps: int) -> tuple[StateT, dict[str, Array]]:
        return state, self.sample(state, steps, self._copies(state.layout, steps + 1, 1, 0))

    def look(self, state: StateT) -> dict[str, Array]:
        # rounded as the tiles are, so that the α of a state does not depend on the batch
        return {"alpha": self._alpha(state.layout.gather(self.positions(state)))} if self._has_looks else {}

    def look_steps(self, state: StateT) -> int:
        return LOOK_STEPS if self._has_looks else 0

    def advance_and_look(
        self, state: StateT, steps: int, first: int, every: int
    ) -> tuple[StateT, dict[str, Array], dict[str, Array]]:
        copies = self._copies(state.layout, first, every, 1 + (steps - first) // every)
        statistics = self.sample(state, steps, copies)
        return state, statistics, {"alpha": self._alpha(state.layout.gather(copies.states))}

    def _copies(self, layout: tiles.Layout, first: int, every: int, count: int) -> Copies:
        return Copies(first, every, zeros_aligned((count, layout.tiles, *layout.shape(layout.n)), np.dtype(np.float64)))

    def _alpha(self, positions: Array) -> Array:
        """(…, N, C) from u or x."""
        return positions - self._tables.bias[:, None]

    def _layout(self, chains: int) -> tiles.Layout:
        n = len(self._tables.bias)
        order = np.arange(n) if self._halves is None else np.concatenate(self._halves[1:])
        return tiles.Layout(chains, self._real, order, n if self._tables.edges is None else min(n, factors.WIDEST_BAND))

    def _first_position(self, seed: int, start: States) -> Array:
        """(N, C): x ~ p(x|s), in float64. That of a chain does not depend on C."""
        rows, chains = normals_per_draw(self._tables), start.shape[1]
        noise = np.random.default_rng([seed, rows]).standard_normal((chains, rows)).T
        # contiguous operands make the rounding of products independent of C
        return np.asarray(draw_position(np, self._tables, start.astype(np.float64), np.ascontiguousarray(noise)))


class System(NamedTuple):
    """What gives x | s and s | x: a factor of Q, b as a column, groups, and N."""

    factor: Factor
    bias: Array
    groups: Groups
    n: int


class Chains(NamedTuple):
    """Keys, u = α + b and p(s = 1|x) of all tiles."""

    keys: npt.NDArray[np.uint64]
    u: Array
    p: Array


@dataclass
class BlockGibbsState(TiledState):
    """What chains follow, and where they are."""

    system: System
    chains: Chains


class Scratch(NamedTuple):
    """Work space of a tile: noise; uniform numbers v, states s, and work."""

    noise: Array
    v: Array
    s: Array
    work: Array


class BlockGibbsKernel(RelaxedKernel[BlockGibbsState]):
    """`spinbench.methods.relaxed.block_gibbs.BlockGibbs` with the same law and the same statistics as its program."""

    def init(self, seed: int, start: States) -> BlockGibbsState:
        """x ~ p(x|s), computed on the host in float64."""
        tables, layout = self._tables, self._layout(start.shape[1])
        u = unit_log_odds(np, tables, self._first_position(seed, start))
        p = family.unit_means(np, tables.sites, u)
        factor, groups = make_factor(tables, None, layout), tile_one_of_k_groups(tables.sites, layout)
        return BlockGibbsState(
            layout=layout,
            counter=np.uint64(0),
            system=System(factor, layout.column(tables.bias, NEVER), groups, layout.n),
            chains=Chains(layout.keys(seed), layout.scatter(u), layout.scatter(p)),
        )

    def positions(self, state: BlockGibbsState) -> Array:
        return state.chains.u

    def sample(self, state: BlockGibbsState, steps: int, copies: Copies) -> dict[str, Array]:
        layout, system, chains = state.layout, state.system, state.chains
        sums, means = layout.zeros(), self._method.units == "p"
        v, s, work = (layout.tile() for _ in range(3))
        scratch = Scratch(layout.tile(system.factor.noise), v, s, work)
        state.counter = np.uint64(_steps(system, chains, scratch, sums, means, copies, state.counter, steps))
        return {self._method.units: layout.gather(sums)}


@njit(**ENTRY)
def _steps(system, chains, scratch, sums, means, copies, counter, steps):
    """`steps` samples of every chain, their p or, unless `means`, s added to `sums`, with copies of u on the way; the
    next counter."""
    after = counter
    for t in range(len(chains.u)):
        u, p, after = chains.u[t], chains.p[t], counter
        next_copy, k = copies.first, 0
        for step in range(1, steps + 1):
            after = _step(system, chains.keys[t], after, u, p, scratch)
            add_to_sums(p if means else scratch.s, system.n, sums[t])
            if step == next_copy:
                add_to_sums(u, system.n, copies.states[k, t])
                next_copy, k = next_copy + copies.every, k + 1
    return after


@njit(**ONCE)
def _step(system, keys, counter, u, p, scratch):
    """s given p, then u and p given s, for one tile."""
    n = system.n
    counter = fill_uniform(keys, counter, scratch.v)
    draw_units(scratch.v, p, system.groups, n, scratch.s)
    counter = draw_noise(keys, counter, scratch.noise, system.factor.noise)
    draw_field(system.factor, scratch.s, scratch.noise, scratch.work, u)
    add_scaled(u, 1.0, system.bias, n, u)
    unit_means(u, system.groups, n, p)
    return counter
