"""Tables of neighbours' patterns (`patterns`) for vectors over the rows of a block."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.bands import GATHERED, LANES, Bands, make_bands
from spinbench.backends.numba.gibbs.patterns import MAX_NEIGHBOURS, fit, tabulate
from spinbench.backends.numba.gibbs.tables import Flat

Array = npt.NDArray[Any]


class SiteTables(NamedTuple):
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


def make_site_tables(flat: Flat, bounds: Array, head: int, tail: int, most: int) -> SiteTables | None:
    """Tables of a model by blocks; None where they would be large.

    Args:
        flat: in float64.
        bounds: of the blocks.
        head, tail: rows as in `form.Asked`.
        most: entries of a table.
    """
    if not fit(len(flat.biases), int(np.diff(flat.start).max(initial=0)), most):
        return None
    sizes = np.diff(bounds)
    padded = np.concatenate([[0], np.cumsum(-(-sizes // LANES) * LANES)])
    rows = np.arange(len(flat.biases)) + np.repeat(padded[:-1] - bounds[:-1], sizes)
    whole = _padded(flat, rows, int(padded[-1]))
    bands = make_bands(whole, whole.biases, whole.sign, padded)
    width = max(1, int(np.diff(bands.slots).max(initial=0)))
    if width > MAX_NEIGHBOURS or int(padded[-1]) << width > most:
        return None
    head_block = int(np.searchsorted(bounds, head, "right")) - 1
    tail_block = int(np.searchsorted(bounds, tail))
    entries = tabulate(whole, *_slots(bands, width), int(padded[tail_block]))
    there = np.zeros(padded[-1], dtype=bool)
    there[rows] = True
    for table in entries:
        table[~there[: len(table)]] = 0
    away = (flat.sign * flat.forced)[bounds[tail_block] :]
    return SiteTables(
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


def _slots(bands: Bands, width: int) -> tuple[Array, Array]:
    """(couplings, whether they are those to later rows) of all rows' slots, (M, width)."""
    count = int(bands.bounds[-1])
    weights, later = np.zeros((count, width)), np.zeros((count, width), dtype=bool)
    for block, (low, high) in enumerate(pairwise(bands.bounds.tolist())):
        for k, slot in enumerate(range(bands.slots[block], bands.slots[block + 1])):
            weights[low:high, k] = bands.weights[bands.offsets[slot] :][: high - low]
            if bands.shifts[slot] != GATHERED:
                later[low:high, k] = bands.shifts[slot] > 0
            else:
                later[low:high, k] = bands.columns[bands.places[slot] :][: high - low] > np.arange(low, high)
    return weights, later


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
