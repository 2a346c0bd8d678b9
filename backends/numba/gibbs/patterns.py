"""Tables of what a row's update needs, by the pattern of its neighbours' states, for models of few neighbours.

With D neighbours a row has 2^D conditional probabilities. Looked up, they cost neither field nor exponential, and they
are as exact as the host makes them: p is held as the 64-bit number p 2^64, compared with 64 random bits.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.bands import GATHERED, LANES, make_bands
from spinbench.backends.numba.gibbs.tables import Flat

Array = npt.NDArray[Any]

MAX_NEIGHBOURS = 6
MOST_ENTRIES = 2**22
"""Of all rows' tables, for vectors of chains."""
MOST_ROW_ENTRIES = 2**18
"""The same for one chain, where every update needs a table of its own: 1 MB or 2 must stay in the cache."""
MOST_ROUGH_ENTRIES = 2**14
"""The same where sums are made of more entries, and float32 would do."""
AT_ONCE = 2**16
"""Rows whose tables are made together."""
PIECE = 8
"""Bits of a piece of a number in fixed point, of which sums of 2^PIECE fit 16 bits."""
PIECES = {np.dtype(np.float32): 3, np.dtype(np.float64): 7}
"""Of a summed number: as many bits as a float of that precision has, and rather more."""
SPARE = 64
"""Elements beyond the end of a table that vectors may read."""


class Patterns(NamedTuple):
    """Bit k of a pattern is the state of a row's neighbour k.

    Attributes:
        near: (N D,) uint32, the neighbours of each row, N where there are fewer than D (row N is always 0).
        thresholds: (N P,) uint64, p(s_i = 1 | pattern) 2^64, rounded, 2^64 - 1 at most.
        p: (N P,) float64.
        losses: (H P,) float64, -log p(s*_i | pattern) of the rows but the last, where all earlier rows have their
            values in s*.
        shape: () (0,) * D, for its type.
    """

    near: Array
    thresholds: Array
    p: Array
    losses: Array
    shape: tuple[int, ...]


class Words(NamedTuple):
    """Parts of these tables as words of 16 bits, for `look_up`.

    Attributes:
        near, thresholds, shape: as in `Patterns`.
        high: (N P,) uint16, the highest bits of the thresholds.
        p: (N K P,) uint16, p in K pieces of 8 bits after the point, the highest first.
        losses: (H K P,) uint16, the losses over `most` likewise.
        pieces: () (0,) * K, for its type.
        most: () float64.
    """

    near: Array
    thresholds: Array
    high: Array
    p: Array
    losses: Array
    pieces: tuple[int, ...]
    most: float
    shape: tuple[int, ...]


def _even_width(widest: int) -> int:
    """The most neighbours of a row, rounded up to an even number, so that there are fewer forms to compile."""
    return -(-max(1, widest) // 2) * 2


def _fit(n: int, width: int, most: int) -> bool:
    return width <= MAX_NEIGHBOURS and n << width <= most


def fit_lanes(n: int, widest: int) -> bool:
    """Whether the tables of n rows of at most `widest` neighbours are small enough for vectors of chains."""
    return _fit(n, _even_width(widest), MOST_ENTRIES)


def fit_rows(n: int, widest: int) -> bool:
    """The same row by row."""
    return _fit(n, _even_width(widest), MOST_ROW_ENTRIES)


class Entries(NamedTuple):
    """Of each row and pattern, (N, P).

    Attributes:
        thresholds: uint64, p(s_i = 1 | pattern) 2^64, rounded, 2^64 - 1 at most.
        p: float64.
        losses: (H, P) float64.
    """

    thresholds: Array
    p: Array
    losses: Array


def _tabulate(flat: Flat, weights: Array, later: Array, tail: int, bits: int = 0) -> Entries:
    """Entries of rows with couplings (N, D), of which `later` (N, D) tells those to later rows."""
    n, width = weights.shape
    pattern = ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).T.astype(np.float64)
    p, thresholds = np.empty((n, 2**width)), np.empty((n, 2**width), dtype=np.uint64)
    losses = np.empty((tail, 2**width))
    for low in range(0, n, AT_ONCE):
        part = slice(low, low + AT_ONCE)
        with np.errstate(over="ignore"):
            p[part] = 1 / (1 + np.exp(-(flat.biases[part, None] + weights[part] @ pattern)))
        if bits:
            p[part] = np.minimum(np.rint(p[part] * 2.0**bits), 2.0**bits - 1) / 2.0**bits
        sure = p[part] == 1
        thresholds[part] = (np.where(sure, 0.0, p[part]) * 2.0**64).astype(np.uint64)
        thresholds[part][sure] = np.iinfo(np.uint64).max
        part = slice(low, min(low + AT_ONCE, tail))
        if low < tail:
            forced = flat.forced[part, None] + np.where(later[part], weights[part], 0.0) @ pattern
            losses[part] = np.logaddexp(0.0, flat.sign[part, None] * forced)
    return Entries(thresholds, p, losses)


