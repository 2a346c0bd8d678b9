"""What Forney models are made of: nodes by degree, and readouts of source variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Readout:
    """How the marginal of a source variable follows from the belief of one node.

    p(s = 1) = Σ_x conditional[x] b_node(x); the node -1 stands for none, and conditional is p(s = 1) itself.

    Attributes:
        node: index of a node, or -1.
        conditional: (2,) * degree float64 of p(s = 1 | x_node); shape () without a node.
    """

    node: int
    conditional: FloatArray


@dataclass(frozen=True, eq=False)
class DegreeGroup:
    """All n nodes of one degree d, as arrays for batched computations.

    Tables are flat: entry Σ_k x_k 2^(d-1-k), so the first edge of a node varies slowest (C order).

    Attributes:
        degree: d >= 1.
        nodes: (n,) indices of the nodes, ascending.
        edges: (n, d) edge of each slot.
        sides: (n, d) 0 where the node is the edge's first end, 1 where it is the second.
        log_tables: (n, 2**d) logarithms of the tables, -inf at zeros, 0 the largest.
    """

    degree: int
    nodes: IntArray
    edges: IntArray
    sides: IntArray
    log_tables: FloatArray

    @cached_property
    def tables(self) -> FloatArray:
        """(n, 2**d) tables, the largest entry of each 1; 0 below the smallest normal number, about e^-708.

        What is smaller still has no more than a few bits, of which a bound would be off by as much as they round.
        """
        tables = np.exp(self.log_tables)
        return np.where(tables < np.finfo(np.float64).tiny, 0.0, tables)

    @cached_property
    def own(self) -> IntArray:
        """(n, d) index of the node's own end in an array of 2E half edges, 2·edge + side."""
        return 2 * self.edges + self.sides

    @cached_property
    def other(self) -> IntArray:
        """(n, d) index of the opposite end, 2·edge + 1 - side."""
        return 2 * self.edges + 1 - self.sides


@dataclass(frozen=True, eq=False)
class ReadoutGroup:
    """The readouts at the nodes of one degree group: m source variables.

    Attributes:
        variables: (m,) source variables.
        positions: (m,) row of the group that carries each.
        conditionals: (m, 2**d) p(s = 1 | x_node).
    """

    variables: IntArray
    positions: IntArray
    conditionals: FloatArray


def by_state(p: FloatArray, cardinalities: Sequence[int]) -> FloatArray | list[FloatArray]:
    """p(s_v = 1) (N,) of variables of at most two states as `Estimate.marginals` holds them."""
    if all(k == 2 for k in cardinalities):
        return p
    return [np.array([1 - one, one]) if k == 2 else np.ones(1) for one, k in zip(p, cardinalities, strict=True)]
