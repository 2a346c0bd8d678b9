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

from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.relaxed.factors import Factor, draw_field, make_factor
from spinbench.backends.numba.relaxed.point import add_scaled
from spinbench.backends.numba.relaxed.relaxed_kernel import RelaxedKernel
from spinbench.backends.numba.relaxed.tiles import ENTRY, NEVER, ONCE, Layout, lanes
from spinbench.backends.numba.relaxed.units import (
    Groups,
    add_log,
    add_to_sums,
    draw_noise,
    draw_units,
    log_normaliser,
    make_groups,
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
class BlockGibbsState:
    """What chains follow and where they are, and the counter of the next random number."""

    layout: Layout
    counter: np.uint64
    system: System
    chains: Chains


class Scratch(NamedTuple):
    """Work space of a tile: noise, of `rows` rows; uniform numbers v, states s, and work; energy (L,) float64."""

    noise: Array
    rows: int
    v: Array
    s: Array
    work: Array
    energy: Array


class StepSums(NamedTuple):
    """Sums over steps, of p or of s as `means` says, all tiles; of exponentials, -log Π (1 + exp(u_i)), if `zero`."""

    sums: Array
    means: bool
    zero_state: Array
    zero: bool


class BlockGibbsKernel(RelaxedKernel):
    """`spinbench.methods.relaxed.block_gibbs.BlockGibbs` with the same law and the same statistics as its program."""

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> BlockGibbsState:
        """x ~ p(x|s), computed on the host in float64."""
        tables, layout = self._tables, self._layout(start.shape[1])
        u = unit_log_odds(np, tables, self._first_position(seed, start))
        p = family.unit_means(np, tables.sites, u)
        factor, groups = make_factor(tables, None, layout), make_groups(tables.sites, layout)
        return BlockGibbsState(
            layout=layout,
            counter=np.uint64(0),
            system=System(factor, layout.column(tables.bias, NEVER), groups, layout.n),
            chains=Chains(layout.keys(seed), layout.scatter(u), layout.scatter(p)),
        )

    def advance(self, state: BlockGibbsState, steps: int) -> tuple[BlockGibbsState, dict[str, Array]]:
        layout, log_z = state.layout, self._method.log_z
        totals = StepSums(layout.zeros(), self._method.units == "p", layout.energies(), log_z == "zero_state")
        totals.zero_state[:] = -np.inf
        rows = state.system.factor.noise
        v, s, work = (layout.tile() for _ in range(3))
        scratch = Scratch(layout.tile(rows), rows, v, s, work, np.empty(layout.lanes))
        state.counter = np.uint64(_steps(state.system, state.chains, scratch, totals, state.counter, steps))
        statistics = {self._method.units: layout.gather(totals.sums)}
        if totals.zero:
            statistics["zero_state"] = layout.gather_energies(totals.zero_state)
        if log_z != "none":
            # rounded as the tiles are, so that a state's α does not depend on the batch
            statistics["alpha"] = layout.gather(state.chains.u) - self._tables.bias[:, None]
        return state, statistics


@njit(**ENTRY)
def _steps(system, chains, scratch, statistics, counter, steps):
    """`steps` samples of every chain, added to `statistics`; the next counter."""
    after = counter
    for t in range(len(chains.u)):
        u, p, after = chains.u[t], chains.p[t], counter
        for _ in range(steps):
            after = _step(system, chains.keys[t], after, u, p, scratch)
            add_to_sums(p if statistics.means else scratch.s, system.n, statistics.sums[t])
            if statistics.zero:
                log_weight = -log_normaliser(u, system.groups, system.n, scratch.energy)
                add_log(log_weight, statistics.zero_state[t], lanes(scratch.s))
    return after


@njit(**ONCE)
def _step(system, keys, counter, u, p, scratch):
    """s given p, then u and p given s, for one tile."""
    n = system.n
    counter = fill_uniform(keys, counter, scratch.v)
    draw_units(scratch.v, p, system.groups, n, scratch.s)
    counter = draw_noise(keys, counter, scratch.noise, scratch.rows)
    draw_field(system.factor, scratch.s, scratch.noise, scratch.work, u)
    add_scaled(u, 1.0, system.bias, n, u)
    unit_means(u, system.groups, n, p)
    return counter
