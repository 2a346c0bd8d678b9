"""Block Gibbs in compiled code: whole batches of steps of all chains in one call.

What limits a step, for one chain: N normal and N uniform numbers, N sigmoids, and the dense products of the harmonium,
bound by reading N²/2 + N² numbers (at N = 100 in float64 120 KB, from the second-level cache; 35 bytes a cycle were
reached). The products with s add up the rows of the s_j that are 1. For A = I the triangular root is read up to its
diagonal, and where Q and its root have few diagonals, as on lattices, only those are stored (`banded`): 11 + 5 of them
on a 10×10 grid, 13 KB, so that the random numbers remain. The edge-factored form has no product, but takes a normal
number an edge more. For many chains BLAS's products remain, at the core's arithmetic peak, and the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gram import (
    Banded,
    Dense,
    Edges,
    Harmonium,
    draw_field,
    make_dense,
    make_edges,
    noise_rows,
)
from spinbench.backends.numba.random import chain_keys, fill_normal, fill_uniform
from spinbench.backends.numba.units import (
    KERNEL,
    add_column,
    add_log,
    add_to,
    draw_units,
    log_normaliser,
    make_groups,
    unit_means,
)
from spinbench.methods.block_gibbs import BlockGibbs, BlockGibbsTables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]


@dataclass
class BlockGibbsState:
    """Keys (2, C) and the counter of the next random number; s in {0, 1}, u = α + b and p(s = 1|x), all (N, C)."""

    keys: npt.NDArray[np.uint64]
    counter: np.uint64
    s: Array
    u: Array
    p: Array


class BlockGibbsKernel(Kernel):
    """`spinbench.methods.block_gibbs.BlockGibbs` with the same law and the same statistics as its program."""

    def __init__(self, method: BlockGibbs, backend: Backend, model: PairwiseModel, tables: BlockGibbsTables) -> None:
        self._real = np.dtype(backend.precision)
        self._method = method
        self._bias = tables.bias.astype(self._real)
        self._groups = make_groups(tables.sites, model.num_variables)
        self._factor = self._make_factor(tables)

    def _make_factor(self, tables: BlockGibbsTables) -> Harmonium | Dense | Banded | Edges:
        if tables.edges is not None:
            return make_edges(tables.edges, self._real)
        assert tables.root is not None
        if tables.gram is not None:
            return make_dense(tables.gram, tables.root, self._real)
        root = np.ascontiguousarray(tables.root, dtype=self._real)
        return Harmonium(root, np.ascontiguousarray(root.T))

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> BlockGibbsState:
        s = np.ascontiguousarray(start, dtype=self._real)
        state = BlockGibbsState(chain_keys(seed, s.shape[1]), np.uint64(0), s, np.empty_like(s), np.empty_like(s))
        self._run(state, 0, True)
        return state

    def advance(self, state: BlockGibbsState, steps: int) -> tuple[BlockGibbsState, dict[str, Array]]:
        sums, zero_state = self._run(state, steps, False)
        seen = {"p" if self._method.marginals == "rao_blackwell" else "s": sums}
        if self._method.log_z == "zero_state":
            seen["zero_state"] = zero_state
        elif self._method.log_z != "none":
            seen["alpha"] = (state.u - self._bias[:, None]).astype(np.float64)
        return state, seen

    def _run(self, state: BlockGibbsState, steps: int, first: bool) -> tuple[Array, Array]:
        n, chains = state.s.shape
        sums, zero_state = np.zeros((n, chains)), np.full(chains, -np.inf)
        noise = np.empty((noise_rows(self._factor, n), chains), dtype=self._real)
        scratch = (noise, np.empty_like(state.s), np.empty_like(state.s), np.empty(chains))
        counter = _steps(
            *(self._factor, self._bias, self._groups, state.keys, state.counter, state.s, state.u, state.p),
            *(scratch, steps, first, self._method.marginals == "rao_blackwell", self._method.log_z == "zero_state"),
            *(sums, zero_state),
        )
        state.counter = np.uint64(counter)
        return sums, zero_state


@nb.njit(cache=True, **KERNEL)
def _steps(factor, bias, groups, keys, counter, s, u, p, scratch, steps, first, means, zero, sums, zero_state):
    """`steps` samples; `first`: only draw x given s. Adds p (`means`) or s to sums, and zero_state if `zero`."""
    noise, v, work, normaliser = scratch
    for _ in range(1 if first else steps):
        if not first:
            counter = fill_uniform(keys, counter, v)
            draw_units(v, p, groups, s)
        counter = fill_normal(keys, counter, noise)
        draw_field(factor, s, noise, work, u)
        add_column(u, bias, u)
        unit_means(u, groups, p)
        add_to(p if means else s, sums)
        if zero:
            log_normaliser(u, groups, work, normaliser)
            for c in range(normaliser.size):
                normaliser[c] = -normaliser[c]
            add_log(normaliser, zero_state)
    return counter
