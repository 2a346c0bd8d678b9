"""The terms of G-BP-sequential as members of one batch, models of one graph with edges pinned, and their bounds.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017, equation (9): Z = Π_a f_{a,G}(0) + Σ_i Z_i, where
Z_i sums the states in which e_i is the first edge that is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.backends.jax.gauge.members import Members
from spinbench.methods.gauge.ascent.objectives import bits_of
from spinbench.methods.gauge.bounds import verified_rows
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]


def pinned_members(model: ForneyModel, tables: Sequence[FloatArray], count: int) -> Members:
    """The first `count` models of (9): member i has edges before i at 0 and edge i at 1, which becomes its label 0."""
    fixed = np.tri(count, model.num_edges, dtype=bool)  # [i, e]: e <= i
    found: list[FloatArray] = []
    shares: list[FloatArray] = []
    for group, table in zip(model.groups, tables, strict=True):
        d = group.degree
        entries = np.arange(2**d)
        places = 1 << np.arange(d - 1, -1, -1)
        flips = ((group.edges[None] == np.arange(count)[:, None, None]) * places).sum(axis=2)  # (count, n)
        found.append(np.take_along_axis(table[None], entries ^ flips[:, :, None], axis=2))
        ones = bits_of(d).T.astype(bool)  # (2**d, d)
        counted = ~(ones & fixed[:, group.edges][:, :, None, :]).any(axis=3)
        shares.append(counted / counted.sum(axis=2, keepdims=True))
    return Members(tuple(found), tuple(shares), np.repeat(~fixed, 2, axis=1).astype(np.float64))


def term_bounds(model: ForneyModel, members: Members, theta: FloatArray) -> FloatArray:
    """(M,) lower bounds on the logarithms of the terms, without constants; -inf where a gauge gives none.

    Args:
        model: gives the graph.
        members: M models of that graph, as from `pinned_members`.
        theta: (M, 2E) angles.
    """
    counted = [share > 0 for share in members.shares]
    fine, tables = verified_rows(model, theta, list(members.tables), counted)
    return np.where(fine, partial_sums(model, tables).multiple, -np.inf)
