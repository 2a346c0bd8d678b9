"""What locally balanced jumps are planned with: whose rates a change of one variable touches, and by which entries."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from spinbench.api import Array
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import Section


class Near(NamedTuple):
    """Of each of N variables v up to M variables u, itself the first, and up to S factors that hold both.

    Spare factors have the entry 0 of `FactorTables.values` with a 0 appended, spare variables are v itself.

    Attributes:
        rows: (N, M) int32, u.
        bases: (N, M, S) int32, where the factor's entries begin.
        strides, moved: (N, M, S) int32, of u and of v.
        others: (N, o, M, S) int32, the factor's other variables; steps: (N, o, M, S) int32, their strides.
    """

    rows: Array
    bases: Array
    strides: Array
    moved: Array
    others: Array
    steps: Array


class Tables(NamedTuple):
    """What `Zanella.plan` prepares; K is the largest number of states.

    Attributes:
        sections: of all variables of two states or more.
        values: (P, T + 1) log tables and a 0; where there are zeros, these as 0, and a second row with 1 for each.
        near: of each variable.
        last: (N, 1) int32, its last state; there: (N, K) 1 where it has the state, else 0.
        jumps: (J,) 0, for its length, the jumps of a step.
        variables, states: (R,) int32, what is reported.
    """

    sections: tuple[Section, ...]
    values: Array
    near: Near
    last: Array
    there: Array
    jumps: Array
    variables: Array
    states: Array


def neighbourhoods(tables: FactorTables) -> Near:
    """Of all variables."""
    shared = _shared_factors(tables)
    count = len(tables.cardinalities)
    most = 1 + max(map(len, shared), default=0)
    deep = max((len(factors) for own in shared for factors in own.values()), default=1)
    wide = max(int(np.diff(tables.scope_starts).max(initial=2)) - 2, 0)
    rows = np.repeat(np.arange(count)[:, None], most, axis=1)
    bases = np.full((count, most, deep), len(tables.values))
    strides, moved = np.zeros((2, count, most, deep), dtype=np.int64)
    others, steps = np.zeros((2, count, wide, most, deep), dtype=np.int64)
    for v, own in enumerate(shared):
        for m, (u, factors) in enumerate(own.items(), start=1):
            rows[v, m] = u
            for s, f in enumerate(factors):
                begin, end = tables.scope_starts[f : f + 2]
                scope, step = tables.scope_variables[begin:end], tables.scope_strides[begin:end]
                bases[v, m, s] = tables.offsets[f]
                strides[v, m, s], moved[v, m, s] = step[scope == u][0], step[scope == v][0]
                rest = (scope != u) & (scope != v)
                others[v, : rest.sum(), m, s], steps[v, : rest.sum(), m, s] = scope[rest], step[rest]
    return Near(*(part.astype(np.int32) for part in (rows, bases, strides, moved, others, steps)))


def _shared_factors(tables: FactorTables) -> list[dict[int, list[int]]]:
    """For each variable its neighbours, and the factors that they share; variables of one state are left out."""
    found: list[dict[int, list[int]]] = [{} for _ in tables.cardinalities]
    for f in range(len(tables.offsets) - 1):
        scope = tables.scope_variables[tables.scope_starts[f] : tables.scope_starts[f + 1]]
        free = scope[tables.cardinalities[scope] > 1].tolist()
        for v, u in permutations(free, 2):
            found[v].setdefault(u, []).append(f)
    return found
