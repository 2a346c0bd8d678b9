"""Buckets of all blocks as arrays: what programs and kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array
from spinbench.mathematics.graphs.factor_tables import FactorTables, FloatArray, IntArray, starts_of
from spinbench.methods.blocks.planning import cover, partition
from spinbench.reference.orders.order import pairs_of
from spinbench.reference.orders.plan import separators


class Bucket(NamedTuple):
    """One bucket: v, with 0, and its separator with the steps of s; its parent or -1, and its factors."""

    steps: dict[int, int]
    parent: int
    factors: list[int]


Rows = list[list[int]]
FLOOR = 25.0
"""Nats by which a hard zero is less likely than its factor's lowest entry, at inverse temperatures below 1."""
ABYSS = 1e4
"""The same from 1 on, on top of it, in sweeps that know temperatures: nothing, unless all states are impossible."""


class Tables(NamedTuple):
    """B buckets of all blocks, block after block, each block's in the order of elimination; N variables, F factors.

    A bucket's table is p(v | separator), entry (s, k): v is in state k, the separator in the states of which s is made:
    s = Σ_j steps[j] x[scope[j]]. Of the W places in a scope, the first is v's, and what is not needed is padded by
    variable 0 with one state and steps and strides of 0.

    Tables of factors end with one of a single 0, and lists of links with one to it, so that no array is empty.

    Attributes:
        values: (T + 1,) log tables of the factors.
        floors: (F,) what stands for a hard zero at β < 1, the lowest finite entry less 25.
        offsets: (F,) where each table begins.
        members, strides: (F, O) variables of each factor, with strides in its table; padded.
        starts: (n + 1,) where each block's buckets begin; those of a sweep, then those of the transition to s*.
        sweep: (m,) the blocks of a sweep.
        transition: (l,) blocks of which each variable is in one, the first being the last that is drawn.
        variable: (B,) v.
        share: (B,) 1 / number of blocks of a sweep that hold v.
        scope, cards, steps: (B, W).
        up: (B, W) steps of the separator's entries along the scope of the bucket that its message goes to.
        parent: (B,) that bucket, or -1.
        child_starts: (B + 1,), children: (M,): the buckets from which messages come.
        factor_starts: (B + 1,), factors: (L,): whose tables are multiplied into the bucket.
        inner: (L, W) strides of those along the scope.
        outer, outer_strides: (L, O) their variables outside the block.
        separators, states, places: as long as the largest table has separators' entries and states, and as the largest
            block has buckets.
        rows: (R,) of states v K + k, K the largest number of states, whose p is reported: all, or where all variables
            are binary, k = 1.
        constant: () added to every log weight.
    """

    values: Array
    floors: Array
    offsets: Array
    members: Array
    strides: Array
    starts: Array
    sweep: Array
    transition: Array
    variable: Array
    share: Array
    scope: Array
    cards: Array
    steps: Array
    up: Array
    parent: Array
    child_starts: Array
    children: Array
    factor_starts: Array
    factors: Array
    inner: Array
    outer: Array
    outer_strides: Array
    separators: Array
    states: Array
    places: Array
    rows: Array
    constant: Array


