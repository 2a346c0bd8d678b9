"""Partial sums of Z = Σ_x Π_a f_{a,G}(x_a) over the states with at most two 1s, of M gauges of one graph at once.

G-BP-single and G-BP-multiple, equations (10) and (11). No term of a feasible gauge is negative, so that every partial
sum is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROWS = 256
"""Of pairs of edges at a time."""


class Sums(NamedTuple):
    """Logarithms (M,) of sums of terms, without the models' constants; -inf where the term of x = 0 is 0.

    Attributes:
        zero: the term of x = 0.
        single: and of every x with one 1.
        multiple: and of every x with two 1s.
    """

    zero: FloatArray
    single: FloatArray
    multiple: FloatArray


class _Pairs(NamedTuple):
    """Pairs of edges e < f with a common node.

    Attributes:
        first, second: (P,) half edges, one entry a common node.
        which: (P,) the pair of each entry, K in all.
        alone: (P,) whether it is the pair's only common node.
        number: K.
        near: (2, K) the pairs, ascending.
    """

    first: IntArray
    second: IntArray
    which: IntArray
    alone: npt.NDArray[np.bool_]
    number: int
    near: IntArray


def partial_sums(model: ForneyModel, tables: Sequence[FloatArray]) -> Sums:
    """From gauged tables (M, n, 2**d) a degree group, non-negative.

    With r_e = Π f(e flipped) / f(0) over the two ends of e, the pairs are r_e r_e' but for pairs with a common node,
    which are looked up.

    Args:
        model: gives the graph; its tables and its constant are not used.
        tables: of M models.
    """
    rows = len(tables[0]) if tables else 1
    found = np.full((3, rows), -np.inf)
    fine = np.all([np.ones(rows, dtype=bool), *((table[..., 0] > 0).all(axis=1) for table in tables)], axis=0)
    if model.num_edges and fine.any():
        found[:, fine] = _sums(model, [table[fine] for table in tables])
    elif not model.num_edges:
        found[:] = 0.0
    return Sums(*found)


def corrections(model: ForneyModel, tables: Sequence[FloatArray]) -> tuple[float, float]:
    """G-BP-single and G-BP-multiple of one gauged model, from its tables (n, 2**d) a degree group."""
    sums = partial_sums(model, [table[None] for table in tables])
    return model.log_constant + float(sums.single[0]), model.log_constant + float(sums.multiple[0])


def _sums(model: ForneyModel, tables: Sequence[FloatArray]) -> FloatArray:
    """(3, M) as `Sums`, where entries at x = 0 are positive."""
    rows = len(tables[0])
    zero = np.zeros(rows)
    one = np.empty((rows, 2 * model.num_edges))  # of each half edge: log of the flipped entry over that of 0
    both: list[FloatArray] = []
    with np.errstate(divide="ignore"):
        for group, table in zip(model.groups, tables, strict=True):
            relative = np.log(table) - np.log(table[..., :1])
            zero += np.log(table[..., 0]).sum(axis=1)
            places = 1 << np.arange(group.degree - 1, -1, -1)
            one[:, group.own] = relative[:, :, places]
            both += [relative[:, :, a + b] for k, a in enumerate(places) for b in places[k + 1 :]]
    ratio = one[:, 0::2] + one[:, 1::2]
    pairs = _pairs(model)
    outside = np.where(pairs.alone, one[:, pairs.first ^ 1] + one[:, pairs.second ^ 1], 0.0)
    near = np.zeros((pairs.number, rows))
    np.add.at(near, pairs.which, (np.concatenate([*both, np.zeros((rows, 0))], axis=1) + outside).T)
    scale = np.maximum(np.maximum(ratio.max(axis=1), 0.5 * near.max(axis=0, initial=-np.inf)), 0.0)
    plain = np.exp(ratio - scale[:, None])
    double = _distant(plain, pairs) + np.exp(near - 2.0 * scale).sum(axis=0)
    with np.errstate(divide="ignore"):
        logs = np.stack([np.zeros(rows), scale + np.log(plain.sum(axis=1)), 2.0 * scale + np.log(double)])
    return zero + np.logaddexp.accumulate(logs, axis=0)


def _distant(ratio: FloatArray, pairs: _Pairs) -> FloatArray:
    """(M,) Σ r_e r_f over e < f without a common node, without subtractions: terms can differ by many orders."""
    edges = ratio.shape[1]
    total = np.zeros(len(ratio))
    for low in range(0, edges, ROWS):
        rows = np.arange(low, min(low + ROWS, edges))
        distant = (rows[:, None] < np.arange(edges)).astype(np.float64)
        start, end = np.searchsorted(pairs.near[0], (low, low + ROWS))
        distant[pairs.near[0][start:end] - low, pairs.near[1][start:end]] = 0.0
        total += ((ratio @ distant.T) * ratio[:, rows]).sum(axis=1)
    return total


def _pairs(model: ForneyModel) -> _Pairs:
    firsts, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for group in model.groups:
        for k in range(group.degree):
            for m in range(k + 1, group.degree):
                e, f = group.own[:, k], group.own[:, m]
                firsts.append(np.minimum(e, f))
                seconds.append(np.maximum(e, f))
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    edges = model.num_edges
    found, which, count = np.unique(first // 2 * edges + second // 2, return_inverse=True, return_counts=True)
    return _Pairs(first, second, which, count[which] == 1, len(found), np.stack([found // edges, found % edges]))
