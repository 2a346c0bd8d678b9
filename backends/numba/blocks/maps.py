"""Where each entry of a bucket's table finds its terms: index maps for compiled code.

A block has *rows*, of one number for each chain of a vector: those of its *groups*, products of the factors of a bucket
at the states outside the block, over few of the bucket's variables; then those of the messages. An entry is the product
of one row of each of its bucket's terms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.simd import Array
from spinbench.mathematics.graphs.factor_tables import IntArray, starts_of
from spinbench.methods.blocks.tables import Tables, decode_entries

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


def make_maps(t: Tables) -> tuple[Maps, int, int]:
    """From the tables of a plan, and what the largest block takes: entries of tables, and rows."""
    groups_by_bucket = [_group_factors_by_axes(t, b) for b in range(len(t.variable))]
    groups = [(b, axes, links) for b, some in enumerate(groups_by_bucket) for axes, links in some]
    group_starts = starts_of([len(some) for some in groups_by_bucket])
    group_sizes = np.array([t.cards[b][axes].prod() for b, axes, _ in groups], dtype=np.int64)
    links = np.array([i for *_, some in groups for i in some], dtype=np.int64)
    separators = t.cards[:, 1:].prod(axis=1)
    sizes = separators * t.cards[:, 0]
    group_rows, group_extents = _offsets_within_blocks(group_sizes, group_starts[t.starts])
    entries, entry_extents = _offsets_within_blocks(sizes, t.starts)
    message_rows, message_extents = _offsets_within_blocks(separators, t.starts)
    messages = message_rows + np.repeat(group_extents, np.diff(t.starts))
    children = np.diff(t.child_starts)
    terms = np.diff(group_starts) + children
    rows, inner = list[Places](), list[Places]()
    for b in range(len(groups_by_bucket)):
        digits, columns = decode_entries(t, b), list[IntArray]()
        for row, (axes, some) in zip(group_rows[group_starts[b] :], groups_by_bucket[b], strict=False):
            cards = t.cards[b][axes]
            steps = np.cumprod(np.append(1, cards[:-1]))
            states = np.arange(cards.prod())[:, None] // steps % cards
            inner += [(states @ t.inner[i][axes]).astype(np.int32) for i in some]
            columns.append(row + digits[:, axes] @ steps)
        for child in t.children[t.child_starts[b] : t.child_starts[b + 1]]:
            columns.append(messages[child] + digits @ t.up[child])
        rows += [np.stack(columns, axis=1).astype(np.int32).ravel()] if columns else []
    is_outer, scoped = t.outer_strides[links] > 0, t.steps > 0
    maps = Maps(
        starts=t.starts,
        cards=t.cards[:, 0].copy(),
        separators=separators,
        entries=entries,
        messages=messages,
        terms=terms,
        term_rows=starts_of(terms * sizes)[:-1],
        children=children,
        rows=_join(rows),
        group_starts=group_starts,
        group_rows=group_rows,
        group_sizes=group_sizes,
        link_starts=starts_of([len(some) for *_, some in groups]),
        factors=t.factors[links],
        places=starts_of([len(part) for part in inner])[:-1],
        inner=_join(inner),
        outer_starts=starts_of(is_outer.sum(axis=1)),
        outer=t.outer[links][is_outer],
        outer_strides=t.outer_strides[links][is_outer],
        scope_starts=starts_of(scoped.sum(axis=1)),
        scope=t.scope[scoped],
        steps=t.steps[scoped],
        variable=t.variable,
        share=t.share,
        parent=t.parent,
    )
    return maps, int(entry_extents.max()), int((group_extents + message_extents).max())


def _offsets_within_blocks(sizes: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Where parts of these sizes begin in their block, and the sizes of all blocks."""
    begins = starts_of(sizes)
    blocks = begins[starts]
    return begins[:-1] - np.repeat(blocks[:-1], np.diff(starts)), np.diff(blocks)


def _group_factors_by_axes(t: Tables, b: int) -> list[tuple[IntArray, list[int]]]:
    """(places in the bucket's scope, links) of factors that are multiplied before they meet the table."""
    links = range(int(t.factor_starts[b]), int(t.factor_starts[b + 1]))
    links_by_axes = [(frozenset(np.flatnonzero(t.inner[i]).tolist()), i) for i in links]
    factors_by_axes: dict[frozenset[int], list[int]] = {}
    # The widest factors first, so that each narrower factor finds a group whose axes include its own. The factors of a
    # group are multiplied once per row of the group and not once per entry of the bucket.
    for axes, i in sorted(links_by_axes, key=lambda pair: -len(pair[0])):
        home = next((other for other in factors_by_axes if axes <= other), axes)
        factors_by_axes.setdefault(home, []).append(i)
    return [(np.array(sorted(axes), dtype=np.int64), factors) for axes, factors in factors_by_axes.items()]


def _join(parts: list[Places]) -> Places:
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])
