"""Buckets of all blocks as arrays: what programs and kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array
from spinbench.mathematics.graphs.factor_tables import FactorTables, FloatArray, IntArray, starts_of
from spinbench.methods.blocks.planning import plan_covering_blocks, plan_disjoint_blocks
from spinbench.reference.orders.order import pairs_of
from spinbench.reference.orders.plan import separators


class Bucket(NamedTuple):
    """One bucket: v, with 0, and its separator with the steps of s; its parent or -1, and its factors."""

    steps: dict[int, int]
    parent: int
    factors: list[int]


RowLists = list[list[int]]
# At inverse temperatures below 1 a hard zero lies this many nats below the lowest finite entry of its factor: e^-25 is
# negligible in a run, yet chains can cross the zeros at small β.
FLOOR_NATS = 25.0
# Further nats below that floor at β >= 1: the weight underflows to 0 in float32 and float64, unless every state is
# impossible.
COLD_FLOOR_NATS = 1e4


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


def build_tables(flat: FactorTables, max_entries: int, min_blocks: int) -> Tables:
    """Plan the blocks and lay them out.

    Args:
        flat: the factors of the model; no variable has more than `max_entries` states.
        max_entries: entries of a bucket at most.
        min_blocks: blocks of a sweep where more than one is needed.
    """
    scopes = [_factor_scope(flat, f) for f in range(len(flat.offsets) - 1)]
    pairs = pairs_of(tuple(variables) for variables, _ in scopes)
    sweep_blocks = plan_covering_blocks(flat.cardinalities, pairs, max_entries, min_blocks)
    blocks = sweep_blocks + plan_disjoint_blocks(flat.cardinalities, pairs, max_entries, sweep_blocks[0])[1:]
    buckets: list[Bucket] = []
    for block in blocks:
        buckets += _build_buckets(flat, block, pairs, len(buckets))
    n, max_states = len(flat.cardinalities), int(flat.cardinalities.max())
    variable = np.array([v for block in blocks for v in block], dtype=np.int64)
    num_blocks = np.bincount([v for block in sweep_blocks for v in block], minlength=n)
    parent = np.array([bucket.parent for bucket in buckets], dtype=np.int64)
    senders = np.flatnonzero(parent >= 0)
    children = senders[np.argsort(parent[senders], kind="stable")]
    parent_steps = [buckets[bucket.parent].steps if bucket.parent >= 0 else {} for bucket in buckets]
    up = [[bucket.steps.get(v, 0) for v in steps] for bucket, steps in zip(buckets, parent_steps, strict=True)]
    width = max(len(bucket.steps) for bucket in buckets)
    cards = _pad_rows([flat.cardinalities[list(bucket.steps)].tolist() for bucket in buckets], 1)[:-1]
    inner, outer, outer_strides = _factor_strides(flat, buckets)
    least_state = int((flat.cardinalities == 2).all())
    valid = np.arange(least_state, max_states)[None, :] < flat.cardinalities[:, None]
    return Tables(
        values=np.append(flat.values, 0.0),
        floors=np.append(_hard_zero_floors(flat), 0.0),
        offsets=flat.offsets,
        members=_pad_rows([variables for variables, _ in scopes], 0),
        strides=_pad_rows([strides for _, strides in scopes], 0),
        starts=starts_of([*map(len, blocks)]),
        sweep=np.arange(len(sweep_blocks)),
        transition=np.array([0, *range(len(sweep_blocks), len(blocks))]),
        variable=variable,
        share=1.0 / num_blocks[variable],
        scope=_pad_rows([list(bucket.steps) for bucket in buckets], 0)[:-1],
        cards=cards,
        steps=_pad_rows([list(bucket.steps.values()) for bucket in buckets], 0)[:-1],
        up=_pad_rows(up, 0, width)[:-1],
        parent=parent,
        child_starts=starts_of(np.bincount(parent[senders], minlength=len(buckets))),
        children=np.append(children, 0),
        factor_starts=starts_of([len(bucket.factors) for bucket in buckets]),
        factors=np.array([*(f for bucket in buckets for f in bucket.factors), len(scopes)], dtype=np.int64),
        inner=_pad_rows(inner, 0, width),
        outer=_pad_rows(outer, 0),
        outer_strides=_pad_rows(outer_strides, 0),
        separators=np.arange(cards[:, 1:].prod(axis=1).max()),
        states=np.arange(max_states),
        places=np.arange(max(map(len, blocks))),
        rows=(np.arange(n)[:, None] * max_states + np.arange(least_state, max_states))[valid],
        constant=np.array(flat.log_constant),
    )


def _factor_scope(flat: FactorTables, f: int) -> tuple[list[int], list[int]]:
    """Variables and strides of a factor."""
    part = slice(int(flat.scope_starts[f]), int(flat.scope_starts[f + 1]))
    return flat.scope_variables[part].tolist(), flat.scope_strides[part].tolist()


def _build_buckets(flat: FactorTables, order: list[int], pairs: IntArray, first_number: int) -> list[Bucket]:
    """Of one block, whose buckets are numbered from `first_number` on."""
    place = {v: b for b, v in enumerate(order)}
    factors: list[list[int]] = [[] for _ in order]
    for f in sorted({int(f) for v in order for f in flat.factors[flat.starts[v] : flat.starts[v + 1]]}):
        factors[min(place[v] for v in _factor_scope(flat, f)[0] if v in place)].append(f)
    buckets = []
    for b, separator in enumerate(separators(np.array(order), pairs)):
        others = [order[p] for p in sorted(separator)]
        steps = np.cumprod([1, *flat.cardinalities[others].tolist()]).tolist()
        parent = first_number + min(separator) if separator else -1
        buckets.append(Bucket({order[b]: 0, **dict(zip(others, steps, strict=False))}, parent, factors[b]))
    return buckets


def _hard_zero_floors(flat: FactorTables) -> FloatArray:
    if not len(flat.values):
        return np.zeros(0)
    return np.minimum.reduceat(np.where(flat.values > -np.inf, flat.values, np.inf), flat.offsets[:-1]) - FLOOR_NATS


def _factor_strides(flat: FactorTables, buckets: list[Bucket]) -> tuple[RowLists, RowLists, RowLists]:
    """Of the factors of all buckets: inner, outer and outer_strides, not padded."""
    inner, outer, outer_strides = [], [], []
    for bucket in buckets:
        for f in bucket.factors:
            stride = dict(zip(*_factor_scope(flat, f), strict=True))
            inner.append([stride.get(v, 0) for v in bucket.steps])
            outer.append([v for v in stride if v not in bucket.steps])
            outer_strides.append([stride[v] for v in outer[-1]])
    return inner, outer, outer_strides


def _pad_rows(rows: RowLists, fill: int, width: int = 1) -> IntArray:
    """The rows, at least so wide, and one that is empty: no backend takes rows of an array without any."""
    padded = np.full((len(rows) + 1, max(width, *map(len, rows), 1) if rows else width), fill, dtype=np.int64)
    for row, values in zip(padded, rows, strict=False):
        row[: len(values)] = values
    return padded


def decode_entries(t: Tables, b: int) -> IntArray:
    """(S K, W) states of a bucket's scope in each entry of its table."""
    cards, steps = t.cards[b], np.maximum(t.steps[b], 1)
    separators = int(cards[1:].prod())
    digits = np.arange(separators)[:, None, None] // steps % cards + np.zeros((1, int(cards[0]), 1), dtype=np.int64)
    digits[:, :, 0] = np.arange(cards[0])
    return np.asarray(digits.reshape(-1, len(cards)))
