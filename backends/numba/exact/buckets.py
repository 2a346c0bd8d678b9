"""The plan of compiled bucket elimination: what each bucket multiplies, and the room that it needs.

Variables are named by their position in the elimination order. Bucket p has the axes (p, S): axis 0 is p itself, the
others are its separator S in ascending order. Pieces are the T tables and then the n messages; message p runs over the
separator of p in C order. All numbers of all pieces lie in one array.

What kernels of elimination share is here, too: how they are compiled, for most of the time of a first call goes into
what LLVM makes of them, and the scaling of positive numbers, so that products of many stay within the range of float64.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.reference.network import FlatFactors, FloatArray, IntArray
from spinbench.reference.orders.order import Order

# Entries of the innermost block: 16 kB, so that the block and its pieces fit a first-level cache of 32 kB.
BLOCK = 2048
# Options of functions that Python calls. They allocate no arrays, so that references need no counting; they release the
# GIL, since slices run in threads.
CALLED: Options = {"cache": True, "error_model": "numpy", "_nrt": False, "nogil": True}
# Options of functions that several kernels call.
SHARED: Options = {"error_model": "numpy", "_nrt": False, **CALLEE}
# Options of functions that one kernel calls in one place: inlining them here keeps LLVM from optimising them twice.
ONCE: Options = {"error_model": "numpy", "inline": "always"}


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


@njit(fastmath={"nnan", "nsz"}, **SHARED)
def widen(part, size, largest, smallest):
    """The largest and the smallest positive number of part[:size] and the two given ones."""
    for i in range(size):
        largest = max(largest, part[i])
        smallest = min(smallest, part[i] if part[i] > 0 else math.inf)
    return largest, smallest


@njit(**SHARED)
def centre(part, size, largest, smallest, drift):
    """Scales part[:size], whose largest and smallest positive numbers are given, so that their logarithms lie around 0;
    zeros stay, and all do where that is so already but for `drift`.

    Returns the log of the divisor and the largest |log| after it; (-inf, 0) if all are zero.
    """
    if largest == 0:
        return -math.inf, 0.0
    high, low = math.log(largest), math.log(smallest)
    middle = (high + low) / 2
    # Scaling is a pass over memory: a large message is only scaled once it has drifted from 1.
    if abs(middle) < drift:
        return 0.0, max(high, -low)
    factor = math.exp(-middle)
    for i in range(size):
        part[i] *= factor
    return middle, (high - low) / 2
