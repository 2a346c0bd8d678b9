"""Where a UAI file's scopes and tables lie, found for all factors together."""

from __future__ import annotations

import math
from array import array
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import group_by_order
from spinbench.models.files.text import Tokens

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ORDERS = frozenset(float(order) for order in range(MAX_ORDER + 1))
# Larger than the number of entries of any file.
_MAX_ENTRIES = 2.0**52
# Run of scopes with equal order after which the look-ahead doubles, and its limit.
_MIN_RUN, _MAX_LOOKAHEAD = 8, 4096


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
    members = tokens.integers_at(np.flatnonzero(inside), "a variable", 0, n - 1)
    return Scopes(members, orders, position)


def _find_orders(tokens: Tokens, position: int, count: int) -> tuple[IntArray, int]:
    """From token `position` on, those with the orders of `count` scopes; and the token after the last scope."""
    numbers: Any = tokens.values
    view, size, positions, last, alike = memoryview(numbers), tokens.size, array("q"), -1.0, 0
    while len(positions) < count:
        if position >= size or (order := view[position]) not in _ORDERS or order > size - position - 1:
            raise _order_error(tokens, position, len(positions))
        step, alike, last = 1 + int(order), alike + 1 if order == last else 0, order
        run = 1
        if alike >= _MIN_RUN:
            whole = min((size - position) // step, count - len(positions), _MAX_LOOKAHEAD)
            same = tokens.values[position : position + step * whole : step] == order
            run = int(np.append(same, False).argmin())
        positions.frombytes(np.arange(position, position + step * run, step, dtype=np.int64).tobytes())
        position += step * run
    return np.array(positions, dtype=np.int64), position


def find_tables(tokens: Tokens, scopes: Scopes, cards: list[int]) -> IntArray:
    """(F + 1,) int64: the token with the number of entries of each table, which follow it; the one after the last.

    Raises:
        ModelError: with line and token.
    """
    cardinalities, sizes = np.array(cards, dtype=np.float64), np.ones(len(scopes.orders))
    for indices, members in group_by_order(scopes.members, scopes.orders):
        sizes[indices] = cardinalities[members].prod(axis=1)
    ends = scopes.end + np.cumsum(1 + np.minimum(sizes, _MAX_ENTRIES))
    places: IntArray = np.minimum(np.concatenate([[scopes.end], ends]), tokens.size).astype(np.int64)
    if not len(sizes):
        return places
    declared_sizes = tokens.values[np.minimum(places[:-1], tokens.size - 1)]
    bad = (places[:-1] >= tokens.size) | (declared_sizes != sizes) | (ends > tokens.size)
    if bad.any():
        k = int(np.argmax(bad))
        begin = int(scopes.orders[:k].sum())
        scope = tuple(scopes.members[begin : begin + int(scopes.orders[k])].tolist())
        raise _table_error(tokens, int(places[k]), k, scope, math.prod(cards[v] for v in scope))
    return places


def _order_error(tokens: Tokens, position: int, k: int) -> ModelError:
    order = tokens.count(position, f"variables of factor {k}")
    return tokens.error(position, f"factor {k} has {order} variables; at most {MAX_ORDER} are allowed")


def _table_error(tokens: Tokens, position: int, k: int, scope: tuple[int, ...], size: int) -> ModelError:
    if position >= tokens.size:
        return tokens.error(position, f"the table of factor {k} is missing")
    if tokens.values[position] != size:
        return tokens.error(position, f"the table of factor {k} over variables {scope} has {size} entries")
    left = tokens.size - position - 1
    return tokens.error(tokens.size, f"the table of factor {k} has {left} of its {size} entries")


def take_diagonals(
    scopes: Scopes, cards: list[int], logs: FloatArray, offsets: IntArray
) -> tuple[Scopes, FloatArray, IntArray]:
    """Of factors that name a variable more than once, the entries at which it has one state.

    Args:
        scopes: of all factors.
        cards: numbers of states.
        logs: entries of all tables, one after another.
        offsets: (F + 1,) int64, where each table begins.
    """
    if not _has_repeats(scopes):
        return scopes, logs, offsets
    members, tables, begins = [], [], np.cumsum([0, *scopes.orders])
    for k, begin in enumerate(begins[:-1]):
        scope = scopes.members[begin : begins[k + 1]].tolist()
        kept = list(dict.fromkeys(scope))
        table = logs[offsets[k] : offsets[k + 1]].reshape([cards[v] for v in scope])
        axes = [kept.index(v) for v in scope]
        tables.append(np.einsum(table, axes, range(len(kept))).ravel())
        members.append(kept)
    orders = np.array([len(kept) for kept in members], dtype=np.int64)
    places = np.cumsum([0, *(table.size for table in tables)], dtype=np.int64)
    flat = np.array([v for kept in members for v in kept], dtype=np.int64)
    return Scopes(flat, orders, scopes.end), np.concatenate(tables), places


def _has_repeats(scopes: Scopes) -> bool:
    for _, members in group_by_order(scopes.members, scopes.orders):
        ordered = np.sort(members, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            return True
    return False
