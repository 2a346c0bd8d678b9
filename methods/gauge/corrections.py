"""Partial sums of Z = Σ_x Π_a f_{a,G}(x_a) over the states with at most two 1s.

G-BP-single and G-BP-multiple, equations (10) and (11). No term of a feasible gauge is negative, so that every partial
sum is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rows of pairs of edges per block: all pairs at once would take E² numbers.
ROWS = 256


class Sums(NamedTuple):
    """Logarithms of sums of terms; -inf where the term of x = 0 is 0.

    Attributes:
        zero: the term of x = 0.
        single: and of every x with one 1.
        multiple: and of every x with two 1s.
    """

    zero: float
    single: float
    multiple: float


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
    """From gauged tables (n, 2**d) a degree group, non-negative.

    With r_e = Π f(e flipped) / f(0) over the two ends of e, the pairs are r_e r_e' but for pairs with a common node,
    which are looked up.

    Args:
        model: gives the graph and the constant; its tables are not used.
        tables: of the gauge.
    """
    if not model.num_edges:
        return Sums(*[model.log_constant] * 3)
    if not all((table[:, 0] > 0).all() for table in tables):
        return Sums(-np.inf, -np.inf, -np.inf)
    zero = model.log_constant
    # For each half edge: log of the flipped entry minus log of the entry of 0.
    log_ratios = np.empty(2 * model.num_edges)
    both: list[FloatArray] = [np.zeros(0)]
    with np.errstate(divide="ignore"):
        for group, table in zip(model.groups, tables, strict=True):
            relative = np.log(table) - np.log(table[:, :1])
            zero += float(np.log(table[:, 0]).sum())
            places = 1 << np.arange(group.degree - 1, -1, -1)
            log_ratios[group.own] = relative[:, places]
            both += [relative[:, a + b] for k, a in enumerate(places) for b in places[k + 1 :]]
    ratio = log_ratios[0::2] + log_ratios[1::2]
    pairs = _pairs_of_edge_ends(model)
    outside = np.where(pairs.alone, log_ratios[pairs.first ^ 1] + log_ratios[pairs.second ^ 1], 0.0)
    # float64 explicitly: without pairs bincount returns integers.
    near = np.zeros(pairs.number)
    np.add.at(near, pairs.which, np.concatenate(both) + outside)
    scale = max(float(ratio.max()), 0.5 * float(near.max(initial=-np.inf)), 0.0)
    plain = np.exp(ratio - scale)
    # r_e r_f is the term of two flips unless e and f share a node, whose table has an entry for both: equation (11) of
    # the paper.
    double = _distant(plain, pairs) + float(np.exp(near - 2.0 * scale).sum())
    with np.errstate(divide="ignore"):
        logs = [0.0, scale + np.log(plain.sum()), 2.0 * scale + np.log(double)]
    return Sums(*(zero + np.logaddexp.accumulate(logs)).tolist())


def _distant(ratio: FloatArray, pairs: _Pairs) -> float:
    """Σ r_e r_f over e < f without a common node, without subtractions: terms can differ by many orders."""
    edges = len(ratio)
    total = 0.0
    for low in range(0, edges, ROWS):
        rows = np.arange(low, min(low + ROWS, edges))
        distant = (rows[:, None] < np.arange(edges)).astype(np.float64)
        start, end = np.searchsorted(pairs.near[0], (low, low + ROWS))
        distant[pairs.near[0][start:end] - low, pairs.near[1][start:end]] = 0.0
        total += float(ratio[rows] @ distant @ ratio)
    return total


def _pairs_of_edge_ends(model: ForneyModel) -> _Pairs:
    firsts, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for group in model.groups:
        for k in range(group.degree):
            for m in range(k + 1, group.degree):
                e, f = group.own[:, k], group.own[:, m]
                firsts.append(np.minimum(e, f))
                seconds.append(np.maximum(e, f))
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    edges = model.num_edges
    keys, numbers, count = np.unique(first // 2 * edges + second // 2, return_inverse=True, return_counts=True)
    return _Pairs(first, second, numbers, count[numbers] == 1, len(keys), np.stack([keys // edges, keys % edges]))
