"""How large sparse tables will be, before they are made: estimated from random states of a few variables.

Where a table would grow beyond `MAX_ROWS`, one of its variables is held at the state of a random row, there and in all
later tables. A state that is chosen with probability p stands for 1 / p states, so that the rows that are left, times
the factors of the held variables in a table's scope, estimate its rows without bias until a held variable is summed
out; those that are eliminated last are held first. (Knuth, "Estimating the efficiency of backtrack programs", 1975,
with rows in the place of nodes.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.foundation import deadline
from spinbench.reference.network import FloatArray, Scope
from spinbench.reference.sparse.tables import Table, TooManyError, growth, product, project, table_of

# Rows of a table above which a variable is held.
MAX_ROWS = 2**15
# Estimates that are averaged, as far as time allows. On 11 models of UAI-2006 and UAI-2014 the mean of eight is 0.6 to
# 1.6 times the rows, 2^21 to 2^26; one alone may be a quarter.
N_ESTIMATES = 8
# Seconds after which no further estimate begins; each takes some 50 µs a variable.
ESTIMATE_SECONDS = 0.5
# Numbers that tables hold above which an estimate ends as it is: they take terabytes, and its rest takes seconds.
MAX_STATES = 2.0**40


class Size(NamedTuple):
    """Of an elimination.

    Attributes:
        rows: of all buckets, which are kept.
        states: numbers that its tables hold beside weights: rows times variables, of products and of what is summed.
    """

    rows: float
    states: float


def estimate_size(
    tables: Mapping[Scope, FloatArray], cards: Sequence[int], order: Sequence[int], seed: int = 0
) -> Size:
    """Of the elimination along an order; infinite where its rows cannot be numbered."""
    end = deadline.now() + ESTIMATE_SECONDS
    starts = [table_of(scope, log_table) for scope, log_table in tables.items()]
    estimates: list[Size] = []
    try:
        while len(estimates) < N_ESTIMATES and deadline.now() < end:
            sampled = _Sampled(cards, order, np.random.default_rng([seed, len(estimates)]))
            estimates.append(sampled.eliminate(starts))
            if not sampled.states:  # the size itself, and no estimate
                break
    except TooManyError:
        return Size(math.inf, math.inf)
    return Size(*np.mean(estimates, axis=0).tolist())


class _Sampled:
    """One estimate.

    Attributes:
        states: at which variables are held.
        factors: for how many states each of these stands.
    """

    def __init__(self, cards: Sequence[int], order: Sequence[int], rng: np.random.Generator) -> None:
        self.cards, self.order, self.rng = cards, order, rng
        self.place = {v: k for k, v in enumerate(order)}
        self.states: dict[int, int] = {}
        self.factors: dict[int, float] = {}

    def eliminate(self, tables: Sequence[Table]) -> Size:
        """What it takes, up to a contradiction, or to `MAX_STATES`.

        Raises:
            TooManyError: int64 cannot number the rows of a table.
        """
        waiting: list[list[Table]] = [[] for _ in self.order]
        for table in tables:
            waiting[min(self.place[v] for v in table.scope)].append(table)
        rows = states = 0.0
        for k, v in enumerate(self.order):
            deadline.check()
            rest = sorted(waiting[k], key=lambda table: len(table.logs))
            waiting[k] = []
            merged = self._narrow(rest.pop()) if rest else table_of((v,), np.zeros(self.cards[v]))
            while rest:
                other = min(rest, key=lambda table: growth(merged, table, self.cards))
                rest = [table for table in rest if table is not other]
                merged = self._multiply(merged, other)
                states += self._rows(merged) * len(merged.scope)
            rows += self._rows(merged)
            states += self._rows(merged) * len(merged.scope)
            if not len(merged.logs) or states > MAX_STATES:
                break
            message, _ = project(merged, v, self.cards)
            if message.scope:
                waiting[min(self.place[u] for u in message.scope)].append(message)
        return Size(rows, states)

    def _rows(self, table: Table) -> float:
        return len(table.logs) * math.prod(self.factors.get(v, 1.0) for v in table.scope)

    def _multiply(self, merged: Table, other: Table) -> Table:
        """Their product, after as many variables are held as it takes."""
        while True:
            merged, other = self._narrow(merged), self._narrow(other)
            if not (len(merged.logs) and len(other.logs)):
                return Table(merged.scope, merged.states[:, :0], merged.logs[:0])
            try:
                return product(merged, other, self.cards, MAX_ROWS)
            except TooManyError:
                larger = max((merged, other), key=lambda table: len(table.logs))
                free = [v for v in larger.scope if v not in self.states]
                if not free:
                    raise
                self._hold(larger, max(free, key=self.place.__getitem__))

    def _hold(self, table: Table, v: int) -> None:
        """A variable, at the state of a random row."""
        states = table.states[table.scope.index(v)]
        self.states[v] = int(self.rng.choice(states))
        self.factors[v] = len(states) / np.count_nonzero(states == self.states[v])

    def _narrow(self, table: Table) -> Table:
        """The rows that the held states leave."""
        held = [v for v in table.scope if v in self.states]
        left = np.ones(len(table.logs), dtype=np.bool_)
        for v in held:
            left &= table.states[table.scope.index(v)] == self.states[v]
        if left.all():
            return table
        return Table(table.scope, table.states[:, left], table.logs[left])
