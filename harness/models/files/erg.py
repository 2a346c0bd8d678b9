"""Ergo's format of Bayesian networks (`.erg`), as the UAI evaluations' page describes it.

Number of variables, their numbers of states, each one's number of parents and parents; then, after the comment
"Probabilities", each one's table, its length first, a row for each state of the parents, the last parent fastest; then
perhaps sections "Names", "Labels" (of states) and "Centers". Parents are counted from 0 at the
University of California and from 1 by GeNIe; which of both, the file has to show.
"""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np

from spinbench.errors import ModelError
from spinbench.foundation.remarks import format_count, remark
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.format import Format, ModelFile, as_read_only, find_cycle, first_unnormalised_row
from spinbench.models.files.text import Tokens, blank_out_comments, parse_log_weights
from spinbench.models.names import Names

_PROBABILITIES = re.compile(rb"/\*\s*Probabilities\s*\*/", re.IGNORECASE)
_SECTION = re.compile(rb"/\*\s*(Names|Labels|Centers)\s*\*/", re.IGNORECASE)


class Ergo(Format):
    """A Bayesian network, each table a factor over the parents and the variable; its numbers are kept as they are."""

    suffixes = (".erg",)
    summary = "Ergo's Bayesian networks"

    def recognises(self, head: bytes) -> bool:
        return _PROBABILITIES.search(head) is not None and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1].isdigit()

    def read(self, file: ModelFile) -> FactorGraph:
        text = file.text()
        numbers = _SECTION.split(text, maxsplit=1)[0]
        tokens = Tokens(blank_out_comments(numbers), file.name)
        n = tokens.count(0, "variables", low=1)
        if tokens.size < 1 + n:
            raise tokens.error(tokens.size, f"the numbers of states of {n} variables are needed")
        cards = tokens.integers(1, 1 + n, "a number of states", 1, 2**31).tolist()
        written, position = _read_parents(tokens, 1 + n, n)
        starts = _locate_tables(tokens, position, [len(parents) for parents in written])
        parents = _number_parents_from_zero(tokens, written, cards, [int(tokens.values[start - 1]) for start in starts])
        logs = parse_log_weights(tokens, slice(position, tokens.size), [start - 1 for start in starts])
        # Offsets refer to the tables alone, without the counts in front of each.
        offsets = [start - position - 1 - v for v, start in enumerate(starts)]
        factors, unnormalised = [], []
        for v, (scope, offset) in enumerate(zip(parents, offsets, strict=True)):
            shape = (*(cards[p] for p in scope), cards[v])
            table = logs[offset:][: math.prod(shape)].reshape(shape)
            if first_unnormalised_row(np.exp(table)) is not None:
                unnormalised.append(v)
            factors.append(Factor((*scope, v), as_read_only(table)))
        # in the linkage networks of UAI-2008, rows include the likelihood of the evidence
        if unnormalised:
            remark(
                f"{file.name}: probabilities of {format_count(len(unnormalised), 'variable')}, the first of them "
                f"{unnormalised[0]}, do not add up to 1; the tables are taken as weights, as they stand"
            )
        names = _read_names(file, text, cards)
        return FactorGraph(tuple(cards), tuple(factors), name=file.stem, labels=names.labels, state_names=names.states)


def _read_parents(tokens: Tokens, position: int, n: int) -> tuple[list[list[int]], int]:
    """The parents of each variable as they are counted in the file, and the index of the token after them."""
    parents_by_variable = []
    for v in range(n):
        order = tokens.count(position, f"parents of variable {v}")
        if order >= min(n, MAX_ORDER):
            max_parents = min(n, MAX_ORDER) - 1
            raise tokens.error(position, f"variable {v} has {order} parents; at most {max_parents} are allowed")
        parents = tokens.integers(position + 1, position + 1 + order, "a parent", 0, n).tolist()
        if len(set(parents)) != order:
            raise tokens.error(position + 1, f"variable {v} has a parent twice")
        parents_by_variable.append(parents)
        position += 1 + order
    return parents_by_variable, position


def _locate_tables(tokens: Tokens, position: int, orders: list[int]) -> list[int]:
    """The index of each table's first entry."""
    starts = []
    for v in range(len(orders)):
        size = tokens.count(position, f"entries of the table of variable {v}", low=1)
        starts.append(position + 1)
        position += 1 + size
    tokens.check_end(position)
    return starts


def _number_parents_from_zero(
    tokens: Tokens, written: list[list[int]], cards: list[int], sizes: list[int]
) -> list[list[int]]:
    """The parents, counted from 0: from 0 or 1 in the file, whichever makes a network with tables of these sizes."""
    n = len(cards)
    consistent, reasons = [], []
    for first in (0, 1):
        parents = [[p - first for p in each] for each in written]
        if any(not 0 <= p < n for each in parents for p in each):
            reasons.append(f"a parent is outside {first}..{n - 1 + first}")
        elif loop := find_cycle(parents):
            reasons.append(f"variables {', '.join(str(v + first) for v in loop[:-1])} are in a cycle")
        elif wrong := [v for v in range(n) if sizes[v] != math.prod([*(cards[p] for p in parents[v]), cards[v]])]:
            reasons.append(f"the table of variable {wrong[0] + first} does not have an entry for each state")
        else:
            consistent.append(parents)
    if len(consistent) == 2 and any(written):
        raise ModelError(f"{tokens.source}: no parent is 0 or {n}, so that they may be counted from 0 or from 1")
    if not consistent:
        raise ModelError(
            f"{tokens.source}: this is no network, whether parents are counted from 0 ({reasons[0]}) "
            f"or from 1 ({reasons[1]})"
        )
    return consistent[0]


def _read_names(file: ModelFile, text: bytes, cards: list[int]) -> Names:
    """What follows "Names", a line or a word for each variable, and "Labels", a line of words for each.

    Labels of states are kept where there are names, and where each variable has a line with one for each state.
    """
    n = len(cards)
    labels: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    sections = list(_SECTION.finditer(text))
    stops = [*(each.start() for each in sections[1:]), len(text)]
    for each, stop in zip(sections, stops, strict=False):
        content = text[each.end() : stop].decode()
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        if each.group(1).lower() == b"names":
            names = lines if len(lines) == n else content.split()
            if len(names) != n:
                raise ModelError(f"{file.name}: {len(names)} names are given to {n} variables")
            if len(set(names)) != n:
                twice = Counter(names).most_common(1)[0][0]
                raise ModelError(f"{file.name}: two variables have the name {twice!r}")
            labels = tuple(names)
        elif each.group(1).lower() == b"labels":
            rows = [tuple(line.split()) for line in lines]
    if [len(set(row)) for row in rows] != cards or [len(row) for row in rows] != cards:
        rows = []
    return Names(labels, dict(zip(labels, rows, strict=False)))
