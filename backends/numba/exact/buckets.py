"""The plan of compiled bucket elimination: what each bucket multiplies, and the room that it needs.

Variables are named by their position in the elimination order. Bucket p has the axes (p, S): axis 0 is p itself, the
others are its separator S in ascending order. Pieces are the T tables and then the n messages; message p runs over the
separator of p in C order. All numbers of all pieces lie in one array.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from spinbench.reference.network import FlatFactors, FloatArray, IntArray
from spinbench.reference.orders.order import Order

# Entries of the innermost block: 16 kB, so that the block and its pieces fit a first-level cache of 32 kB.
BLOCK = 2048


class Plan(NamedTuple):
    """What the buckets multiply; all int64.

    Attributes:
        states: (n,) of each position.
        start: (T + n + 1,) where the scopes of the pieces start in `scope`.
        scope: positions.
        bucket: (n + 1,) where the pieces of a bucket start in `piece`: those whose first position it is.
        piece: pieces.
        offset: (T + n + 1,) where the entries of the pieces start; those of messages that are held at different times
            may lie in one place, for `forward` alone.
    """

    states: IntArray
    start: IntArray
    scope: IntArray
    bucket: IntArray
    piece: IntArray
    offset: IntArray


class Sizes(NamedTuple):
    """The largest numbers that a bucket has: of axes, of pieces and children, of patterns that it keeps, of entries of
    a block, and of states."""

    axes: int
    pieces: int
    patterns: int
    block: int
    states: int


def make_plan(flat: FlatFactors, order: Order) -> tuple[Plan, Sizes, FloatArray]:
    """The plan, with messages one after another, what is largest in it, and the entries of the messages.

    Args:
        flat: n variables and T tables.
        order: of elimination.
    """
    n, tables, states = len(order.order), len(flat.offset) - 1, flat.states[order.order]
    over = np.fromiter(map(len, order.separators), dtype=np.int64, count=n)
    above = np.fromiter(itertools.chain.from_iterable(order.separators), dtype=np.int64)
    start = np.concatenate([flat.start, flat.start[-1] + np.cumsum(over)])
    scope = np.concatenate([np.argsort(order.order)[flat.scope], above])
    # Roots send messages without axes, which enter no bucket.
    pieces = np.flatnonzero(np.diff(start))
    lowest = np.minimum.reduceat(scope, start[pieces])
    by_bucket = np.argsort(lowest, kind="stable")
    bucket_of, placed = lowest[by_bucket], pieces[by_bucket]
    message = np.ones(n)
    message[over > 0] = np.multiply.reduceat(states[above].astype(np.float64), (np.cumsum(over) - over)[over > 0])
    # Children need a second row for their ratios in the backward pass.
    rows, most_states = 1.0 + (placed >= tables), int(states.max(initial=1))
    gathered = (message[bucket_of] > BLOCK) & (np.diff(start)[placed] > 2)
    sizes = Sizes(
        axes=int(over.max(initial=0)) + 1,
        pieces=int(np.bincount(bucket_of, rows).max(initial=0)) + 1,
        patterns=int(np.bincount(bucket_of, rows * gathered).max(initial=0)) + 1,
        block=int(min(message.max(initial=1.0), max(BLOCK, most_states))),
        states=most_states,
    )
    offset = np.concatenate([flat.offset, flat.offset[-1] + np.cumsum(message).astype(np.int64)])
    bucket = np.searchsorted(bucket_of, np.arange(n + 1))
    return Plan(states, start, scope, bucket, placed, offset), sizes, message
