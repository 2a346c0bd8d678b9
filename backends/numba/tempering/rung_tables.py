"""Tables of the probabilities of each rung, and of what D is summed of, by neighbours' states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.gibbs.form import Flat
from spinbench.backends.numba.gibbs.pattern_lanes import CHAINS, FLUSH
from spinbench.backends.numba.gibbs.patterns import (
    MAX_NEIGHBOURS,
    MOST_ENTRIES,
    PIECE,
    PIECES,
    Words,
    all_patterns,
    as_thresholds,
    fixed_point_pieces,
    pad_neighbours,
    with_spare,
)
from spinbench.backends.numba.simd import Array, Real

# Lanes of a rung in a vector, at least: four rungs then share a vector, and beside four neighbours two bits of a
# pattern are free to number the rung.
FEWEST_LANES = 8
# Places for neighbours in narrow rows, a lattice's four; wider rows have six places, so that only two forms are
# compiled.
NARROW = 4
# Pieces of the fixed-point numbers whose sum is D.
WEIGHT_PIECES = {np.dtype(np.float32): 3, np.dtype(np.float64): 4}
# Largest number of sweeps between swaps for which sums of pieces fit 16 bits.
MOST_SWEEPS = FLUSH
# Rows whose pieces are summed in 16 bits: half as many as for unsigned pieces, since the highest piece is signed.
ROWS = 2 ** (PIECE - 1)


class Layout(NamedTuple):
    """Ladder k at rung r is lane (r // columns) share + k % share of vector (r % columns) groups + k // share.

    Attributes:
        share: lanes of a rung in a vector, 8, 16 or 32; groups: vectors that all ladders take.
        columns: vectors of each group; width: places of neighbours.
    """

    share: int
    groups: int
    columns: int
    width: int

    @property
    def bits(self) -> int:
        """Of a pattern, that tell the rung."""
        return (CHAINS // self.share).bit_length() - 1


def fit_layout(widest: int, rungs: int, chains: int) -> Layout | None:
    """Of rows of so many neighbours at most; None where a look-up has no room, or half of all lanes would be idle."""
    width = NARROW if widest <= NARROW else MAX_NEIGHBOURS
    share = FEWEST_LANES if width == NARROW else CHAINS
    while share < min(chains, CHAINS):
        share *= 2
    groups = -(-chains // share)
    if widest > width or 2 * chains <= share * groups > FEWEST_LANES:
        return None
    return Layout(share, groups, -(-rungs * share // CHAINS), width)


def fit(n: int, layout: Layout) -> bool:
    """Whether the tables of n rows are small enough."""
    return layout.columns * n << (layout.width + layout.bits) <= MOST_ENTRIES


class RungTables(NamedTuple):
    """P patterns are those of the neighbours, with the rung's bits above them.

    Attributes:
        word_tables: of these patterns; thresholds, high: (V, N P) of each column; p: at β = 1.
        weights: (N H P,) pieces of what D is summed of, over `scale`.
        scale: () float64.
        around, parts, part: (0,) * D, H and the lanes of a rung, for their types.
    """

    word_tables: Words
    weights: Array
    scale: float
    around: tuple[int, ...]
    parts: tuple[int, ...]
    part: tuple[int, ...]


class Rows:
    """Of one model, from rows in float64."""

    def __init__(self, flat: Flat, real: Real, layout: Layout) -> None:
        self._real, self._layout = real, layout
        self._near, couplings, later = pad_neighbours(flat, layout.width)
        patterns = all_patterns(layout.width)
        self._fields = flat.biases[:, None] + couplings @ patterns
        self._weights = flat.biases[:, None] + np.where(later, 0.0, couplings) @ patterns

    def tables(self, betas: Array) -> RungTables:
        """Of a ladder."""
        share, _, columns, width = self._layout
        copies = CHAINS // share
        by_column = np.zeros((copies, columns))
        by_column.ravel()[: len(betas)] = betas
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-by_column.T[:, None, :, None] * self._fields[:, None, :]))
            cold = 1 / (1 + np.exp(-np.tile(self._fields, copies)))
        thresholds = as_thresholds(p).reshape(columns, -1)
        high = np.stack(
            [with_spare((column_thresholds >> np.uint64(48)).astype(np.uint16)) for column_thresholds in thresholds]
        )
        pieces, parts, bits = PIECES[self._real], WEIGHT_PIECES[self._real], width + self._layout.bits
        scale = float(np.abs(self._weights).max(initial=1e-300))
        signed = _split_signed(np.tile(self._weights, copies) / scale, parts)
        near, p = self._near.ravel(), fixed_point_pieces(cold, pieces)
        word_tables = Words(near, thresholds, high, p, (0,) * pieces, (0,) * bits)
        return RungTables(word_tables, signed, scale, (0,) * width, (0,) * parts, (0,) * share)


def _split_signed(values: Array, parts: int) -> Array:
    """Of (n, P) numbers in [-1, 1]: (n parts P,) uint16 and what vectors may read beyond."""
    half = 2.0 ** (PIECE * parts - 1)
    fixed = np.clip(np.rint(values * half), -half, half - 1).astype(np.int64)
    shifts = np.arange(PIECE * (parts - 1), -1, -PIECE)
    pieces = fixed[:, None, :] >> shifts[:, None]
    # The highest piece keeps the sign; the lower pieces are non-negative digits.
    pieces[:, 1:] &= 2**PIECE - 1
    return with_spare(pieces.astype(np.int16).view(np.uint16).ravel())
