"""Which functions of a bucket are multiplied into one table: buckets along an order, cut into mini-buckets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from spinbench.foundation import deadline

Scope = tuple[int, ...]
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


class _Function(NamedTuple):
    """Of a bucket: log2 of its entries, its scope as bits and as variables, and where it comes from."""

    size: float
    bits: int
    scope: Scope
    source: int


class _Mini:
    """A mini-bucket that is being filled."""

    def __init__(self, function: _Function) -> None:
        self.bits = function.bits
        self.size = function.size
        self.functions = [function]


def partition(logs: Sequence[float], scopes: Sequence[Scope], limit: float, most: float = math.inf) -> Partition:
    """Largest functions first, each into the mini-bucket with which it shares most of those where it fits.

    Args:
        logs: (n,) log2 of the variables' numbers of states, in the order of elimination.
        scopes: (F,) of the factors, none empty.
        limit: log2 of the entries that a mini-bucket may have; a single function may have more.
        most: entries of all tables, at which to give up; what is found then is not whole.
    """
    sizes = _Sizes(logs)
    held: list[list[_Function]] = [[] for _ in logs]
    for f, scope in enumerate(scopes):
        held[min(scope)].append(sizes.function(scope, f))
    found = Partition([], [], [0], 0.0, 0.0, False)
    entries, looks, split = 0.0, 0.0, False
    for v, functions in enumerate(held):
        deadline.check()
        minis = _packed(functions, sizes, limit) or [_Mini(sizes.function((v,), -1))]
        split = split or len(minis) > 1
        for mini in minis:
            size = 2.0 ** min(mini.size, 1000.0)
            entries += size
            looks += size * (sum(f.source >= len(scopes) for f in mini.functions) + (len(minis) > 1))
            scope = tuple(sorted({u for f in mini.functions for u in f.scope}, reverse=True))
            if len(scope) > 1:
                number = len(scopes) + len(found.scopes)
                held[scope[-2]].append(_Function(mini.size - logs[v], mini.bits & ~(1 << v), scope[:-1], number))
            found.scopes.append(scope)
            found.sources.append([f.source for f in mini.functions if f.source >= 0])
        found.starts.append(len(found.scopes))
        held[v] = []
        if entries > most:
            break
    return found._replace(entries=entries, looks=looks, split=split)


class _Sizes:
    """log2 of numbers of states of sets of variables."""

    def __init__(self, logs: Sequence[float]) -> None:
        self.logs = logs
        self.alike = logs[0] if logs and min(logs) == max(logs) else 0.0

    def function(self, scope: Scope, source: int) -> _Function:
        bits = sum(1 << v for v in scope)
        return _Function(self.of(bits), bits, scope, source)

    def of(self, bits: int) -> float:
        if self.alike:
            return self.alike * bits.bit_count()
        total = 0.0
        while bits:
            low = bits & -bits
            total += self.logs[low.bit_length() - 1]
            bits ^= low
        return total


def _packed(functions: list[_Function], sizes: _Sizes, limit: float) -> list[_Mini]:
    minis: list[_Mini] = []
    for function in sorted(functions, key=lambda f: -f.size):
        best, most, grown = None, -1, 0.0
        for mini in minis:
            shared = (function.bits & mini.bits).bit_count()
            if shared > most and (size := mini.size + sizes.of(function.bits & ~mini.bits)) <= limit + _SLACK:
                best, most, grown = mini, shared, size
        if best is None:
            minis.append(_Mini(function))
            continue
        best.bits |= function.bits
        best.size = grown
        best.functions.append(function)
    return minis
