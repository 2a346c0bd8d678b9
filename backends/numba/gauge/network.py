"""Forney models as flat arrays, which compiled loops read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Network(NamedTuple):
    """n nodes in the order of their degree groups.

    Attributes:
        degree: (n,).
        slot: (n,) where the slots of each node begin.
        own: half edges 2·edge + side of all slots.
        table: (n,) where the entries of each node's table begin, 2**degree of them, the first slot slowest.
    """

    degree: IntArray
    slot: IntArray
    own: IntArray
    table: IntArray


def network_of(model: ForneyModel) -> Network:
    """The graph of a model."""
    degree = np.repeat([g.degree for g in model.groups], [len(g.nodes) for g in model.groups]).astype(np.int64)
    own = np.concatenate([np.zeros(0, dtype=np.int64), *(g.own.ravel() for g in model.groups)])
    entries = 1 << degree
    return Network(degree, np.cumsum(degree) - degree, own, np.cumsum(entries) - entries)


def flat(tables: Sequence[FloatArray]) -> FloatArray:
    """Tables of the degree groups, one after the other."""
    return np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
