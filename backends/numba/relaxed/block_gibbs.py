"""Block Gibbs in compiled code: whole batches of steps in one call, one tile of chains after the other (`tiles`).

What limits a step: N normal and N uniform numbers, N sigmoids, and the products. The harmonium has two dense ones
(`products`); for A = I, and with sparse noise, Q and its triangular root are stored by their diagonals where those are
few (`banded`), 5 + 11 on a 10×10 grid, 13 KB, so that the random numbers remain. The edge-factored form takes a
normal number an edge more, and is left for sparse graphs without a narrow band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.relaxed.gram import (
    WIDEST_BAND,
    Gram,
    draw_field,
    make_dense,
    make_harmonium,
    make_sparse,
    noise_rows,
)
from spinbench.backends.numba.relaxed.point import add_column
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout, lanes
from spinbench.backends.numba.relaxed.units import (
    ENTRY,
    ONCE,
    Groups,
    add_log,
    add_to_sums,
    draw_noise,
    draw_units,
    first_noise,
    log_normaliser,
    make_groups,
    unit_means,
)
from spinbench.backends.numba.simd.random_fills import fill_uniform
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.block_gibbs import BlockGibbs, BlockGibbsTables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]


@dataclass
class BlockGibbsState:
    """Where chains are, their keys, the counter of the next random number, and what belongs to their place.

    u = α + b and p(s = 1|x): all tiles. The factor of Q, b, and the groups are laid out alike.
    """

    layout: Layout
    keys: npt.NDArray[np.uint64]
    counter: np.uint64
    factor: Gram
    bias: Array
    groups: Groups
    u: Array
    p: Array


class Scratch(NamedTuple):
    """Work space of a tile: noise, of `rows` rows; uniform numbers v, states s, and work; energy (L,) float64."""

    noise: Array
    rows: int
    v: Array
    s: Array
    work: Array
    energy: Array


class System(NamedTuple):
    """What gives x | s and s | x: a factor of Q, b as a column, groups, and N."""

    factor: Gram
    bias: Array
    groups: Groups
    n: int


class Chains(NamedTuple):
    """Keys, u = α + b and p(s = 1|x) of all tiles."""

    keys: npt.NDArray[np.uint64]
    u: Array
    p: Array


class Seen(NamedTuple):
    """Sums over steps, of p or of s as `means` says, all tiles; of exponentials, -log Π (1 + exp(u_i)), if `zero`."""

    sums: Array
    means: bool
    zero_state: Array
    zero: bool


class BlockGibbsKernel(Kernel):
    """`spinbench.methods.relaxed.block_gibbs.BlockGibbs` with the same law and the same statistics as its program."""

    def __init__(self, method: BlockGibbs, backend: Backend, model: PairwiseModel, tables: BlockGibbsTables) -> None:
        self._real = np.dtype(backend.precision)
        self._method = method
        self._tables = tables

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> BlockGibbsState:
        """x ~ p(x|s), computed on the host in float64."""
        tables, (n, chains) = self._tables, start.shape
        s = start.astype(np.float64)
        sparse = tables.edges is not None
        layout = Layout(chains, self._real, np.arange(n), min(n, WIDEST_BAND) if sparse else n)
        noise = first_noise(seed, n + (0 if tables.edges is None else tables.edges.weights.size), chains)
        if tables.edges is not None:
            field = family.edge_product(np, tables.edges, s, noise)
        else:
            assert tables.root is not None
            gram = tables.gram
            field = tables.root @ (tables.root.T @ s + noise) if gram is None else gram @ s + tables.root @ noise
        u = field + tables.bias[:, None]
        return BlockGibbsState(
            layout=layout,
            keys=layout.keys(seed),
            counter=np.uint64(0),
            factor=self._make_factor(layout),
            bias=layout.column(tables.bias, NEVER),
            groups=make_groups(tables.sites, layout),
            u=layout.scatter(u),
            p=layout.scatter(family.unit_means(np, tables.sites, u)),
        )

    def _make_factor(self, layout: Layout) -> Gram:
        tables = self._tables
        if tables.edges is not None:
            return make_sparse(tables.edges, layout)
        assert tables.root is not None
        if tables.gram is not None:
            return make_dense(tables.gram, tables.root, layout)
        return make_harmonium(tables.root, layout)

    def advance(self, state: BlockGibbsState, steps: int) -> tuple[BlockGibbsState, dict[str, Array]]:
        layout, method = state.layout, self._method
        means, zero = method.marginals == "rao_blackwell", method.log_z == "zero_state"
        found = Seen(layout.zeros(), means, layout.energies(), zero)
        found.zero_state[:] = -np.inf
        rows = noise_rows(self._tables.edges, layout.n)
        v, s, work = (layout.tile() for _ in range(3))
        counter = _steps(
            System(state.factor, state.bias, state.groups, layout.n),
            Chains(state.keys, state.u, state.p),
            Scratch(layout.tile(rows), rows, v, s, work, np.empty(layout.lanes)),
            *(found, state.counter, steps),
        )
        state.counter = np.uint64(counter)
        seen = {"p" if means else "s": layout.gather(found.sums)}
        if zero:
            seen["zero_state"] = layout.gather_energies(found.zero_state)
        if method.log_z != "none":
            # rounded as the tiles are, so that a state's α does not depend on the batch
            seen["alpha"] = layout.gather(state.u) - self._tables.bias[:, None]
        return state, seen


@njit(**ENTRY)
def _steps(system, chains, scratch, seen, counter, steps):
    """`steps` samples of every chain, added to `seen`; the next counter."""
    after = counter
    for t in range(len(chains.u)):
        u, p, after = chains.u[t], chains.p[t], counter
        for _ in range(steps):
            after = _step(system, chains.keys[t], after, u, p, scratch)
            add_to_sums(p if seen.means else scratch.s, system.n, seen.sums[t])
            if seen.zero:
                log_weight = -log_normaliser(u, system.groups, system.n, scratch.energy)
                add_log(log_weight, seen.zero_state[t], lanes(scratch.s))
    return after


@njit(**ONCE)
def _step(system, keys, counter, u, p, scratch):
    """s given p, then u and p given s, for one tile."""
    n = system.n
    counter = fill_uniform(keys, counter, scratch.v)
    draw_units(scratch.v, p, system.groups, n, scratch.s)
    counter = draw_noise(keys, counter, scratch.noise, scratch.rows)
    draw_field(system.factor.roots, system.factor, scratch.s, scratch.noise, n, scratch.work, u)
    add_column(u, system.bias, n, u)
    unit_means(u, system.groups, n, p)
    return counter
