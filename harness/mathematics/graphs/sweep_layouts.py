"""Host tables for single-site samplers: which variables are updated together, in which order, from which neighbours.

Variables are binary; `merged_groups` makes factor graphs of models with 1-of-K groups. Those that are updated together
are not coupled. Rows of all tables are in an order of their own (`order`), in which everything that is updated together
is contiguous.

Three forms:

    Sweep   few blocks (the colours of a colouring), each a table of its own: code that is unrolled over blocks
    Scan    many blocks (raster levels, dense graphs), as equal chunks: a loop over chunks, also one row at a time
    dense   inside both: rows of W where they are not much longer than the lists of neighbours
"""

from __future__ import annotations

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.colouring import IntArray, colouring, raster_levels
from spinbench.mathematics.graphs.rows import (
    AnyRows,
    Windows,
    dense_rows,
    is_dense,
    pad_rows,
    reach_outside,
    window_rows,
)
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]
Order = Literal["chromatic", "raster"]

# A sweep of more blocks becomes a `Scan`: unrolled code and its compile time grow with the number of blocks.
MAX_BLOCKS = 16
# Labels by order of a sweep; variables of one label are updated at once.
SET_LABELS = {"chromatic": colouring, "raster": raster_levels}


class Block(NamedTuple):
    """Variables that are updated together; their rows follow those of the block before.

    Attributes:
        biases: (n,).
        neighbours: (D, n) int64 rows of the neighbours, 0 (with weight 0) where there are fewer. None for a block that
            is dense or has windows.
        weights: (D, n, 1) couplings, or (n, N) rows of W for a dense block.
        windows: where the neighbours are, in place of `neighbours`; None for all other blocks.
    """

    biases: FloatArray
    neighbours: IntArray | None
    weights: FloatArray
    windows: Windows | None = None


class Sweep(NamedTuple):
    """A scan in few blocks: first, then middle, then last.

    No neighbour of a block in `first` comes before it, and none of a block in `last` after it.
    """

    first: tuple[Block, ...]
    middle: tuple[Block, ...]
    last: tuple[Block, ...]


class Scan(NamedTuple):
    """A scan in B chunks of w rows; a chunk is filled up by repeating its first row.

    Attributes:
        rows: (B, w) int64.
        valid: (B, w) 1, or 0 for repetitions.
        biases: (N,).
        start: (N,) int64, where a row's neighbours begin in `columns`.
        degree: (N,) int64.
        columns: (2E + D,) int64, D the largest degree. None if dense.
        weights: (2E + D,), or (N, N) W if dense.
        window: (D,) int64: 0, …, D - 1; D is at least 1.
    """

    rows: IntArray
    valid: FloatArray
    biases: FloatArray
    start: IntArray
    degree: IntArray
    columns: IntArray | None
    weights: FloatArray
    window: IntArray


class Layout(NamedTuple):
    """The order of a scan.

    Attributes:
        order: (N,) int32, or int64 from 2^31 variables on, the variable of each row.
        bounds: (B + 1,) the rows of block b are bounds[b] … bounds[b + 1] - 1.
        labels: (B,) colour or level; blocks of one label are not coupled.
    """

    order: npt.NDArray[np.signedinteger]
    bounds: IntArray
    labels: IntArray


def layout(model: PairwiseModel, order: Order) -> Layout:
    """Blocks by colour or raster level; split further so that a block has variables of similar degree.

    Raises:
        UnsupportedError: 1-of-K groups.
    """
    if model.groups:
        raise UnsupportedError(
            f"{model.name} has 1-of-K groups, which sweeps of binary variables would break; a method with model_form = "
            '"categorical" gets variables of K states in their place'
        )
    count, edges, degree = model.num_variables, model.edges, model.degrees
    labels = SET_LABELS[order](count, edges)
    # Padding to the block's largest degree is limited to twice the number of edges.
    shape = np.zeros(count, dtype=np.int64)
    widest = np.zeros(labels.max() + 1, dtype=np.int64)
    np.maximum.at(widest, labels, degree)
    if widest[labels].sum() > 2 * degree.sum() + count:
        shape = np.ceil(np.log2(np.maximum(degree, 1))).astype(np.int64)
        sequence = np.lexsort((shape, labels))
    else:
        sequence = labels.argsort(kind="stable")
    changes = (np.diff(labels[sequence]) != 0) | (np.diff(shape[sequence]) != 0)
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    narrow = np.promote_types(np.int32, np.min_scalar_type(-count))
    return Layout(sequence.astype(narrow), np.append(first, count), labels[sequence[first]])


