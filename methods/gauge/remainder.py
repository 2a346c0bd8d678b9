"""The last terms of equation (9), exactly, where the graph of the edges that they leave free is absorbed.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017: Z = Π_a f_{a,G}(0) + Σ_i Z_i, where Z_i sums the
states in which e_i is the first edge that is 1. The first summand and the Z_i with i >= k make up the partition
function of the model with the edges before k pinned to 0. Nodes of degree 1 and 2 are absorbed in the terms that are
bounded one by one, too, so that nothing is summed here that would not be summed there.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.forney.contraction import absorption
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]


class Remainder(NamedTuple):
    """Of M gauges of one graph.

    Attributes:
        first: the terms of the edges from this one on are summed; those before it are not.
        log_sums: (M,) their sum with the term of x = 0, without the models' constants.
    """

    first: int
    log_sums: FloatArray


def remainder(model: ForneyModel, tables: Sequence[FloatArray]) -> Remainder:
    """From gauged tables (M, n, 2**d) a degree group, non-negative.

    Args:
        model: gives the graph; its tables and its constant are not used.
        tables: of M models.
    """
    free = _first_absorbed(model)
    parts = [_log_sum(model, tables, free)]
    if free:  # the term of the edge before leaves the same graph free
        parts.append(_log_sum(model, tables, free, one=free - 1))
    return Remainder(max(free - 1, 0), np.logaddexp.reduce(parts))


def _first_absorbed(model: ForneyModel) -> int:
    """The smallest k such that the edges from k on alone are a graph that is absorbed to nothing."""
    low, high = 0, model.num_edges
    while low < high:
        middle = (low + high) // 2
        _, left = absorption(_free_slots(model, middle))
        low, high = (middle + 1, high) if left else (low, middle)
    return low


def _free_slots(model: ForneyModel, free: int) -> dict[int, list[int]]:
    """{node: its edges from `free` on}."""
    return {a: [e for e in slots if e >= free] for a, slots in enumerate(model.incident)}


def _log_sum(model: ForneyModel, tables: Sequence[FloatArray], free: int, one: int | None = None) -> FloatArray:
    """(M,) log Σ over the edges from `free` on, those before it at 0 but for `one`, which is at 1."""
    slots = _free_slots(model, free)
    at: dict[int, FloatArray] = {}
    for group, rows in zip(model.groups, tables, strict=True):
        for k, a in enumerate(group.nodes.tolist()):
            index = tuple(slice(None) if e >= free else int(e == one) for e in model.incident[a])
            at[a] = rows[:, k].reshape(-1, *(2,) * group.degree)[:, *index]
    log_scale = np.zeros(len(tables[0]))
    for kept, absorbed in absorption(slots)[0]:
        shared = set(slots[kept]) & set(slots[absorbed])
        left = [e for e in slots[kept] + slots[absorbed] if e not in shared]
        merged = _product(at[kept], slots[kept], at.pop(absorbed), slots.pop(absorbed), left)
        peak = merged.max(axis=tuple(range(1, merged.ndim)))
        at[kept], slots[kept] = merged / np.where(peak > 0, peak, 1.0).reshape(-1, *(1,) * len(left)), left
        log_scale += np.log(np.where(peak > 0, peak, 1.0))
    with np.errstate(divide="ignore"):
        return np.asarray(log_scale + sum(np.log(table) for table in at.values()))


def _product(first: FloatArray, own: list[int], second: FloatArray, other: list[int], left: list[int]) -> FloatArray:
    """The product of two tables (M, 2, ..., 2), summed over the edges that are not left."""
    letter = dict(zip(dict.fromkeys(own + other), string.ascii_lowercase, strict=False))
    one, two, out = ("".join(letter[e] for e in edges) for edges in (own, other, left))
    return np.asarray(np.einsum(f"...{one},...{two}->...{out}", first, second))
