"""Tiles: how the chains of DHMC and block Gibbs lie in memory, so that all loops run over whole vectors.

One chain is a tile (P,) of its own, whose vectors hold neighbouring variables; P is N rounded up to whole vectors. Of
many chains, as many as a vector has lanes are a tile (N, L), whose vectors hold a variable of all of them. Either way
the kernels work on one tile at a time, in the first-level cache, with the same code: `stride` variables a vector,
`unit` elements a variable. The type of the array decides what is compiled.

What follows N in a tile (P,) is a variable that is never 1: matrices are zero there, biases `NEVER`, noise zero.
Tiles of work space are surrounded by zeros, `margin` variables on both sides, for products by diagonals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from spinbench.backends.numba.gibbs.shared import block_keys, in_blocks
from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd import (
    LINE,
    Array,
    Real,
    chain_keys,
    intrinsic_of,
    read,
    spread_over,
    sum_of_lanes,
    wide,
    zeros_aligned,
)
from spinbench.backends.numba.simd.arrays import elements_of_row
from spinbench.backends.numba.simd.vectors import Operation

IntArray = npt.NDArray[np.int64]

# Bias of the padding variables that fill up a vector: σ and softplus of -10^4 are 0 in both precisions, so that they
# add nothing to any sum.
NEVER = -1e4

# Options of functions that Python calls, on arrays and without allocation. Without Numba's runtime references are not
# counted: an atomic count for each array that is sliced or taken from a tuple would cost a step of one chain as much as
# its products.
ENTRY: Options = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False, "cache": True}
# Options of functions that those functions call.
KERNEL: Any = {**ENTRY, **CALLEE, "cache": False}
# Options of large functions with a single call site: inlining them here keeps LLVM from optimising them twice.
ONCE: Options = {**ENTRY, "cache": False, "inline": "always"}


@dataclass(frozen=True)
class Layout:
    """Where N variables of C chains are.

    Attributes:
        chains: C. real: the precision of tiles.
        order: (N,) the variable of each row of a tile.
        margin: variables before and behind a tile of work space.
    """

    chains: int
    real: Real
    order: IntArray
    margin: int = 0

    @property
    def n(self) -> int:
        return self.order.size

    @property
    def lanes(self) -> int:
        """Of a vector."""
        return LINE // self.real.itemsize

    @property
    def single(self) -> bool:
        """Whether each chain is a tile of its own. A tile of several takes about as long as half as many of them."""
        return self.chains <= self.lanes // 2

    @property
    def tiles(self) -> int:
        return self.chains if self.single else -(-self.chains // self.lanes)

    def pad_rows(self, rows: int) -> int:
        """Rows in whole vectors."""
        return -(-rows // self.lanes) * self.lanes

    def shape(self, rows: int) -> tuple[int, ...]:
        """Of a tile."""
        return (self.pad_rows(rows),) if self.single else (rows, self.lanes)

    def tile(self, rows: int | None = None) -> Array:
        """Work space of zeros, with its margins."""
        shape = self.shape(self.n if rows is None else rows)
        margin = self.pad_rows(self.margin) if self.single else self.margin
        return zeros_aligned(shape, self.real, margin)

    def zeros(self, real: npt.DTypeLike = np.float64) -> Array:
        """(T, P) or (T, N, L), all tiles."""
        return zeros_aligned((self.tiles, *self.shape(self.n)), np.dtype(real))

    def energies(self) -> Array:
        """(T, L) zeros: a number for each chain, in all lanes where a chain is alone."""
        return zeros_aligned((self.tiles, self.lanes), np.dtype(np.float64))

    def scatter(self, values: Array) -> Array:
        """All tiles from (N, C); lanes without a chain repeat the first one's."""
        rows = values[self.order].astype(self.real)
        if not self.single:
            return in_blocks(rows, self.tiles, self.lanes)
        out = self.zeros(self.real)
        out[:, : self.n] = rows.T
        return out

    def gather(self, tiles: Array) -> Array:
        """(…, N, C) float64 from all tiles."""
        axis = -2 if self.single else -3
        rows = np.moveaxis(tiles, axis, axis + 1)
        values = rows.reshape(*rows.shape[: axis + 1], -1)[..., : self.n, : self.chains]
        out = np.empty(values.shape)
        out[..., self.order, :] = values
        return out

    def spread_energies(self, values: Array) -> Array:
        """(T, L) from (C,)."""
        out = self.energies()
        out[:] = values[:, None] if self.single else in_blocks(values, *out.shape)
        return out

    def gather_energies(self, energies: Array) -> Array:
        """(C,) from (T, L)."""
        return np.array(energies[:, 0] if self.single else energies.ravel()[: self.chains])

    def column(self, values: Array, beyond: float = 0.0) -> Array:
        """(P,) from a number a variable."""
        out = zeros_aligned((self.pad_rows(self.n),), self.real)
        out[self.n :] = beyond
        out[: self.n] = values[self.order]
        return out

    def keys(self, seed: int) -> npt.NDArray[np.uint64]:
        """(T, 2) or (T, 2, L), see `random.chain_keys`."""
        if self.single:
            return np.ascontiguousarray(chain_keys(seed, self.tiles).T)
        return block_keys(seed, self.tiles, self.lanes)


def _lanes(tile: Any) -> int:
    return LINE * 8 // int(tile.dtype.bitwidth)


def _constant(count: Callable[[types.Array], int]) -> Operation:
    """An intrinsic that gives an integer which depends on the tile's type."""

    @intrinsic_of(lambda tile: types.intp)
    def give(emitter, tile):
        return emitter.target(count(emitter.typed[0][0]))

    return give


# Variables per vector; in compiled code only, as everything below.
stride = _constant(lambda tile: _lanes(tile) if tile.ndim == 1 else 1)
# Elements per variable.
unit = _constant(elements_of_row)


@intrinsic_of(lambda tile: types.UniTuple(types.intp, _lanes(tile)))
def lanes(emitter, tile):
    """A tuple with an entry for each lane of a vector."""
    return ir.Constant(emitter.target, None)


@intrinsic_of(lambda tile: wide(tile.dtype))
def zeros(emitter, tile):
    """A vector of zeros."""
    return ir.Constant(emitter.target, None)


@intrinsic_of(lambda column, i, tile: wide(tile.dtype) if tile.ndim == 1 else tile.dtype)
def coefficient(emitter, column, i, tile):
    """What multiplies a tile's vector at variable i, from the pointer to a number a variable."""
    return read(emitter, *emitter.typed[:2], emitter.target)


@intrinsic_of(lambda tile, vector: vector)
def over_variables(emitter, tile, vector):
    """In every lane the sum over all variables, from the sum over a tile's vectors."""
    if emitter.typed[0][0].ndim > 1:
        return vector
    return spread_over(emitter.builder, sum_of_lanes(emitter.builder, vector), vector.type)