def make_tables(flat: FactorTables, size: int, least: int) -> Tables:
    """Plan the blocks and lay them out.

    Args:
        flat: the factors of the model; no variable has more than `size` states.
        size: entries of a bucket at most.
        least: blocks of a sweep where more than one is needed.
    """
    scopes = [_scope(flat, f) for f in range(len(flat.offsets) - 1)]
    pairs = pairs_of(tuple(variables) for variables, _ in scopes)
    swept = cover(flat.cardinalities, pairs, size, least)
    blocks = swept + partition(flat.cardinalities, pairs, size, swept[0])[1:]
    buckets: list[Bucket] = []
    for block in blocks:
        buckets += _buckets(flat, block, pairs, len(buckets))
    n, most = len(flat.cardinalities), int(flat.cardinalities.max())
    variable = np.array([v for block in blocks for v in block], dtype=np.int64)
    held = np.bincount([v for block in swept for v in block], minlength=n)
    parent = np.array([bucket.parent for bucket in buckets], dtype=np.int64)
    senders = np.flatnonzero(parent >= 0)
    children = senders[np.argsort(parent[senders], kind="stable")]
    above = [buckets[bucket.parent].steps if bucket.parent >= 0 else {} for bucket in buckets]
    up = [[bucket.steps.get(v, 0) for v in steps] for bucket, steps in zip(buckets, above, strict=True)]
    width = max(len(bucket.steps) for bucket in buckets)
    cards = _padded([flat.cardinalities[list(bucket.steps)].tolist() for bucket in buckets], 1)[:-1]
    inner, outer, outer_strides = _links(flat, buckets)
    least_state = int((flat.cardinalities == 2).all())
    valid = np.arange(least_state, most)[None, :] < flat.cardinalities[:, None]
    return Tables(
        values=np.append(flat.values, 0.0),
        floors=np.append(_floors(flat), 0.0),
        offsets=flat.offsets,
        members=_padded([variables for variables, _ in scopes], 0),
        strides=_padded([strides for _, strides in scopes], 0),
        starts=starts_of([*map(len, blocks)]),
        sweep=np.arange(len(swept)),
        transition=np.array([0, *range(len(swept), len(blocks))]),
        variable=variable,
        share=1.0 / held[variable],
        scope=_padded([list(bucket.steps) for bucket in buckets], 0)[:-1],
        cards=cards,
        steps=_padded([list(bucket.steps.values()) for bucket in buckets], 0)[:-1],
        up=_padded(up, 0, width)[:-1],
        parent=parent,
        child_starts=starts_of(np.bincount(parent[senders], minlength=len(buckets))),
        children=np.append(children, 0),
        factor_starts=starts_of([len(bucket.factors) for bucket in buckets]),
        factors=np.array([*(f for bucket in buckets for f in bucket.factors), len(scopes)], dtype=np.int64),
        inner=_padded(inner, 0, width),
        outer=_padded(outer, 0),
        outer_strides=_padded(outer_strides, 0),
        separators=np.arange(cards[:, 1:].prod(axis=1).max()),
        states=np.arange(most),
        places=np.arange(max(map(len, blocks))),
        rows=(np.arange(n)[:, None] * most + np.arange(least_state, most))[valid],
        constant=np.array(flat.log_constant),
    )


def _scope(flat: FactorTables, f: int) -> tuple[list[int], list[int]]:
    """Variables and strides of a factor."""
    part = slice(int(flat.scope_starts[f]), int(flat.scope_starts[f + 1]))
    return flat.scope_variables[part].tolist(), flat.scope_strides[part].tolist()


def _buckets(flat: FactorTables, order: list[int], pairs: IntArray, first: int) -> list[Bucket]:
    """Of one block, whose buckets are numbered from `first` on."""
    place = {v: b for b, v in enumerate(order)}
    factors: list[list[int]] = [[] for _ in order]
    for f in sorted({int(f) for v in order for f in flat.factors[flat.starts[v] : flat.starts[v + 1]]}):
        factors[min(place[v] for v in _scope(flat, f)[0] if v in place)].append(f)
    found = []
    for b, separator in enumerate(separators(np.array(order), pairs)):
        others = [order[p] for p in sorted(separator)]
        steps = np.cumprod([1, *flat.cardinalities[others].tolist()]).tolist()
        parent = first + min(separator) if separator else -1
        found.append(Bucket({order[b]: 0, **dict(zip(others, steps, strict=False))}, parent, factors[b]))
    return found


def _floors(flat: FactorTables) -> FloatArray:
    if not len(flat.values):
        return np.zeros(0)
    return np.minimum.reduceat(np.where(flat.values > -np.inf, flat.values, np.inf), flat.offsets[:-1]) - FLOOR


def _links(flat: FactorTables, buckets: list[Bucket]) -> tuple[Rows, Rows, Rows]:
    """Of the factors of all buckets: inner, outer and outer_strides, not padded."""
    inner, outer, outer_strides = [], [], []
    for bucket in buckets:
        for f in bucket.factors:
            stride = dict(zip(*_scope(flat, f), strict=True))
            inner.append([stride.get(v, 0) for v in bucket.steps])
            outer.append([v for v in stride if v not in bucket.steps])
            outer_strides.append([stride[v] for v in outer[-1]])
    return inner, outer, outer_strides


def _padded(rows: Rows, fill: int, width: int = 1) -> IntArray:
    """The rows, at least so wide, and one that is empty: no backend takes rows of an array without any."""
    found = np.full((len(rows) + 1, max(width, *map(len, rows), 1) if rows else width), fill, dtype=np.int64)
    for row, values in zip(found, rows, strict=False):
        row[: len(values)] = values
    return found


def digits_of(t: Tables, b: int) -> IntArray:
    """(S K, W) states of a bucket's scope in each entry of its table."""
    cards, steps = t.cards[b], np.maximum(t.steps[b], 1)
    separators = int(cards[1:].prod())
    found = np.arange(separators)[:, None, None] // steps % cards + np.zeros((1, int(cards[0]), 1), dtype=np.int64)
    found[:, :, 0] = np.arange(cards[0])
    return np.asarray(found.reshape(-1, len(cards)))
