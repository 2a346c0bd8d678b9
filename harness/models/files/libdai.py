"""libDAI's factor graph format (`.fg`); in its tables the first variable is the fastest."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt

from spinbench.models.checks import MAX_ORDER, check_labels
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile
from spinbench.models.files.text import Tokens, parse_log_weights

_COMMENT = re.compile(rb"(?m)^[ \t]*#[^\n]*")


class LibDAI(Format):
    """The variables are the labels that occur, ascending, kept as `labels` where they are not 0..N-1."""

    suffixes = (".fg",)
    summary = "libDAI's factor graphs"

    def recognises(self, head: bytes) -> bool:
        """The number of factors, an empty line, and a factor's order, variables and their numbers of states; or a
        constant's one entry."""
        text = _COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf")).lstrip()
        if not text:
            return False
        count, *rest = (line.split() for line in text.splitlines()[:99])
        filled = [line for line in rest if line]
        if not (len(count) == 1 and rest[:1] == [[]] and len(filled) > 2 and len(filled[0]) == 1):
            return False
        # A constant factor: no variables, no numbers of states, one entry.
        if filled[0] == [b"0"]:
            return filled[1] == [b"1"] and len(filled[2]) == 2 and filled[2][0] == b"0"
        order, variables, states = filled[:3]
        numbers = [*count, *order, *variables, *states]
        return all(number.isdigit() for number in numbers) and len(variables) == len(states) == int(order[0][:9])

    def read(self, file: ModelFile) -> FactorGraph:
        tokens = Tokens(_COMMENT.sub(b"", file.text()), file.name)
        cards: dict[int, int] = {}
        tables: list[tuple[tuple[int, ...], npt.NDArray[np.float64]]] = []
        left, position = MAX_ENTRIES, 1
        for k in range(tokens.count(0, "factors")):
            scope, table, position = _read_factor(tokens, k, position, cards, left)
            left -= table.size
            tables.append((scope, table))
        tokens.check_end(position)
        if not cards:
            raise tokens.error(0, "no factor names a variable")
        labels = check_labels(file.name, sorted(cards), len(cards))
        index = {label: v for v, label in enumerate(sorted(cards))}
        factors = tuple(Factor(tuple(index[v] for v in scope), table) for scope, table in tables)
        return FactorGraph(tuple(cards[label] for label in index), factors, name=file.stem, labels=labels)


def _read_factor(
    tokens: Tokens, k: int, position: int, cards: dict[int, int], left: int
) -> tuple[tuple[int, ...], npt.NDArray[np.float64], int]:
    order = tokens.count(position, f"variables of factor {k}")
    if order > MAX_ORDER:
        raise tokens.error(position, f"factor {k} has {order} variables; at most {MAX_ORDER} are allowed")
    middle, stop = position + 1 + order, position + 1 + 2 * order
    if stop >= tokens.size:
        raise tokens.error(tokens.size, f"factor {k} is not complete")
    scope = tuple(tokens.integers(position + 1, middle, "a variable", 0, 2**31).tolist())
    if len(set(scope)) != order:
        raise tokens.error(position + 1, f"factor {k} names a variable twice")
    shape = tuple(tokens.integers(middle, stop, "a number of states", 1, 2**31).tolist())
    for axis, (v, states) in enumerate(zip(scope, shape, strict=True)):
        if cards.setdefault(v, states) != states:
            raise tokens.error(middle + axis, f"variable {v} has {states} states here and {cards[v]} before")
    size = math.prod(shape)
    if size > left:
        raise tokens.error(
            position, f"the table of factor {k} has {size} entries, more than the {left} left of {MAX_ENTRIES} in all"
        )
    num_entries = tokens.integer(stop, f"the number of entries of factor {k}", 0, size)
    end = stop + 1 + 2 * num_entries
    if end > tokens.size:
        raise tokens.error(tokens.size, f"the table of factor {k} is not complete")
    if num_entries == 0:
        raise tokens.error(stop, f"the table of factor {k} is zero everywhere, so Z = 0")
    table = _read_log_table(tokens, k, stop, end, size).reshape(shape, order="F")
    table.setflags(write=False)
    return scope, table, end


def _read_log_table(tokens: Tokens, k: int, stop: int, end: int, size: int) -> npt.NDArray[np.float64]:
    """(size,) logarithms of the weights listed from stop + 1 to end as index and value; -inf where none is given."""
    entries = np.arange(stop + 1, end, 2)
    index = tokens.integers_at(entries, "an entry's index", 0, size - 1)
    if len(np.unique(index)) != len(entries):
        _, firsts = np.unique(index, return_index=True)
        twice = np.setdiff1d(np.arange(len(entries)), firsts)[0]
        raise tokens.error(int(entries[twice]), f"factor {k} has this entry twice")
    logs = parse_log_weights(tokens, slice(stop + 1, end), entries.tolist())
    if not np.isfinite(logs).any():
        raise tokens.error(stop, f"the table of factor {k} is zero everywhere, so Z = 0")
    table = np.full(size, -np.inf)
    table[index] = logs
    return table
