"""Starts at which as many of a model's strongest parities hold as can be found, by elimination and decoding.

In the Walsh basis the log weight of binary variables is a sum of J_S Π_{i in S} (-1)^{x_i}, and each term prefers a
parity of its variables. Strongest first, parities are made variables of their own until they settle every state: linear
algebra modulo 2, which finds a planted state that no local move leads to (a "golf hole"), as of parity checks or
diluted p-spin models, and of frustrated models one state of many that are no worse than others.

Where some parities or fields contradict such a state, a few of those that settle it are wrong. So they are chosen
anew many times, and of each choice the two whose turning gains most are turned, as long as there are any.

Fossorier and Lin, "Soft-decision decoding of linear block codes based on ordered statistics", IEEE Trans. Information
Theory 1995, do so with the bits of a received word.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import FLOOR

FloatArray = npt.NDArray[np.float64]
BitArray = npt.NDArray[np.uint8]

HIGHEST = 8
"""Variables of a factor; larger ones are left out."""
TERMS = 4
"""Times as many as variables are looked at."""
NOISE = 0.1
"""Standard deviation of the log of a strength: ties are broken, and each choice is another."""
CHOICES = 64
"""For all starts together, if parities have three variables or more; others do not hide."""
WORK = 2.0**31
"""Floating-point operations in which choices are searched, at about; each start has one choice at least."""
TURNS = 16
"""Pairs that are turned at most."""


def parity_starts(flat: FactorTables, starts: int, rng: np.random.Generator) -> BitArray:
    """(N, `starts`) states of binary variables, each the likeliest of as many choices; what no parity settles is
    random."""
    n = len(flat.cardinalities)
    terms = sorted(walsh_terms(flat).items(), key=lambda term: -abs(term[1]))[: TERMS * n]
    found = rng.integers(0, 2, size=(n, starts), dtype=np.uint8)
    if not terms:
        return found
    strengths = np.array([strength for _, strength in terms])
    members = np.array([[s >> v & 1 for s, _ in terms] for v in range(n)], dtype=np.uint8)
    hidden = members.sum(axis=0).max() > 2
    pairs = hidden and TURNS * members.size * n * starts < WORK
    rounds = int(min(CHOICES, WORK / (TURNS * members.size * n)) // starts) if pairs else 1
    for own in found.T:
        best = -np.inf
        for _ in range(rounds):
            order = np.argsort(-np.abs(strengths) * np.exp(NOISE * rng.standard_normal(len(terms))))
            x, weight = _settled(members, strengths, order, rng.integers(0, 2, n, dtype=np.uint8), pairs)
            if weight > best:
                best, own[:] = weight, x
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


def _settled(
    members: BitArray, strengths: FloatArray, order: npt.NDArray[np.int64], y: BitArray, pairs: bool
) -> tuple[BitArray, float]:
    """States x (N,) and their log weight; members (N, T) whether a variable is in a term; y (N,) for what stays free.

    Columns of the terms are added to each other until single ones are the parities of the first terms in this order;
    identity rows below them become those of x in these variables y.
    """
    n, count = members.shape
    columns = np.concatenate([members, np.eye(n, dtype=np.uint8)], axis=1)
    free = np.ones(n, dtype=bool)
    for term in order.tolist():
        own = columns[:, term]
        if not (own & free).any():
            continue
        chosen = int((own & free).argmax())
        others = own.astype(bool)
        others[chosen] = False
        columns[others] ^= columns[chosen]
        y[chosen], free[chosen] = strengths[term] < 0, False
        if not free.any():
            break
    signs = 1.0 - 2.0 * columns[:, :count]
    if pairs:
        _turn(y, signs, strengths)
    x = (y @ columns[:, count:].astype(np.int64)) & 1
    return x.astype(np.uint8), float((strengths * np.prod(np.where(y[:, None] > 0, signs, 1.0), axis=0)).sum())


def _turn(y: BitArray, signs: FloatArray, strengths: FloatArray) -> None:
    """Turn y_j, or y_j and y_k, as long as that makes terms (T,) larger, whose signs (N, T) it changes."""
    turned = np.concatenate([signs, np.ones((1, len(strengths)))])
    held = strengths * np.prod(np.where(y[:, None] > 0, signs, 1.0), axis=0)
    for _ in range(TURNS):
        weights = (turned * held) @ turned.T
        first, second = np.unravel_index(int(weights.argmax()), weights.shape)
        if weights[first, second] <= held.sum() * (1 + 1e-12) + 1e-12:
            return
        for place in (first, second):
            held = held * turned[place]
            if place < len(y):
                y[place] ^= 1
