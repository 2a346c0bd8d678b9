"""Which functions of a bucket are multiplied into one table: buckets along an order, cut into mini-buckets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Scope = tuple[int, ...]
_SLACK = 1e-9


class Partition(NamedTuple):
    """Mini-buckets; variables are numbered by their place in the order of elimination.

    Attributes:
        scopes: of each mini-bucket, falling: its bucket's variable is the last.
        sources: functions that it multiplies: factor f as f, the message of mini-bucket c as F + c.
        starts: (n + 1,) where the mini-buckets of each variable begin.
        entries: of all tables.
        split: whether any bucket has several mini-buckets.
    """

    scopes: list[Scope]
    sources: list[list[int]]
    starts: list[int]
    entries: float
    split: bool


class _Mini:
    """A mini-bucket that is being filled."""

    def __init__(self, variable: int, logs: Sequence[float]) -> None:
        self.members = {variable}
        self.size = logs[variable]
        self.sources: list[int] = []


def partition(logs: Sequence[float], scopes: Sequence[Scope], limit: float, most: float = math.inf) -> Partition:
    """Largest functions first, each into the mini-bucket with which it shares most of those where it fits.

    Args:
        logs: (n,) log2 of the variables' numbers of states, in the order of elimination.
        scopes: (F,) of the factors, none empty.
        limit: log2 of the entries that a mini-bucket may have; a single function may have more.
        most: entries of all tables, at which to give up; what is found then is not whole.
    """
    held: list[list[tuple[Scope, int]]] = [[] for _ in logs]
    for f, scope in enumerate(scopes):
        held[min(scope)].append((scope, f))
    found = Partition([], [], [0], 0.0, False)
    entries, split = 0.0, False
    for v, functions in enumerate(held):
        minis = _packed(v, functions, logs, limit)
        split = split or len(minis) > 1
        for mini in minis:
            entries += 2.0 ** min(mini.size, 1000.0)
            scope = tuple(sorted(mini.members, reverse=True))
            if len(scope) > 1:
                held[scope[-2]].append((scope[:-1], len(scopes) + len(found.scopes)))
            found.scopes.append(scope)
            found.sources.append(mini.sources)
        found.starts.append(len(found.scopes))
        held[v] = []
        if entries > most:
            break
    return found._replace(entries=entries, split=split)


def _packed(v: int, functions: list[tuple[Scope, int]], logs: Sequence[float], limit: float) -> list[_Mini]:
    sized = [(sum(logs[u] for u in scope), scope, source) for scope, source in functions]
    sized.sort(key=lambda function: -function[0])
    minis: list[_Mini] = []
    for size, scope, source in sized:
        best, most, grown = None, -1, 0.0
        for mini in minis:
            fresh = [u for u in scope if u not in mini.members]
            if len(scope) - len(fresh) > most and mini.size + (more := sum(logs[u] for u in fresh)) <= limit + _SLACK:
                best, most, grown = mini, len(scope) - len(fresh), mini.size + more
        if best is None:
            best, grown = _Mini(v, logs), size
            minis.append(best)
        best.members.update(scope)
        best.size = grown
        best.sources.append(source)
    return minis or [_Mini(v, logs)]
