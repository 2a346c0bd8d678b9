"""Where the entries of Hessians and of their Cholesky factors stand: blocks of an edge by an edge, with little fill."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.foundation.bitsets import members_of
from spinbench.models.forney.model import ForneyModel

IntArray = npt.NDArray[np.int64]


class Blocks(NamedTuple):
    """The lower half of a symmetric matrix of E × E blocks, columns in the order in which they are eliminated.

    Attributes:
        place: (E,) where each edge stands in that order.
        first: (E + 1,) where the blocks of each column begin, the diagonal one first.
        rows: of each block, ascending within a column.
        columns: of each block.
        pairs: the block of each pair of slots of each node, d² of them a node, -1 where it is in the upper half.
        pair: (n,) where the pairs of each node begin.
    """

    place: IntArray
    first: IntArray
    rows: IntArray
    columns: IntArray
    pairs: IntArray
    pair: IntArray


def blocks_of(model: ForneyModel) -> Blocks:
    """Of Hessians of sums over the nodes; entries are where two edges meet at a node, and fill."""
    later = _eliminated(model.num_edges, model.incident)
    order = _side_by_side(later)
    place = np.empty(model.num_edges, dtype=np.int64)
    place[order] = np.arange(model.num_edges)
    sizes = np.array([1 + len(later[e]) for e in order])
    first = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.repeat(np.arange(model.num_edges), sizes)
    keys = np.sort(columns * model.num_edges + place[[f for e in order for f in (e, *later[e])]])
    rows = keys % model.num_edges
    found, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for group in model.groups:
        at = place[group.edges]
        row, column = np.broadcast_arrays(at[:, :, None], at[:, None, :])
        spot = np.searchsorted(keys, column * model.num_edges + row)
        found.append(np.where(row >= column, spot, -1).ravel())
        counts.append(np.full(len(at), group.degree**2))
    count = np.concatenate(counts)
    return Blocks(place, first, rows, columns, np.concatenate(found), np.cumsum(count) - count)


def _eliminated(edges: int, nodes: Iterable[Iterable[int]]) -> dict[int, list[int]]:
    """{edge: its neighbours when it is eliminated}, in that order, always one of the fewest neighbours next."""
    near = [0] * edges
    for slots in nodes:
        at = 0
        for e in slots:
            at |= 1 << e
        for e in slots:
            near[e] |= at
    near = [bits & ~(1 << e) for e, bits in enumerate(near)]
    heap = [(bits.bit_count(), e) for e, bits in enumerate(near)]
    heapq.heapify(heap)
    later: dict[int, list[int]] = {}
    while heap:
        count, e = heapq.heappop(heap)
        if e in later or count != near[e].bit_count():
            continue
        later[e] = members_of(near[e])
        for f in later[e]:
            near[f] = (near[f] | near[e]) & ~(1 << e | 1 << f)
            heapq.heappush(heap, (near[f].bit_count(), f))
    return later


def _side_by_side(later: Mapping[int, list[int]]) -> list[int]:
    """Another order of the same fill, in which the rows of a column are often consecutive ones: depth first along the
    tree in which each edge is above those of which it is the first neighbour that is eliminated later."""
    rank = {e: k for k, e in enumerate(later)}
    above = {e: min(edges, key=rank.__getitem__) if edges else -1 for e, edges in later.items()}
    below: dict[int, list[int]] = {}
    for e, parent in above.items():
        below.setdefault(parent, []).append(e)
    order, waiting = [], list(below.get(-1, ()))
    while waiting:
        e = waiting.pop()
        order.append(e)
        waiting += below.get(e, ())
    return order[::-1]
