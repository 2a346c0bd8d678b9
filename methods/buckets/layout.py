"""Flat tables of mini-buckets: what both passes and the draws read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.foundation import deadline
from spinbench.methods.buckets.partition import Partition, Scope

Array = npt.NDArray[Any]
SHARED = 6
"""Variables over which the mini-buckets of a bucket exchange weight, at most; its own is one of them."""


class Factors(NamedTuple):
    """Log tables of the factors; variables are numbered by their place in the order of elimination.

    Attributes:
        cards: (n,) int64 numbers of states.
        starts, scope: (F + 1,), (S,) int64 where each factor's variables begin, and these, in the order of its axes.
        offsets, values: (F + 1,) int64, (T,) float64: where its table begins, in C order, -inf is a hard zero.
        constant: added to every log weight.
    """

    cards: Array
    starts: Array
    scope: Array
    offsets: Array
    values: Array
    constant: float

    def scopes(self) -> list[Scope]:
        """Of the factors that have variables."""
        flat, ends = self.scope.tolist(), self.starts.tolist()
        return [tuple(flat[a:b]) for a, b in itertools.pairwise(ends)]


class Link(NamedTuple):
    """Where entries of a mini-bucket find theirs in another table.

    Attributes:
        clique: the mini-bucket whose entries look elsewhere.
        strides: of the other table along each axis of the mini-bucket.
        base: of a factor, where its table begins; of a message, its sender; of a shift, its entries.
    """

    clique: int
    strides: list[int]
    base: int


class Buckets(NamedTuple):
    """All mini-buckets, those of a variable one after another, in the order of elimination.

    Attributes:
        cards: (n,) numbers of states.
        buckets: (n + 1,) each variable's first mini-bucket.
        variable: (C,) of each mini-bucket, whose axis is its last.
        entries, messages, shifts: (C + 1,) where its table, its message and its shift of weight begin.
        parent, parent_map: (C,) the mini-bucket that takes its message, -1 for none, and where that one's map begins.
        child_starts, children, child_maps: (C + 1,), (L,), (L,) messages that it takes, and their maps.
        shift_maps: (C,) the map of its shift; -1 where its bucket is whole.
        maps: int32, for each entry of a mini-bucket its place in a message or a shift.
        scope_starts, scope, strides: (C + 1,), (S,), (S,) its variables and their strides.
        base: (E,) the factors' log weights.
        constant: of all.
    """

    cards: Array
    buckets: Array
    variable: Array
    entries: Array
    messages: Array
    shifts: Array
    parent: Array
    parent_map: Array
    child_starts: Array
    children: Array
    child_maps: Array
    shift_maps: Array
    maps: Array
    scope_starts: Array
    scope: Array
    strides: Array
    base: Array
    constant: float

    @property
    def split(self) -> bool:
        """Whether any bucket has several mini-buckets; else the elimination is exact."""
        return len(self.variable) > len(self.cards)


Fill = Callable[[Array, Array, Array], None]
"""(shape, strides, out): writes the index along the strides of each entry of a table of this shape, in C order."""


def starts_of(counts: npt.ArrayLike) -> Array:
    """Where parts of these sizes begin, and the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def lay_out(factors: Factors, found: Partition, fill: Fill) -> Buckets:
    """The tables of a partition."""
    cards, count = factors.cards.tolist(), len(found.scopes)
    own = [_strides(scope, cards) for scope in found.scopes]
    sizes = np.array([row[0] * cards[scope[0]] for row, scope in zip(own, found.scopes, strict=True)], dtype=np.int64)
    variable = np.array([scope[-1] for scope in found.scopes], dtype=np.int64)
    scope_starts, scope = starts_of([len(s) for s in found.scopes]), _flat(found.scopes)
    tables, children, shifts = _links(factors, found, cards)
    (takers, senders), (shifted, shared) = _ends(children), _ends(shifts)
    parent = np.full(count, -1, dtype=np.int64)
    parent[senders] = takers
    maps_at = starts_of(sizes[np.concatenate([takers, shifted])])
    parent_map, shift_maps = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    parent_map[senders], shift_maps[shifted] = maps_at[: len(children)], maps_at[len(children) : -1]
    widths = np.zeros(count, dtype=np.int64)
    widths[shifted] = shared
    entries = starts_of(sizes)
    shapes = [factors.cards[list(scope)] for scope in found.scopes]
    maps, base = np.empty(maps_at[-1], dtype=np.int32), np.zeros(entries[-1])
    for link, at in zip([*children, *shifts], maps_at, strict=False):
        fill(shapes[link.clique], np.array(link.strides), maps[at : at + sizes[link.clique]])
    index = np.empty(sizes.max(initial=0), dtype=np.int32)
    for link in tables:
        deadline.check()
        places = index[: sizes[link.clique]]
        fill(shapes[link.clique], np.array(link.strides), places)
        base[entries[link.clique] : entries[link.clique + 1]] += factors.values[link.base :][places]
    return Buckets(
        cards=factors.cards,
        buckets=np.array(found.starts, dtype=np.int64),
        variable=variable,
        entries=entries,
        messages=starts_of(sizes // factors.cards[variable]),
        shifts=starts_of(widths),
        parent=parent,
        parent_map=parent_map,
        child_starts=starts_of(np.bincount(takers, minlength=count)),
        children=senders,
        child_maps=maps_at[: len(children)],
        shift_maps=shift_maps,
        maps=maps,
        scope_starts=scope_starts,
        scope=scope,
        strides=_flat(own),
        base=base,
        constant=factors.constant,
    )


def _links(factors: Factors, found: Partition, cards: list[int]) -> tuple[list[Link], list[Link], list[Link]]:
    """To factors, to messages, and to shifts."""
    scopes, offsets = factors.scopes(), factors.offsets.tolist()
    tables, children, shifts = list[Link](), list[Link](), list[Link]()
    for c, (scope, sources) in enumerate(zip(found.scopes, found.sources, strict=True)):
        deadline.check()
        for source in sources:
            sender = source - len(scopes)
            if sender < 0:
                tables.append(Link(c, _along(scope, scopes[source], cards), offsets[source]))
            else:
                children.append(Link(c, _along(scope, found.scopes[sender][:-1], cards), sender))
    for first, last in zip(found.starts, found.starts[1:], strict=False):
        if last - first > 1:
            common = set(found.scopes[first]).intersection(*found.scopes[first + 1 : last])
            shared = tuple(sorted(common, reverse=True))[-SHARED:]
            size = _strides(shared, cards)[0] * cards[shared[0]]
            shifts += (Link(c, _along(found.scopes[c], shared, cards), size) for c in range(first, last))
    return tables, children, shifts


def _ends(links: list[Link]) -> tuple[Array, Array]:
    """Their cliques and bases."""
    return _flat([[link.clique for link in links]]), _flat([[link.base for link in links]])


def _strides(scope: Sequence[int], cards: list[int]) -> list[int]:
    """In C order."""
    found, stride = [], 1
    for v in reversed(scope):
        found.append(stride)
        stride *= cards[v]
    return found[::-1]


def _along(scope: Scope, other: Scope, cards: list[int]) -> list[int]:
    """Strides of a table over `other` along the axes of one over `scope`; 0 along what it does not hold."""
    strides = dict(zip(other, _strides(other, cards), strict=True))
    return [strides.get(v, 0) for v in scope]


def _flat(rows: Sequence[Sequence[int]]) -> Array:
    return np.array([value for row in rows for value in row], dtype=np.int64)