def choose_tables(model: PairwiseModel, plan: Layout, rows: AnyRows) -> Sweep | Scan:
    """`sweep_tables` of a scan in few blocks, else `scan_tables`."""
    if len(plan.labels) <= MAX_BLOCKS:
        return sweep_tables(model, plan, rows)
    return scan_tables(model, plan, rows)


def by_variable(order: npt.NDArray[np.integer], values: np.ndarray) -> np.ndarray:
    """Values (N, …) of rows, of which `order` (N,) names the variables, as those of variables."""
    result = np.empty_like(values)
    result[order] = values
    return result


def sweep_tables(model: PairwiseModel, plan: Layout, rows: AnyRows) -> Sweep:
    """The tables of a scan in few blocks."""
    biases = model.biases[plan.order]
    dense = is_dense(rows)
    blocks: list[Block] = []
    for low, high in itertools.pairwise(plan.bounds):
        block_biases = biases[low:high]
        if dense:
            blocks.append(Block(block_biases, None, dense_rows(rows, low, high)))
        elif (windowed := window_rows(rows, low, high)) is not None:
            blocks.append(Block(block_biases, None, windowed[1], windowed[0]))
        else:
            neighbours, weights = pad_rows(rows, low, high)
            blocks.append(Block(block_biases, neighbours, weights[:, :, None]))
    spans = zip(plan.bounds[:-1].tolist(), plan.bounds[1:].tolist(), strict=True)
    back, ahead = zip(*(reach_outside(rows, low, high) for low, high in spans), strict=True)
    head = (*back, True).index(True)
    tail = len(blocks)
    while tail > head and not ahead[tail - 1]:
        tail -= 1
    return Sweep(tuple(blocks[:head]), tuple(blocks[head:tail]), tuple(blocks[tail:]))


def scan_tables(model: PairwiseModel, plan: Layout, rows: AnyRows, sequence: IntArray | None = None) -> Scan:
    """The tables of a scan in equal chunks of rows of one label, or of one row each in the order of `sequence`."""
    n = model.num_variables
    if sequence is None:
        label = np.repeat(plan.labels, np.diff(plan.bounds))
        chunks = cut_classes(np.unique(label, return_counts=True)[1])
    else:
        chunks = sequence[:, None]
    start = rows.start.astype(np.int64)
    degree = np.diff(start)
    widest = int(degree.max(initial=1))
    if is_dense(rows):
        columns, weights = None, dense_rows(rows, 0, n)
    else:
        columns = np.concatenate([rows.columns, np.zeros(widest, dtype=np.int64)])
        weights = np.concatenate([rows.weights, np.zeros(widest)])
    return Scan(
        rows=chunks,
        valid=np.where((np.arange(chunks.shape[1]) > 0) & (chunks == chunks[:, :1]), 0.0, 1.0),
        biases=model.biases[plan.order],
        start=start[:-1],
        degree=degree,
        columns=columns,
        weights=weights,
        window=np.arange(widest),
    )


def cut_classes(sizes: IntArray, max_width: float = math.inf) -> IntArray:
    """(B, w) rows of consecutive classes, cut into pieces of one width, the short ones filled with their first row.

    Args:
        sizes: of the classes.
        max_width: the width is at most that, and as large as at most as many repetitions as rows allow.
    """
    width = int(min(sizes.max(), max_width))
    while width > 1 and (-(-sizes // width) * width).sum() > 2 * sizes.sum():
        width = -(-width // 2)
    pieces = -(-sizes // width)
    piece = np.repeat(np.cumsum(pieces) - pieces, sizes)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chunks = np.full((int(pieces.sum()), width), -1, dtype=np.int64)
    chunks[piece + within // width, within % width] = np.arange(sizes.sum())
    return np.where(chunks < 0, chunks[:, :1], chunks)
