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


class Links(NamedTuple):
    """Where entries of mini-buckets find theirs in other tables, before the maps are made.

    Attributes:
        clique: (L,) the mini-bucket whose entries look elsewhere.
        starts, strides: (L + 1,), (…,) of the other table along each axis of the mini-bucket.
        base: (L,) of factors, where the other table begins.
    """

    clique: Array
    starts: Array
    strides: Array
    base: Array


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


class Fill(NamedTuple):
    """How maps are made, on arrays or in compiled code.

    Attributes:
        maps: (shape starts, shapes, strides starts, strides, map starts) -> int32 maps of all links.
        base: adds the factors' tables: (…, factor offsets, values, entries, clique) -> float64.
    """

    maps: Callable[..., Array]
    base: Callable[..., Array]


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
    shapes = factors.cards[scope]
    tables, children, shifts = _links(factors, found, cards)
    lengths, parent = sizes[children.clique], np.full(count, -1, dtype=np.int64)
    parent[children.base] = children.clique
    maps_at, shifts_at = starts_of(lengths), starts_of(sizes[shifts.clique])
    parent_map, shift_maps = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    parent_map[children.base] = maps_at[:-1]
    shift_maps[shifts.clique] = maps_at[-1] + shifts_at[:-1]
    widths = np.zeros(count, dtype=np.int64)
    widths[shifts.clique] = shifts.base
    entries = starts_of(sizes)
    return Buckets(
        cards=factors.cards,
        buckets=np.array(found.starts, dtype=np.int64),
        variable=variable,
        entries=entries,
        messages=starts_of(sizes // factors.cards[variable]),
        shifts=starts_of(widths),
        parent=parent,
        parent_map=parent_map,
        child_starts=starts_of(np.bincount(children.clique, minlength=count)),
        children=children.base,
        child_maps=maps_at[:-1],
        shift_maps=shift_maps,
        maps=fill.maps(scope_starts, shapes, _joined(children, shifts), entries),
        scope_starts=scope_starts,
        scope=scope,
        strides=_flat(own),
        base=fill.base(scope_starts, shapes, tables, entries, factors.values),
        constant=factors.constant,
    )


def _links(factors: Factors, found: Partition, cards: list[int]) -> tuple[Links, Links, Links]:
    """To factors, to messages (`base` is the sender), and to shifts (`base` is their size)."""
    scopes, offsets = factors.scopes(), factors.offsets.tolist()
    rows: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for c, (scope, sources) in enumerate(zip(found.scopes, found.sources, strict=True)):
        deadline.check()
        for source in sources:
            is_factor = source < len(scopes)
            other = scopes[source] if is_factor else found.scopes[source - len(scopes)][:-1]
            base = offsets[source] if is_factor else source - len(scopes)
            rows[0 if is_factor else 1].append((c, _along(scope, other, cards), base))
    for first, last in zip(found.starts, found.starts[1:], strict=False):
        if last - first > 1:
            common = set(found.scopes[first]).intersection(*found.scopes[first + 1 : last])
            shared = tuple(sorted(common, reverse=True))[-SHARED:]
            size = _strides(shared, cards)[0] * cards[shared[0]]
            rows[2].extend((c, _along(found.scopes[c], shared, cards), size) for c in range(first, last))
    tables, children, shifts = (_gathered(part) for part in rows)
    return tables, children, shifts


def _gathered(rows: list[Any]) -> Links:
    clique, strides, base = zip(*rows, strict=True) if rows else ((), (), ())
    whole = np.array(clique, dtype=np.int64), starts_of([len(row) for row in strides])
    return Links(*whole, _flat(strides), np.array(base, dtype=np.int64))


def _joined(first: Links, second: Links) -> Links:
    """Both, one after the other: their maps may be large, and are made where they stay."""
    return Links(
        np.concatenate([first.clique, second.clique]),
        np.concatenate([first.starts, first.starts[-1] + second.starts[1:]]),
        np.concatenate([first.strides, second.strides]),
        np.concatenate([first.base, second.base]),
    )


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
