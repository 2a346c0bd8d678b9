"""Host tables for single-site samplers: which variables are updated together, in which order, from which neighbours.

A *unit* is what one draw updates: a binary variable, or the members of a 1-of-K group. Units that are updated
together are not coupled. Rows of all tables are in an order of their own (`order`), in which everything that is
updated together is contiguous; the members of groups are stored member by member (all first members, all second
members, …).

Three forms:

    Sweep   few blocks (the colours of a colouring), each a table of its own: code that is unrolled over blocks
    Scan    many blocks (raster levels, dense graphs), as equal chunks: a loop over chunks, also one unit at a time
    dense   inside both: rows of W where they are not much longer than the lists of neighbours
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.colouring import colouring, raster_levels
from spinbench.mathematics.graphs.rows import AnyRows, dense_rows, is_dense, padded_rows, reach_outside
from spinbench.mathematics.graphs.windows import Windows, windowed_rows
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Order = Literal["chromatic", "raster"]

MAX_BLOCKS = 16
"""A sweep of more blocks is a `Scan`: unrolled code grows with the blocks, and with it the time to compile it."""


class Units(NamedTuple):
    """What one draw updates.

    Attributes:
        members: (U, K) variables, the first repeated where a unit has fewer than K.
        sizes: (U,) number of members.
        grouped: (U,) whether exactly one member is 1 (a 1-of-K group); otherwise one binary variable.
        of: (N,) the unit of each variable. Units are numbered by their first variable.
    """

    members: IntArray
    sizes: IntArray
    grouped: npt.NDArray[np.bool_]
    of: IntArray


class Block(NamedTuple):
    """Units of one kind that are updated together; their rows follow those of the block before.

    Attributes:
        biases: (n,) of n binary variables, or (K, G) of G groups of K members.
        neighbours: (D, n) int64 rows of the neighbours, 0 (with weight 0) where there are fewer; n = K G for
            groups. None for a block that is dense or has windows.
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
    """A scan in B chunks of w units each with up to K members; a chunk is filled up by repeating its first unit.

    Attributes:
        rows: (B, w, K) int64 rows of the members, the first repeated where there are fewer.
        valid: (B, w) 1, or 0 for repetitions.
        absent: (B, w, K) 0, or -inf for repeated members; None if all units are binary.
        off: (B, w) log weight of the state without any 1: 0 for binary variables, -inf for groups; None if all
            are binary.
        biases: (N,).
        start: (N,) int64, where a row's neighbours begin in `columns`.
        degree: (N,) int64.
        columns: (2E + D,) int64, D the largest degree. None if dense.
        weights: (2E + D,), or (N, N) W if dense.
        window: (D,) int64: 0, …, D - 1; D is at least 1.
    """

    rows: IntArray
    valid: FloatArray
    absent: FloatArray | None
    off: FloatArray | None
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
        units: (U,) units in the order of the scan.
        bounds: (B + 1,) the rows of block b are bounds[b] … bounds[b + 1] - 1.
        kinds: (B,) members of each unit of block b, 0 for binary variables.
        labels: (B,) colour or level; blocks of one label are not coupled.
    """

    order: npt.NDArray[np.signedinteger[Any]]
    units: IntArray
    bounds: IntArray
    kinds: IntArray
    labels: IntArray


def units_of(model: PairwiseModel) -> Units:
    """The units of a model."""
    n = model.num_variables
    if not model.groups:
        every = np.arange(n)
        return Units(every[:, None], np.broadcast_to(np.int64(1), n), np.broadcast_to(np.False_, n), every)
    grouped_variables = {i for group in model.groups for i in group}
    lists = [(i,) for i in range(n) if i not in grouped_variables]
    whole = sorted(lists + [tuple(sorted(group)) for group in model.groups])
    width = max(len(unit) for unit in whole)
    members = np.array([unit + unit[:1] * (width - len(unit)) for unit in whole], dtype=np.int64)
    of = np.empty(n, dtype=np.int64)
    of[members] = np.arange(len(whole))[:, None]
    sizes = np.array([len(unit) for unit in whole], dtype=np.int64)
    grouped = np.array([unit[0] in grouped_variables for unit in whole])
    return Units(members, sizes, grouped, of)


def unit_edges(model: PairwiseModel, units: Units) -> IntArray:
    """(E', 2) pairs of coupled units, each once, the lower first."""
    if not model.groups:
        return model.edges
    pairs = np.sort(units.of[model.edges], axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).reshape(-1, 2)


def layout(model: PairwiseModel, units: Units, order: Order) -> Layout:
    """Blocks by colour or raster level; split further so that a block has units of one kind and similar degree."""
    edges = unit_edges(model, units)
    count = len(units.sizes)
    labels = colouring(count, edges) if order == "chromatic" else raster_levels(count, edges)
    kinds = np.where(units.grouped, units.sizes, 0)
    degree = model.degrees
    if kinds.any():
        degree = degree[units.members].max(axis=1)
    # Padding to a block's largest degree must not cost more than twice the edges.
    shape = np.zeros(count, dtype=np.int64)
    widest = np.zeros(labels.max() + 1, dtype=np.int64)
    np.maximum.at(widest, labels, degree)
    if widest[labels].sum() > 2 * degree.sum() + count:
        shape = np.ceil(np.log2(np.maximum(degree, 1))).astype(np.int64)
    sequence = np.lexsort((shape, kinds, labels)) if kinds.any() or shape.any() else labels.argsort(kind="stable")
    changes = np.zeros(count - 1, dtype=bool)
    for key in (labels, kinds, shape):
        changes |= np.diff(key[sequence]) != 0
    cuts = np.flatnonzero(changes) + 1
    first = np.concatenate([[0], cuts])
    ends = np.append(cuts, count)
    kind, label = kinds[sequence[first]], labels[sequence[first]]
    bounds = np.concatenate([[0], np.cumsum((ends - first) * np.maximum(kind, 1))])
    narrow: type[np.signedinteger[Any]] = np.int32 if model.num_variables < 2**31 else np.int64
    rows = sequence.astype(narrow)
    if kinds.any():
        spans = zip(first, ends, np.maximum(kind, 1), strict=True)
        parts = [units.members[sequence[a:b], :size].T.ravel() for a, b, size in spans]
        rows = np.concatenate(parts).astype(narrow)
    return Layout(rows, sequence, bounds, kind, label)


def chosen_tables(model: PairwiseModel, units: Units, plan: Layout, rows: AnyRows) -> Sweep | Scan:
    """`sweep_tables` of a scan in few blocks, else `scan_tables`."""
    if len(plan.labels) <= MAX_BLOCKS:
        return sweep_tables(model, plan, rows)
    return scan_tables(model, units, plan, rows)


def by_variable(order: npt.NDArray[np.integer], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values (N, …) of rows, of which `order` (N,) names the variables, as those of variables."""
    result = np.empty_like(values)
    result[order] = values
    return result


def sweep_tables(model: PairwiseModel, plan: Layout, rows: AnyRows) -> Sweep:
    """The tables of a scan in few blocks."""
    biases = model.biases[plan.order]
    dense = is_dense(rows)
    blocks: list[Block] = []
    for low, high, kind in zip(plan.bounds[:-1], plan.bounds[1:], plan.kinds, strict=True):
        own = biases[low:high]
        own = own.reshape(kind, -1) if kind else own
        if dense:
            blocks.append(Block(own, None, dense_rows(rows, low, high)))
        elif (windowed := windowed_rows(rows, low, high)) is not None:
            blocks.append(Block(own, None, windowed[1], windowed[0]))
        else:
            neighbours, weights = padded_rows(rows, low, high)
            blocks.append(Block(own, neighbours, weights[:, :, None]))
    spans = zip(plan.bounds[:-1].tolist(), plan.bounds[1:].tolist(), strict=True)
    back, ahead = zip(*(reach_outside(rows, low, high) for low, high in spans), strict=True)
    head = back.index(True) if True in back else len(blocks)
    tail = len(blocks)
    while tail > head and not ahead[tail - 1]:
        tail -= 1
    return Sweep(tuple(blocks[:head]), tuple(blocks[head:tail]), tuple(blocks[tail:]))


def scan_tables(
    model: PairwiseModel, units: Units, plan: Layout, rows: AnyRows, sequence: IntArray | None = None
) -> Scan:
    """The tables of a scan in equal chunks of units of one label, or of one unit each in the order of `sequence`."""
    n = model.num_variables
    position = np.empty(n, dtype=np.int64)
    position[plan.order] = np.arange(n)
    chunks = _chunks(plan) if sequence is None else sequence[:, None]
    repeated = np.arange(units.members.shape[1]) >= units.sizes[chunks][..., None]
    grouped = units.grouped.any()
    dense = is_dense(rows)
    start = rows.start.astype(np.int64)
    degree = np.diff(start)
    widest = int(degree.max(initial=1))
    return Scan(
        rows=position[units.members[chunks]],
        valid=np.where((np.arange(chunks.shape[1]) > 0) & (chunks == chunks[:, :1]), 0.0, 1.0),
        absent=np.where(repeated, -np.inf, 0.0) if grouped else None,
        off=np.where(units.grouped[chunks], -np.inf, 0.0) if grouped else None,
        biases=model.biases[plan.order],
        start=start[:-1],
        degree=degree,
        columns=None if dense else np.concatenate([rows.columns, np.zeros(widest, dtype=np.int64)]),
        weights=dense_rows(rows, 0, n) if dense else np.concatenate([rows.weights, np.zeros(widest)]),
        window=np.arange(widest),
    )


def _chunks(plan: Layout) -> IntArray:
    """(B, w) units; w is as large as at most as many repetitions as units allow."""
    label = np.repeat(plan.labels, np.diff(plan.bounds) // np.maximum(plan.kinds, 1))
    sizes = np.unique(label, return_counts=True)[1]
    width = int(sizes.max())
    while width > 1 and (-(-sizes // width) * width).sum() > 2 * len(label):
        width = -(-width // 2)
    pieces = -(-sizes // width)
    piece = np.repeat(np.cumsum(pieces) - pieces, sizes)
    within = np.arange(len(label)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chunk, slot = piece + within // width, within % width
    chunks = np.full((int(pieces.sum()), width), -1, dtype=np.int64)
    chunks[chunk, slot] = plan.units
    return np.where(chunks < 0, chunks[:, :1], chunks)
