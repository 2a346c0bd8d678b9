"""The two views of a problem that the exact solvers work on: tables over variables, and couplings of pairs of spins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """log p(x) = constant + Σ tables + const.

    Attributes:
        cardinalities: (n,) all >= 2.
        tables: one float64 log table for each scope; scopes are ascending and not empty.
        constant: finite.
    """

    cardinalities: tuple[int, ...]
    tables: dict[Scope, FloatArray]
    constant: float


@dataclass(frozen=True, eq=False)
class Pairwise:
    """log p(s) = constant + a·s + Σ W_ij s_i s_j + const over s in {0,1}^n; edges i < j, unique, W_ij != 0."""

    biases: FloatArray
    edges: IntArray
    couplings: FloatArray
    constant: float

    @property
    def size(self) -> int:
        """n."""
        return self.biases.size

    @cached_property
    def degrees(self) -> IntArray:
        """(n,) number of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.size).astype(np.int64)

    @cached_property
    def fields(self) -> FloatArray:
        """(n,) h of the ±1 form h·σ + Σ J σσ with J = W / 4; below rounding error it is exactly zero."""
        ends, n = self.edges.ravel(), self.size
        pull = np.bincount(ends, np.repeat(self.couplings, 2), minlength=n)
        scale = np.abs(self.biases) + np.bincount(ends, np.repeat(np.abs(self.couplings), 2), minlength=n)
        h = self.biases / 2 + pull / 4
        h[np.abs(h) <= 8 * np.finfo(np.float64).eps * scale] = 0.0
        return h

    @property
    def spin_constant(self) -> float:
        """The constant of the ±1 form."""
        return self.constant + float(self.biases.sum()) / 2 + float(self.couplings.sum()) / 4

    def neighbours(self) -> list[list[int]]:
        """The adjacency list."""
        lists: list[list[int]] = [[] for _ in range(self.size)]
        for i, j in self.edges.tolist():
            lists[i].append(j)
            lists[j].append(i)
        return lists


def pairwise_of(network: Network) -> Pairwise | None:
    """The view as couplings of binary variables; None where there is a hard zero, a triple or a third state."""
    if any(k != 2 for k in network.cardinalities) or any(len(scope) > 2 for scope in network.tables):
        return None
    biases, constant = np.zeros(len(network.cardinalities)), network.constant
    edges: list[Scope] = []
    couplings: list[float] = []
    for scope, table in network.tables.items():
        if not np.isfinite(table).all():
            return None
        corner = float(table[(0,) * len(scope)])
        constant += corner
        if len(scope) == 1:
            biases[scope[0]] += table[1] - corner
            continue
        biases[scope[0]] += table[1, 0] - corner
        biases[scope[1]] += table[0, 1] - corner
        weight = float((table[1, 1] - table[1, 0]) - (table[0, 1] - table[0, 0]))
        if weight != 0:
            edges.append(scope)
            couplings.append(weight)
    return Pairwise(biases, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(couplings), constant)