def make_patterns(flat: Flat, tail: int, bits: int = 0) -> Patterns:
    """Tables of a model.

    Args:
        flat: in float64.
        tail: H, the rows that `losses` are made of.
        bits: 0, or the probabilities are rounded to multiples of 2^-bits, and 1 - 2^-bits at most.
    """
    n, degree = len(flat.biases), np.diff(flat.start)
    width = _even_width(int(degree.max(initial=0)))
    slot = np.arange(len(flat.columns)) - np.repeat(flat.start[:-1], degree)
    row = np.repeat(np.arange(n), degree)
    near = np.full((n, width), n, dtype=np.uint32)
    near[row, slot] = flat.columns
    weights = np.zeros((n, width))
    weights[row, slot] = flat.weights
    later = np.arange(width) < (flat.later - flat.start[:-1])[:, None]
    entries = _tabulate(flat, weights, later, tail, bits)
    shape = (0,) * width
    return Patterns(near.ravel(), entries.thresholds.ravel(), entries.p.ravel(), entries.losses.ravel(), shape)


class Sites(NamedTuple):
    """The tables for vectors over rows. Rows are those of `Bands`, each block filled up to whole vectors with others
    that are always 0; bit q of a pattern is the state of the neighbour in slot q of the block.

    Attributes:
        bounds, slots, shifts, places, columns, before, after: as in `Bands`, of M padded rows.
        high: (M P,) uint32, the highest bits of the thresholds.
        thresholds, p, losses: as in `Patterns`.
        rows: (N,) int64, the padded row of each row.
        head, tail: () blocks; the rows of those below `head` have no earlier neighbours, of those from `tail` on no
            later ones.
        fixed: () float64, Σ log p(s*_i | rest) of the blocks from `tail` on.
        width: () the most slots of a block.
    """

    bounds: Array
    slots: Array
    shifts: Array
    places: Array
    columns: Array
    high: Array
    thresholds: Array
    p: Array
    losses: Array
    rows: Array
    before: int
    after: int
    head: int
    tail: int
    fixed: float
    width: int


