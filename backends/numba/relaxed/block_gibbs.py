"""Block Gibbs in compiled code: whole batches of steps in one call, one tile of chains after the other (`tiles`).

What limits a step: N normal and N uniform numbers, N sigmoids, and the products. The harmonium has two dense ones
(`products`); for A = I, and with sparse noise, Q and its triangular root are stored by their diagonals where those are
few (`banded`), 5 + 11 on a 10×10 grid, 13 KB, so that the random numbers remain. The edge-factored form takes a
normal number an edge more, and is left for sparse graphs without a narrow band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import States
from spinbench.backends.numba.gibbs.form import Copies
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.relaxed.factors import Factor, draw_field, make_factor
from spinbench.backends.numba.relaxed.matrices import add_scaled
from spinbench.backends.numba.relaxed.relaxed_kernel import RelaxedKernel, TiledState
from spinbench.backends.numba.relaxed.tiles import ENTRY, NEVER, ONCE
from spinbench.backends.numba.relaxed.units import (
    Groups,
    add_to_sums,
    draw_noise,
    draw_units,
    tile_one_of_k_groups,
    unit_means,
)
from spinbench.backends.numba.simd import Array, fill_uniform
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.tables import unit_log_odds


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
