"""Where each entry of a bucket's table finds its terms: index maps for compiled code.

A block has *rows*, of one number for each chain of a vector: those of its *groups*, products of the factors of a bucket
at the states outside the block, over few of the bucket's variables; then those of the messages. An entry is the product
of one row of each of its bucket's terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import IntArray
from spinbench.methods.blocks.tables import Tables, digits_of

Array = npt.NDArray[Any]
Places = npt.NDArray[np.int32]


class Maps(NamedTuple):
    """B buckets of all blocks; entry s K + k of a bucket is state k of its variable.

    Attributes:
        starts: (n + 1,) buckets of each block.
        cards, separators: (B,) K and S of each bucket.
        entries: (B,) where its table begins among those of its block; messages: (B,) the row of its message.
        terms: (B,) how many; term_rows: where its entries' rows begin in `rows`, terms of an entry together; children:
            (B,) how many of them, the last ones, are messages.
        rows: int32.
        group_starts: (B + 1,) groups of each bucket; group_rows: (G,) the first row, group_sizes: (G,) how many.
        link_starts: (G + 1,) factors of each group; factors: (L,); places: (L,) where its offsets of
            the rows in a table begin in `inner`.
        inner: int32.
        outer_starts: (L + 1,); outer, outer_strides: variables of a factor outside the block.
        scope_starts: (B + 1,); scope, steps: variables of the separator, with their steps of s.
        variable, share, parent: (B,) as in `Tables`.
    """

    starts: Array
    cards: Array
    separators: Array
    entries: Array
    messages: Array
    terms: Array
    term_rows: Array
    children: Array
    rows: Places
    group_starts: Array
    group_rows: Array
    group_sizes: Array
    link_starts: Array
    factors: Array
    places: Array
    inner: Places
    outer_starts: Array
    outer: Array
    outer_strides: Array
    scope_starts: Array
    scope: Array
    steps: Array
    variable: Array
    share: Array
    parent: Array


class Extent(NamedTuple):
    """What the largest block takes: entries of tables, and rows."""

    entries: int
    rows: int


def make_maps(t: Tables) -> tuple[Maps, Extent]:
    """From the tables of a plan."""
    return _Builder(t).built()


class _Builder:
    def __init__(self, t: Tables) -> None:
        self._t = t
        self._rows: list[Places] = []
        self._inner: list[Places] = []
        self._lists: dict[str, list[int]] = {
            name: [] for name in ("terms", "term_rows", "messages", "entries", "group_rows", "group_sizes", "places")
        }
        self._factors: list[int] = []
        self._group_starts, self._link_starts = [0], [0]
        self._room = Extent(0, 0)

    def built(self) -> tuple[Maps, Extent]:
        t = self._t
        for low, high in zip(t.starts[:-1].tolist(), t.starts[1:].tolist(), strict=True):
            self._block(low, high)
        made = {name: np.array(values, dtype=np.int64) for name, values in self._lists.items()}
        links = np.array(self._factors, dtype=np.int64)
        there = t.outer_strides[links] > 0
        scoped = t.steps > 0
        maps = Maps(
            starts=t.starts,
            cards=t.cards[:, 0].copy(),
            separators=t.cards[:, 1:].prod(axis=1),
            children=np.diff(t.child_starts),
            rows=_joined(self._rows),
            group_starts=np.array(self._group_starts),
            link_starts=np.array(self._link_starts),
            factors=t.factors[links],
            inner=_joined(self._inner),
            outer_starts=_starts(there.sum(axis=1)),
            outer=t.outer[links][there],
            outer_strides=t.outer_strides[links][there],
            scope_starts=_starts(scoped.sum(axis=1)),
            scope=t.scope[scoped],
            steps=t.steps[scoped],
            variable=t.variable,
            share=t.share,
            parent=t.parent,
            **made,
        )
        return maps, self._room

    def _block(self, low: int, high: int) -> None:
        """Rows of groups first, then those of messages."""
        t, entries, row = self._t, 0, 0
        groups: list[list[tuple[IntArray, list[int]]]] = []
        for b in range(low, high):
            groups.append(_groups(t, b))
            row += sum(int(t.cards[b][axes].prod()) for axes, _ in groups[-1])
        message, row = row, 0
        messages: dict[int, int] = {}
        for b, own in zip(range(low, high), groups, strict=True):
            digits = digits_of(t, b)
            columns = []
            for axes, links in own:
                columns.append(row + self._group(t.cards[b][axes], axes, digits, links, row))
                row += self._lists["group_sizes"][-1]
            for child in t.children[t.child_starts[b] : t.child_starts[b + 1]].tolist():
                columns.append(messages[child] + (digits * t.up[child]).sum(axis=1))
            self._lists["terms"].append(len(columns))
            self._lists["term_rows"].append(sum(map(len, self._rows)))
            self._lists["entries"].append(entries)
            self._lists["messages"].append(message)
            self._group_starts.append(len(self._lists["group_sizes"]))
            if columns:
                self._rows.append(np.stack(columns, axis=1).astype(np.int32).ravel())
            messages[b] = message
            message += int(t.cards[b, 1:].prod())
            entries += len(digits)
        self._room = Extent(max(self._room.entries, entries), max(self._room.rows, message))

    def _group(self, cards: IntArray, axes: IntArray, digits: IntArray, links: list[int], row: int) -> IntArray:
        """Rows, counted from the group's first, of a bucket's entries."""
        size = int(cards.prod())
        steps = np.cumprod(np.append(1, cards[:-1]))
        states = np.arange(size)[:, None] // steps % cards
        for i in links:
            self._lists["places"].append(sum(map(len, self._inner)))
            self._inner.append((states @ self._t.inner[i][axes]).astype(np.int32))
        self._factors += links
        self._lists["group_rows"].append(row)
        self._lists["group_sizes"].append(size)
        self._link_starts.append(len(self._factors))
        found: IntArray = digits[:, axes] @ steps
        return found


def _groups(t: Tables, b: int) -> list[tuple[IntArray, list[int]]]:
    """(places in the bucket's scope, links) of factors that are multiplied before they meet the table."""
    links = range(int(t.factor_starts[b]), int(t.factor_starts[b + 1]))
    own = [(frozenset(np.flatnonzero(t.inner[i]).tolist()), i) for i in links]
    kept: dict[frozenset[int], list[int]] = {}
    for axes, i in sorted(own, key=lambda pair: -len(pair[0])):
        home = next((other for other in kept if axes <= other), axes)
        kept.setdefault(home, []).append(i)
    return [(np.array(sorted(axes), dtype=np.int64), factors) for axes, factors in kept.items()]


def _joined(parts: list[Places]) -> Places:
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])


def _starts(counts: IntArray) -> IntArray:
    return np.cumsum(np.append(0, counts))
