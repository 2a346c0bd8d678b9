"""Verified bounds of all terms of the sum over states, equation (9), at once.

The terms of a gauged model are models of the same graph, with edges pinned: what `bounds` does for one model is done
here for M of them. Pairs of edges stand in an (E, E) array, as the Hessians of the batch do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge.bounds import verified_rows
from spinbench.methods.gauge.members import Members
from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class _Pairs(NamedTuple):
    """Pairs of edges e < f with a common node.

    Attributes:
        first, second: (P,) half edges, one entry a common node.
        which: (P,) the pair of each entry, K in all.
        alone: (P,) whether it is the pair's only common node.
        number: K.
        distant: (E, E) 1 for e < f without a common node.
    """

    first: IntArray
    second: IntArray
    which: IntArray
    alone: npt.NDArray[np.bool_]
    number: int
    distant: FloatArray


def term_bounds(model: ForneyModel, members: Members, theta: FloatArray) -> FloatArray:
    """(M,) lower bounds on the logarithms of the terms, with one and two 1s; -inf where a gauge gives none.

    Args:
        model: gives the graph and log_constant; its tables are not used.
        members: M models of that graph, as from `pinned_members`.
        theta: (M, 2E) angles.
    """
    counted = [share > 0 for share in members.shares]
    fine, tables, slack = verified_rows(model, theta, list(members.tables), counted)
    found = np.full(len(theta), -np.inf)
    fine &= np.all([(table[..., 0] > 0).all(axis=1) for table in tables], axis=0)
    if fine.any():
        found[fine] = _multiple(model, [table[fine] for table in tables]) - slack[fine]
    return found


def _multiple(model: ForneyModel, tables: list[FloatArray]) -> FloatArray:
    """(M,) log of the terms of x with at most two 1s, from (M, n, 2**d) a degree group, positive at x = 0."""
    rows = len(tables[0])
    zero = np.full(rows, model.log_constant)
    one = np.empty((rows, 2 * model.num_edges))
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
    near = np.full((rows, 0), -np.inf)
    if pairs.number:
        with np.errstate(invalid="ignore"):
            outside = np.where(pairs.alone, one[:, pairs.first ^ 1] + one[:, pairs.second ^ 1], 0.0)
            values = np.concatenate(both, axis=1) + outside
        sums = np.zeros((pairs.number, rows))
        np.add.at(sums, pairs.which, values.T)
        near = sums.T
    scale = np.maximum(np.maximum(ratio.max(axis=1), 0.5 * near.max(axis=1, initial=-np.inf)), 0.0)
    plain = np.exp(ratio - scale[:, None])
    double = ((plain @ pairs.distant) * plain).sum(axis=1) + np.exp(near - 2.0 * scale[:, None]).sum(axis=1)
    with np.errstate(divide="ignore"):
        logs = [np.zeros(rows), scale + np.log(plain.sum(axis=1)), 2.0 * scale + np.log(double)]
    return np.asarray(zero + np.logaddexp.reduce(logs, axis=0))


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
    distant = np.triu(np.ones((edges, edges)), 1)
    distant[found // edges, found % edges] = 0.0
    return _Pairs(first, second, which, count[which] == 1, len(found), distant)
