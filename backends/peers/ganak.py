"""Ganak (pyganak): exact weighted model counting of clauses, with components that are met again remembered.

Each state of a variable is a literal (of two states one proposition, else one each, exactly one of which holds), and
each entry of a table but those of weight 1 a proposition of that weight that holds where the literals of its scope do;
an entry of weight 0 is a clause that forbids them. Chavira and Darwiche, "On probabilistic inference by weighted model
counting", Artificial Intelligence 2008.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import numpy as np

from spinbench.backends.peers.answers import Answer, LibraryAnswer
from spinbench.backends.peers.library import LibraryBackend
from spinbench.backends.peers.tables import Tables, tables
from spinbench.errors import UnsupportedError
from spinbench.models import Model

Clauses = list[list[int]]


class GanakBackend(LibraryBackend):
    """pyganak."""

    name = "ganak"
    requires: ClassVar[tuple[str, ...]] = ("pyganak",)


class GanakExact(LibraryAnswer):
    """log Z by a count, and marginals by one more for each state but the last of a variable."""

    library = "ganak"
    notes = ("the library counts: each state of a variable takes a count of its own",)

    def build(self, model: Model) -> Any:
        return encoded(tables(model))

    def solve(self, built: Any, seed: int) -> Answer:
        literals, clauses, weights, count, scale = built

        def counted(*units: int) -> float:
            from pyganak import WeightedCounter

            counter = WeightedCounter(seed=seed % 2**31)
            counter.new_vars(count)
            counter.add_clauses([*clauses, *([unit] for unit in units)])
            for literal, weight in weights.items():
                counter.set_lit_weight(literal, weight)
            return float(counter.count())

        Z = counted()
        if not 0 < Z < math.inf:
            raise UnsupportedError(f"ganak counts in doubles, in whose range this model's count is not: {Z}")
        found = []
        for own in literals:
            shares = [counted(literal) / Z for literal in own[:-1]]
            found.append(np.array([*shares, max(1 - sum(shares), 0.0)]))
        return Answer(found, math.log(Z) + scale)


def encoded(given: Tables) -> tuple[list[list[int]], Clauses, dict[int, float], int, float]:
    """Literals of each variable's states, clauses, weights of literals, number of propositions, log of the scale."""
    numbers, clauses, weights = itertools.count(1), Clauses(), dict[int, float]()
    literals: list[list[int]] = []
    for size in given.sizes:
        if size == 2:
            on = next(numbers)
            literals.append([-on, on])
            continue
        own = [next(numbers) for _ in range(size)]
        literals.append(own)
        clauses += [own, *([-a, -b] for a, b in itertools.combinations(own, 2))]
    for scope, table in zip(given.scopes, given.tables, strict=True):
        for place in np.ndindex(table.shape):
            there, weight = [literals[v][k] for v, k in zip(scope, place, strict=True)], float(table[place])
            if weight == 0:
                clauses.append([-literal for literal in there])
            elif weight != 1:
                entry = next(numbers)
                clauses += [[entry, *(-literal for literal in there)], *([-entry, literal] for literal in there)]
                weights |= {entry: weight, -entry: 1.0}
    return literals, clauses, weights, next(numbers) - 1, given.scale
