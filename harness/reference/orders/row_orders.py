"""Orders along the rows of a lattice, which keep the frontier of a long strip narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spinbench.reference.network import IntArray
from spinbench.reference.orders.plan import neighbours


def row_orders(size: int, pairs: IntArray) -> Iterator[list[int]]:
    """Along the numbering, and a reverse Cuthill-McKee order; SciPy's takes a fifth of a second to import.

    Args:
        size: number of variables.
        pairs: (E, 2) variables that share a table.
    """
    yield list(range(size))
    near, found = neighbours(size, pairs), dict[int, None]()
    for v in range(size):
        if v not in found:
            found |= dict.fromkeys(_breadth_first(near, _breadth_first(near, v)[-1]))
    yield list(found)[::-1]


def _breadth_first(near: Sequence[set[int]], start: int) -> list[int]:
    """Vertices from `start` on, of the neighbours of each first those that have few themselves."""
    order, seen = [start], {start}
    for v in order:  # which grows
        fresh = sorted(near[v] - seen, key=lambda u: len(near[u]))
        order += fresh
        seen.update(fresh)
    return order