def make_sites(flat: Flat, bounds: Array, head: int, tail: int, most: int = MOST_ROW_ENTRIES) -> Sites | None:
    """Tables of a model by blocks; None where they would be large.

    Args:
        flat: in float64.
        bounds: of the blocks.
        head, tail: as in `sweeps`.
        most: entries of a table.
    """
    if not _fit(len(flat.biases), int(np.diff(flat.start).max(initial=0)), most):
        return None
    sizes = np.diff(bounds)
    padded = np.concatenate([[0], np.cumsum(-(-sizes // LANES) * LANES)])
    rows = np.arange(len(flat.biases)) + np.repeat(padded[:-1] - bounds[:-1], sizes)
    whole = _padded(flat, rows, int(padded[-1]))
    bands = make_bands(whole, whole.biases, whole.sign, padded)
    width = max(1, int(np.diff(bands.slots).max(initial=0)))
    if width > MAX_NEIGHBOURS or int(padded[-1]) << width > most:
        return None
    weights, later = np.zeros((padded[-1], width)), np.zeros((padded[-1], width), dtype=bool)
    for block, (low, high) in enumerate(pairwise(padded.tolist())):
        for k, slot in enumerate(range(bands.slots[block], bands.slots[block + 1])):
            weights[low:high, k] = bands.weights[bands.offsets[slot] :][: high - low]
            if bands.shifts[slot] != GATHERED:
                later[low:high, k] = bands.shifts[slot] > 0
            else:
                later[low:high, k] = bands.columns[bands.places[slot] :][: high - low] > np.arange(low, high)
    head_block = int(np.searchsorted(bounds, head, "right")) - 1
    tail_block = int(np.searchsorted(bounds, tail))
    entries = _tabulate(whole, weights, later, int(padded[tail_block]))
    away = (flat.sign * flat.forced)[bounds[tail_block] :]
    there = np.zeros(padded[-1], dtype=bool)
    there[rows] = True
    for table in entries:
        table[~there[: len(table)]] = 0
    return Sites(
        *(padded, bands.slots, bands.shifts, bands.places, bands.columns),
        high=(entries.thresholds >> np.uint64(32)).astype(np.uint32).ravel(),
        thresholds=entries.thresholds.ravel(),
        p=entries.p.ravel(),
        losses=entries.losses.ravel(),
        rows=rows,
        before=bands.before,
        after=bands.after,
        head=head_block,
        tail=max(tail_block, head_block),
        fixed=-float(np.logaddexp(0.0, away).sum()),
        width=width,
    )


def _padded(flat: Flat, rows: Array, count: int) -> Flat:
    """The model of `count` rows, of which those not among `rows` are alone."""
    n, degree = len(rows), np.zeros(count, dtype=np.int64)
    degree[rows] = np.diff(flat.start)
    start = np.concatenate([[0], np.cumsum(degree)])

    def spread(values: Array) -> Array:
        whole = np.zeros(count, dtype=values.dtype)
        whole[rows] = values
        return whole

    later = start[:-1] + spread(flat.later - flat.start[:n])
    columns = rows[flat.columns].astype(np.uint32)
    reals = (spread(flat.biases), spread(flat.forced), spread(flat.sign))
    return Flat(start, later, columns, flat.weights, *reals, flat.first, flat.sizes, flat.strides)


def make_words(patterns: Patterns, real: np.dtype[Any]) -> Words:
    """The same in words; sums are made of as many pieces as `real` asks for."""
    pieces, size = PIECES[real], 2 ** len(patterns.shape)
    most = float(patterns.losses.max(initial=1e-300))
    return Words(
        near=patterns.near,
        thresholds=patterns.thresholds,
        high=_with_spare((patterns.thresholds >> np.uint64(48)).astype(np.uint16)),
        p=_pieces(patterns.p.reshape(-1, size), pieces),
        losses=_pieces(patterns.losses.reshape(-1, size) / most, pieces),
        pieces=(0,) * pieces,
        most=most,
        shape=patterns.shape,
    )


def _pieces(values: Array, pieces: int) -> Array:
    """Of (n, P) numbers in [0, 1]: (n pieces P,) uint16 and what vectors may read beyond."""
    total = PIECE * pieces
    fixed = np.minimum(np.rint(values * 2.0**total).astype(np.uint64), np.uint64(2**total - 1))
    shifts = np.arange(total - PIECE, -1, -PIECE, dtype=np.uint64)
    return _with_spare(((fixed[:, None, :] >> shifts[:, None]) & np.uint64(2**PIECE - 1)).astype(np.uint16).ravel())


def _with_spare(table: Array) -> Array:
    return np.concatenate([table, np.zeros(SPARE, dtype=table.dtype)])
