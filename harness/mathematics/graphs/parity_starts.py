"""Starts at which as many of a model's strongest parities hold as do not contradict each other, by elimination.

In the Walsh basis the log weight of binary variables is a sum of J_S Π_{i in S} (-1)^{x_i}, and each term prefers a
parity of its variables. Strongest first, a parity is kept unless those before it settle it: linear algebra modulo 2,
which finds a planted state that no local move leads to (a "golf hole"), as of parity checks or diluted p-spin models,
and of frustrated models one state of many that are no worse than others.

Fossorier and Lin, "Soft-decision decoding of linear block codes based on ordered statistics", IEEE Trans. Information
Theory 1995, do so with the bits of a received word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables

FloatArray = npt.NDArray[np.float64]

HIGHEST = 8
"""Variables of a factor; larger ones are left out."""
TERMS = 4
"""Times as many as variables are looked at."""
NOISE = 0.1
"""Standard deviation of the log of a strength: ties are broken, and each start is another."""
FLOOR = 25.0
"""Nats by which a hard zero counts as below the lowest other entry of its factor."""


def parity_starts(flat: FactorTables, starts: int, rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """(N, `starts`) states of binary variables; those that no parity settles are random."""
    n = len(flat.cardinalities)
    terms = sorted(walsh_terms(flat).items(), key=lambda term: -abs(term[1]))[: TERMS * n]
    strengths = np.abs([strength for _, strength in terms])
    found = rng.integers(0, 2, size=(n, starts), dtype=np.int8)
    for own in found.T:
        order = np.argsort(-strengths * np.exp(NOISE * rng.standard_normal(len(terms))))
        _settle(own, [terms[i] for i in order.tolist()])
    return found


def walsh_terms(flat: FactorTables) -> dict[int, float]:
    """J_S other than 0, by sets S of variables as bits of an integer, of factors of at most `HIGHEST` variables."""
    found: dict[int, float] = {}
    for f in range(len(flat.offsets) - 1):
        scope = flat.scope_variables[flat.scope_starts[f] : flat.scope_starts[f + 1]].tolist()
        if len(scope) > HIGHEST:
            continue
        sets = [0]
        for v in scope:
            sets = [s | bit for s in sets for bit in (0, 1 << v)]
        coefficients = _walsh(flat.values[flat.offsets[f] : flat.offsets[f + 1]], len(scope))
        for s, strength in zip(sets[1:], coefficients.tolist()[1:], strict=True):
            found[s] = found.get(s, 0.0) + strength
    return {s: strength for s, strength in found.items() if strength}


def _walsh(values: FloatArray, order: int) -> FloatArray:
    """(2^k,) coefficients of a table, in C order of whether a variable is in the set."""
    finite = np.isfinite(values)
    lowest = values[finite].min() - FLOOR if finite.any() else 0.0
    table = np.where(finite, values, lowest).reshape((2,) * order)
    for axis in range(order):
        zero, one = np.take(table, 0, axis), np.take(table, 1, axis)
        table = np.stack([zero + one, zero - one], axis) / 2
    return np.asarray(table.ravel())


def _settle(x: npt.NDArray[np.int8], terms: list[tuple[int, float]]) -> None:
    """Change x so that the parities hold which those before them do not settle.

    A row is a parity less those before it: its highest bit is in no row before. The last bit but one of what is kept
    is the sum that it asks for, so that states follow from the lowest variable to the highest.
    """
    rows: dict[int, int] = {}
    for members, strength in terms:
        row = members << 1 | (strength < 0)
        while row > 1 and (top := row.bit_length()) in rows:
            row ^= rows[top]
        if row > 1:
            rows[top] = row
        if len(rows) == len(x):
            break
    state = sum(1 << v + 1 for v in np.flatnonzero(x).tolist()) | 1
    for top in sorted(rows):
        if (rows[top] & state).bit_count() & 1:
            state ^= 1 << top - 1
    x[:] = [state >> v + 1 & 1 for v in range(len(x))]
