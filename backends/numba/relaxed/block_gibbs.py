"""Block Gibbs in compiled code: whole batches of steps in one call, one tile of chains after the other (`tiles`).

What limits a step: N normal and N uniform numbers, N sigmoids, and the products. The harmonium has two dense ones
(`products`); for A = I, and with sparse noise, Q and its triangular root are stored by their diagonals where those are
few (`banded`), 5 + 11 on a 10×10 grid, 13 KB, so that the random numbers remain. The edge-factored form takes a
normal number an edge more, and is left for sparse graphs without a narrow band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.relaxed.gram import (
    WIDEST_BAND,
    Gram,
    draw_field,
    make_dense,
    make_harmonium,
    make_sparse,
    noise_rows,
)
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout, coefficient, lanes, stride, unit
from spinbench.backends.numba.relaxed.units import (
    KERNEL,
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
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.simd.random_fills import fill_uniform
from spinbench.backends.numba.simd.vector_memory import load_state_vector, store_state_vector
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
        sums, zero_state = layout.zeros(), layout.energies()
        zero_state[:] = -np.inf
        rows = noise_rows(self._tables.edges, layout.n)
        scratch = Scratch(
            noise=layout.tile(rows),
            rows=rows,
            v=layout.tile(),
            s=layout.tile(),
            work=layout.tile(),
            energy=np.empty(layout.lanes),
        )
        counter = _steps(
            *(state.factor, state.bias, state.groups, layout.n, state.keys, state.counter, state.u, state.p),
            *(scratch, steps, method.marginals == "rao_blackwell", method.log_z == "zero_state", sums, zero_state),
        )
        state.counter = np.uint64(counter)
        seen = {"p" if method.marginals == "rao_blackwell" else "s": layout.gather(sums)}
        if method.log_z == "zero_state":
            seen["zero_state"] = layout.gather_energies(zero_state)
        elif method.log_z != "none":
            # rounded as the tiles are, so that a state's α does not depend on the batch
            seen["alpha"] = layout.gather(state.u) - self._tables.bias[:, None]
        return state, seen


@nb.njit(cache=True, **KERNEL)
def _steps(factor, bias, groups, n, keys, counter, u, p, scratch, steps, means, zero, sums, zero_state):
    """`steps` samples of every chain. Adds p (`means`) or s to sums, and to zero_state if `zero`; the next counter."""
    after = counter
    for t in range(len(u)):
        after = counter
        for _ in range(steps):
            after = _step(factor, bias, groups, n, keys[t], after, u[t], p[t], scratch)
            add_to_sums(p[t] if means else scratch.s, n, sums[t])
            if zero:
                add_log(-log_normaliser(u[t], groups, n, scratch.energy), zero_state[t], lanes(scratch.s))
    return after


@nb.njit(**KERNEL)
def _step(factor, bias, groups, n, keys, counter, u, p, scratch):
    """s given p, then u and p given s, for one tile."""
    counter = fill_uniform(keys, counter, scratch.v)
    draw_units(scratch.v, p, groups, n, scratch.s)
    counter = draw_noise(keys, counter, scratch.noise, scratch.rows)
    draw_field(factor, scratch.s, scratch.noise, n, scratch.work, u)
    field, biases = address(u, 0), address(bias, 0)
    for i in range(0, n, stride(u)):
        at = i * unit(u)
        store_state_vector(field, at, load_state_vector(field, at) + coefficient(u, biases, i))
    unit_means(u, groups, n, p)
    return counter
