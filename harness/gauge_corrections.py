"""Corrections to the bound of a gauge by further terms of Z (Ahn, Chertkov and Shin, NIPS 2017, equations 9 to 11).

With edges in any order, Z = Π_a f_{a,G}(0) + Σ_i Z_i, where Z_i sums the terms in which edge i is the first that is 1.
All terms of a feasible gauge are non-negative, so any of them may be left out of a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.gauges import zero_term
from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_CHUNK = 2**21
"""Pairs of edges at a time."""


class Corrections(NamedTuple):
    """Logarithms of sums of terms, each at least as large as the one before.

    Attributes:
        zero: the term of x = 0.
        single: and of every x with one 1.
        multiple: and of every x with two 1s.
    """

    zero: float
    single: float
    multiple: float


def corrections(model: ForneyModel, gauged: Sequence[npt.ArrayLike]) -> Corrections:
    """Sums over the states with at most two 1s, from the gauged tables of a feasible gauge.

    Nothing is subtracted, so nothing cancels: pairs of edges without a common node are products of their single
    ratios, all others are looked up. All three are -inf where the term of x = 0 is 0. Time O(E²).

    Args:
        model: gives the graph and log_constant.
        gauged: one (n, 2**d) array a degree group; entries that are negative by rounding count as 0.
    """
    tables = [np.maximum(np.asarray(t, dtype=np.float64), 0.0) for t in gauged]
    zero = zero_term(model, tables)
    if zero == -np.inf or not model.num_edges:
        return Corrections(zero, zero, zero)
    with np.errstate(divide="ignore"):
        ratios = [np.log(t) - np.log(t[:, :1]) for t in tables]
    halves = np.empty(2 * model.num_edges)
    for group, ratio in zip(model.groups, ratios, strict=True):
        halves[group.own] = ratio[:, 1 << np.arange(group.degree - 1, -1, -1)]
    singles = halves[0::2] + halves[1::2]
    first, second, near = _pairs_with_common_nodes(model, ratios, halves)
    terms = np.concatenate([[0.0], singles])
    multiple = np.concatenate([terms, near, [_log_sum_of_products(singles, first, second)]])
    return Corrections(zero, zero + _log_sum(terms), zero + _log_sum(multiple))


def _pairs_with_common_nodes(
    model: ForneyModel, ratios: Sequence[FloatArray], halves: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Edges e < f and log [term of x_e = x_f = 1 / term of x = 0] for all pairs that meet at one node or two."""
    starts, ends, values = [], [], []
    for group, ratio in zip(model.groups, ratios, strict=True):
        d = group.degree
        for k in range(d):
            for m in range(k + 1, d):
                own = np.sort(group.own[:, [k, m]], axis=1)
                starts.append(own[:, 0])
                ends.append(own[:, 1])
                values.append(ratio[:, (1 << (d - 1 - k)) + (1 << (d - 1 - m))])
    if not starts:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    start, end, value = np.concatenate(starts), np.concatenate(ends), np.concatenate(values)
    keys, inverse, count = np.unique(start // 2 * model.num_edges + end // 2, return_inverse=True, return_counts=True)
    # Parallel edges meet at both ends; others have an end each of which nothing else is known.
    alone = count[inverse] == 1
    value = value + np.where(alone, halves[start ^ 1] + halves[end ^ 1], 0.0)
    total = np.zeros(len(keys))
    np.add.at(total, inverse, value)
    return keys // model.num_edges, keys % model.num_edges, total


def _log_sum_of_products(logs: FloatArray, first: IntArray, second: IntArray) -> float:
    """log Σ_{e<f} exp(logs_e + logs_f) without the pairs listed, first < second in ascending order of `first`."""
    peak = float(logs.max())
    if peak == -np.inf:
        return -np.inf
    weights = np.exp(logs - peak)
    rows = max(1, _CHUNK // len(logs))
    total = 0.0
    for low in range(0, len(logs), rows):
        kept = np.arange(low, min(low + rows, len(logs)))
        allowed = np.arange(len(logs)) > kept[:, None]
        listed = slice(*np.searchsorted(first, [low, low + rows]))
        allowed[first[listed] - low, second[listed]] = False
        total += float(weights[kept] @ (allowed @ weights))
    with np.errstate(divide="ignore"):
        return 2 * peak + float(np.log(total))


def _log_sum(logs: FloatArray) -> float:
    peak = float(logs.max())
    return peak + float(np.log(np.exp(logs - peak).sum()))
