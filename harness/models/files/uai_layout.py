"""Where a UAI file's scopes and tables lie, found for all factors together."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.factor_graph import MAX_ORDER
from spinbench.models.files.text import Tokens

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ORDERS = frozenset(float(order) for order in range(MAX_ORDER + 1))
_MOST = 2.0**52
"""More entries than any file has."""
_ALIKE, _AHEAD = 8, 4096
"""Scopes of one order after which as many more are looked at together, at most."""
_SMALL = 64
"""Entries of a table, at most, that is laid beside others of its shape."""


class Scopes(NamedTuple):
    """The variables of all factors, one after the other.

    Attributes:
        members: (M,) int64.
        orders: (F,) int64, how many of them each factor has.
        end: index of the token after the last scope.
    """

    members: IntArray
    orders: IntArray
    end: int

    def rows(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Factors of one order k after the other: (their numbers (G,), their variables (G, k))."""
        begins = np.cumsum(self.orders) - self.orders
        for order in np.unique(self.orders).tolist():
            which = np.flatnonzero(self.orders == order)
            yield which, self.members[begins[which, None] + np.arange(order)]

    def tuples(self) -> list[tuple[int, ...]]:
        """The variables of each factor."""
        found: list[tuple[int, ...]] = [()] * len(self.orders)
        for which, members in self.rows():
            if members.shape[1]:
                columns = members.T.tolist()
                for k, one in zip(which.tolist(), zip(*columns, strict=True), strict=True):
                    found[k] = one
        return found


def find_scopes(tokens: Tokens, position: int, n: int) -> Scopes:
    """From token `position`, the number of factors, on; of a model of n variables.

    Raises:
        ModelError: with line and token.
    """
    count, first = tokens.count(position, "factors"), position + 1
    begins, position = _find_orders(tokens, first, count)
    orders = np.diff(begins, append=position) - 1
    inside = np.ones(position, dtype=bool)
    inside[:first] = False
    inside[begins] = False
    places = np.flatnonzero(inside)
    values = tokens.values[places]
    good = (values >= 0) & (values < n) & (values == np.floor(values))
    if not good.all():
        raise tokens.error(int(places[np.argmin(good)]), f"a variable must be an integer from 0 to {n - 1}")
    scopes = Scopes(values.astype(np.int64), orders, position)
    if (twice := _first_repeat(scopes)) is not None:
        raise tokens.error(int(begins[twice]) + 1, f"factor {twice} names a variable twice")
    return scopes


def _find_orders(tokens: Tokens, position: int, count: int) -> tuple[IntArray, int]:
    """From token `position` on, those with the orders of `count` scopes; and the token after the last scope."""
    numbers: Any = tokens.values
    view, size, found, last, alike = memoryview(numbers), tokens.size, array("q"), -1.0, 0
    while len(found) < count:
        if position >= size or (order := view[position]) not in _ORDERS or order > size - position - 1:
            raise _bad_order(tokens, position, len(found))
        step, alike, last = 1 + int(order), alike + 1 if order == last else 0, order
        run = 1
        if alike >= _ALIKE:
            whole = min((size - position) // step, count - len(found), _AHEAD)
            same = tokens.values[position : position + step * whole : step] == order
            run = whole if same.all() else int(np.argmin(same))
        found.extend(range(position, position + step * run, step))
        position += step * run
    return np.array(found, dtype=np.int64), position


def cut(logs: FloatArray, begins: IntArray, scopes: Scopes, cards: list[int]) -> list[FloatArray]:
    """The tables of all factors, from their entries one after the other.

    Args:
        logs: the entries, and others.
        begins: (F,) where each table begins.
        scopes: of the factors.
        cards: of the variables.

    Returns:
        Of each factor its table, of the shape that the states of its variables give; read-only as `logs` is.
    """
    tables: list[FloatArray] = [logs[:0]] * len(begins)
    known = np.array(cards)
    for which, members in scopes.rows():
        for rows, shape in _shapes(which, known[members]):
            size, starts = math.prod(shape), begins[rows]
            if shape and size <= _SMALL:
                together = logs[starts[:, None] + np.arange(size)].reshape(-1, *shape)
                together.setflags(write=False)
                own = list(together)
            else:
                own = [logs[begin : begin + size].reshape(shape) for begin in starts.tolist()]
            for k, table in zip(rows.tolist(), own, strict=True):
                tables[k] = table
    return tables


def _shapes(which: IntArray, sizes: IntArray) -> Iterator[tuple[IntArray, tuple[int, ...]]]:
    """Factors (G,) with tables of sizes (G, k), shape after shape: (those of the shape, the shape)."""
    if sizes.size == 0 or (sizes == sizes[0]).all():
        yield which, tuple(sizes[0].tolist())
        return
    kinds, own, counts = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
    parts = np.split(which[np.argsort(own.ravel(), kind="stable")], np.cumsum(counts)[:-1])
    yield from zip(parts, map(tuple, kinds.tolist()), strict=True)


def find_tables(tokens: Tokens, scopes: Scopes, cards: list[int]) -> IntArray:
    """(F + 1,) int64: the token with the number of entries of each table, which follow it; the one after the last.

    Raises:
        ModelError: with line and token.
    """
    known, sizes = np.array(cards, dtype=np.float64), np.ones(len(scopes.orders))
    for which, members in scopes.rows():
        sizes[which] = known[members].prod(axis=1)
    ends = scopes.end + np.cumsum(1 + np.minimum(sizes, _MOST))
    places: IntArray = np.minimum(np.concatenate([[scopes.end], ends]), tokens.size).astype(np.int64)
    if not len(sizes):
        return places
    told = tokens.values[np.minimum(places[:-1], tokens.size - 1)]
    bad = (places[:-1] >= tokens.size) | (told != sizes) | (ends > tokens.size)
    if bad.any():
        k = int(np.argmax(bad))
        begin = int(scopes.orders[:k].sum())
        scope = tuple(scopes.members[begin : begin + int(scopes.orders[k])].tolist())
        raise _bad_table(tokens, int(places[k]), k, scope, math.prod(cards[v] for v in scope))
    return places


def _bad_order(tokens: Tokens, position: int, k: int) -> ModelError:
    order = tokens.count(position, f"variables of factor {k}")
    return tokens.error(position, f"factor {k} has {order} variables; at most {MAX_ORDER} are allowed")


def _bad_table(tokens: Tokens, position: int, k: int, scope: tuple[int, ...], size: int) -> ModelError:
    if position >= tokens.size:
        return tokens.error(position, f"the table of factor {k} is missing")
    if tokens.values[position] != size:
        return tokens.error(position, f"the table of factor {k} over variables {scope} has {size} entries")
    left = tokens.size - position - 1
    return tokens.error(tokens.size, f"the table of factor {k} has {left} of its {size} entries")


def _first_repeat(scopes: Scopes) -> int | None:
    """The first factor that names a variable twice."""
    found = []
    for which, members in scopes.rows():
        ordered = np.sort(members, axis=1)
        found += which[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)][:1].tolist()
    return min(found, default=None)
