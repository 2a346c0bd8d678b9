"""Which functions of a bucket are multiplied into one table: buckets along an order, cut into mini-buckets."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spinbench.foundation import deadline

Scope = tuple[int, ...]
# Tolerance for rounding of log2 sizes at the limit.
_SLACK = 1e-9


class Partition(NamedTuple):
    """Mini-buckets; variables are numbered by their place in the order of elimination.

    Attributes:
        scopes: of each mini-bucket, falling: its bucket's variable is the last.
        sources: functions that it multiplies: factor f as f, the message of mini-bucket c as F + c.
        starts: (n + 1,) where the mini-buckets of each variable begin.
        entries: of all tables.
        looks: of all maps, by which entries find theirs in messages and shifts.
        split: whether any bucket has several mini-buckets.
    """

    scopes: list[Scope]
    sources: list[list[int]]
    starts: list[int]
    entries: float
    looks: float
    split: bool


# Of a bucket: log2 of its entries, its variables, and where it comes from; a plain tuple, since there are very many.
_Function = tuple[float, frozenset[int], int]


@dataclass(slots=True)
class _Mini:
    """A mini-bucket that is being filled: log2 of its entries, its variables, and what it multiplies."""

    size: float
    scope: set[int]
    sources: list[int]


def partition(logs: Sequence[float], scopes: Sequence[Scope], limit: float, max_entries: float = math.inf) -> Partition:
    """Largest functions first, each into the mini-bucket with which it shares most of those where it fits.

    Args:
        logs: (n,) log2 of the variables' numbers of states, in the order of elimination.
        scopes: (F,) of the factors, none empty.
        limit: log2 of the entries that a mini-bucket may have; a single function may have more.
        max_entries: entries of all tables, at which to give up; what is found then is not whole.
    """
    by_variable: list[list[_Function]] = [[] for _ in logs]
    for f, scope in enumerate(scopes):
        by_variable[min(scope)].append((sum([logs[u] for u in scope]), frozenset(scope), f))
    minibuckets = Partition([], [], [0], 0.0, 0.0, False)
    entries, looks, split = 0.0, 0.0, False
    for v, functions in enumerate(by_variable):
        deadline.check()
        minis = _pack(functions, logs, limit) or [_Mini(logs[v], {v}, [])]
        split = split or len(minis) > 1
        for mini in minis:
            size = 2.0 ** min(mini.size, 1000.0)
            entries += size
            looks += size * (sum([source >= len(scopes) for source in mini.sources]) + (len(minis) > 1))
            scope = tuple(sorted(mini.scope, reverse=True))
            if len(scope) > 1:
                number = len(scopes) + len(minibuckets.scopes)
                by_variable[scope[-2]].append((mini.size - logs[v], frozenset(scope[:-1]), number))
            minibuckets.scopes.append(scope)
            minibuckets.sources.append(mini.sources)
        minibuckets.starts.append(len(minibuckets.scopes))
        # Functions of eliminated variables are no longer needed, and there may be millions of them.
        by_variable[v] = []
        if entries > max_entries:
            break
    return minibuckets._replace(entries=entries, looks=looks, split=split)


def _pack(functions: list[_Function], logs: Sequence[float], limit: float) -> list[_Mini]:
    minis: list[_Mini] = []
    # Largest first: small functions fit beside large ones, but not large ones beside many small ones.
    for own_size, scope, source in sorted(functions, key=operator.itemgetter(0), reverse=True):
        best, best_overlap, size = None, -1, 0.0
        for mini in minis:
            shared = len(scope & mini.scope)
            if shared > best_overlap:
                grown = mini.size + sum([logs[u] for u in scope - mini.scope])
                if grown <= limit + _SLACK:
                    best, best_overlap, size = mini, shared, grown
        if best is None:
            minis.append(_Mini(own_size, set(scope), [source]))
            continue
        best.size = size
        best.scope |= scope
        best.sources.append(source)
    return minis
