"""A model along an order of elimination, and flat tables of its mini-buckets: what both passes and the draws read."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Model
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets.partition import Partition, Scope
from spinbench.reference.network import FlatFactors
from spinbench.reference.problem import Problem

Array = np.ndarray
FloatArray = npt.NDArray[np.float64]
# Largest number of variables over which the mini-buckets of a bucket exchange weight, the bucket's own included. More
# variables mean more parameters than passes have time to optimise.
SHARED = 6


@lru_cache(maxsize=4)
def problem_of(model: Model) -> Problem:
    """The model without the states that its hard zeros rule out, and without variables of one state.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    return Problem(model)


def factors_of(problem: Problem, order: Array) -> FlatFactors:
    """The factors, their variables numbered by their place in the order; the axes of tables stay."""
    flat = problem.flat
    return replace(flat, states=flat.states[order], scope=np.argsort(order)[flat.scope])


def all_states(cards: Array, later: FloatArray, total: FloatArray) -> FloatArray:
    """(…, Σ K_v, C) of all states, from (…, Σ (K_v - 1), C) of states 1, 2, … and what each variable's add up to."""
    ends = starts_of(cards - 1)
    first = starts_of(cards)[:-1]
    all_rows = np.empty((*later.shape[:-2], int(cards.sum()), later.shape[-1]))
    is_later = np.ones(all_rows.shape[-2], dtype=bool)
    is_later[first] = False
    all_rows[..., is_later, :] = later
    if len(cards):
        rest = np.add.reduceat(later, ends[:-1], axis=-2)
        all_rows[..., first, :] = np.maximum(total[..., None, :] - rest, 0.0)
    return all_rows


class Buckets(NamedTuple):
    """All mini-buckets, those of a variable one after another, in the order of elimination.

    Attributes:
        cards: (n,) numbers of states.
        buckets: (n + 1,) each variable's first mini-bucket.
        variable: (C,) of each mini-bucket, whose axis is its last.
        entries, messages, shifts: (C + 1,) where its table, its message and its shift of weight begin.
        parent, parent_map: (C,) the mini-bucket that takes its message, -1 for none, and where that one's map begins.
        child_starts, children: (C + 1,), (L,) whose messages it takes.
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


def lay_out(factors: FlatFactors, partition: Partition) -> Buckets:
    """The tables of a partition."""
    cards, scopes, function_scopes = factors.states.tolist(), partition.scopes, factors.scopes()
    shapes = [[cards[v] for v in scope] for scope in scopes]
    sizes = np.array([math.prod(shape) for shape in shapes], dtype=np.int64)
    variable = np.array([scope[-1] for scope in scopes], dtype=np.int64)
    children = [
        (c, s - len(function_scopes))
        for c, sources in enumerate(partition.sources)
        for s in sources
        if s >= len(function_scopes)
    ]
    shifted = _shared_scopes(partition)
    links = [(c, scopes[sender][:-1]) for c, sender in children] + shifted
    map_starts = starts_of([sizes[c] for c, _ in links])
    maps = np.empty(map_starts[-1], dtype=np.int32)
    widths = np.zeros(len(scopes), dtype=np.int64)
    for (c, other), begin in zip(links, map_starts.tolist(), strict=False):
        deadline.check()
        index = np.arange(math.prod(cards[v] for v in other), dtype=np.int32)
        maps[begin : begin + sizes[c]].reshape(shapes[c])[...] = _along(index, other, scopes[c], cards)
    for c, other in shifted:
        widths[c] = math.prod(cards[v] for v in other)
    entries, base = starts_of(sizes), np.zeros(sizes.sum())
    for c, sources in enumerate(partition.sources):
        deadline.check()
        table = base[entries[c] : entries[c + 1]].reshape(shapes[c])
        for f in sources:
            if f < len(function_scopes):
                values = factors.values[factors.offset[f] : factors.offset[f + 1]]
                table += _along(values, function_scopes[f], scopes[c], cards)
    takers, senders = np.array(children, dtype=np.int64).reshape(-1, 2).T
    parent, parent_map, shift_maps = (np.full(len(scopes), fill, dtype=np.int64) for fill in (-1, 0, -1))
    parent[senders], parent_map[senders] = takers, map_starts[: len(children)]
    shift_maps[[c for c, _ in shifted]] = map_starts[len(children) : -1]
    return Buckets(
        cards=factors.states,
        buckets=np.array(partition.starts, dtype=np.int64),
        variable=variable,
        entries=entries,
        messages=starts_of(sizes // factors.states[variable]),
        shifts=starts_of(widths),
        parent=parent,
        parent_map=parent_map,
        child_starts=starts_of(np.bincount(takers, minlength=len(scopes))),
        children=senders.copy(),
        shift_maps=shift_maps,
        maps=maps,
        scope_starts=starts_of([*map(len, scopes)]),
        scope=np.array([v for scope in scopes for v in scope], dtype=np.int64),
        strides=np.array([math.prod(shape[k + 1 :]) for shape in shapes for k in range(len(shape))], dtype=np.int64),
        base=base,
        constant=factors.constant,
    )


def _shared_scopes(partition: Partition) -> list[tuple[int, Scope]]:
    """Mini-buckets of split buckets, with the variables over which they exchange weight."""
    shifted: list[tuple[int, Scope]] = []
    for first, last in itertools.pairwise(partition.starts):
        if last - first > 1:
            common = set(partition.scopes[first]).intersection(*partition.scopes[first + 1 : last])
            shared = tuple(sorted(common, reverse=True))[-SHARED:]
            shifted += ((c, shared) for c in range(first, last))
    return shifted


def _along(table: Array, other: Scope, scope: Scope, cards: list[int]) -> Array:
    """A flat table over `other`, a part of `scope`, as one over `scope`; a view."""
    strides = dict(zip(other, table.reshape([cards[v] for v in other]).strides, strict=True))
    shape, steps = [cards[v] for v in scope], [strides.get(v, 0) for v in scope]
    return np.ndarray(shape, table.dtype, table, 0, steps)
