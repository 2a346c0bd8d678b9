"""Frontier elimination (the transfer matrix, one site at a time) on open-boundary grids.

The frontier holds the 2^C joint states of C spins: of the row that is being added up to the present column, of the
row above beyond it. One site costs two multiplications and an addition for each state. After every row the frontier
F_r is kept; on the way back B_r joins it, and F_r B_r is the joint distribution of the whole row r.

The sums are plain ones of positive numbers, so nothing cancels; what could go wrong is underflow, which strong
couplings bring. After every row the largest entry is made 1, and the smallest is looked at: an entry can only have lost
something below 2.2e-308, so while all stay above 1e-280 nothing of weight is lost. If one falls lower, bucket
elimination answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spinbench.backends.numba.exact import grid_kernels
from spinbench.backends.numba.exact.tree import CompiledTree
from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError, Solver

_FLOOR = 1e-280
_TOO_STRONG = "its couplings are too strong for plain sums in float64"


class Grid(Solver):
    """Binary pairwise models on an R x C grid with open boundary, any fields and couplings.

    Samples are left to bucket elimination, which on wide grids takes less time for them than a way back would.
    """

    name = "grid"
    backend = "numba"
    can_sample = False

    width: int

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.site = problem.sites
        self.rows, self.width = self.site.shape
        self.seconds = 4e-5 + 1e-6 * self.site.size + 5e-10 * self.site.size * 2.0**self.width

    @classmethod
    def build(cls, problem: Problem) -> Grid:
        """Applies to grids numbered row by row, or complete ones in any numbering."""
        return cls(problem)

    def memory(self, *, marginals: bool) -> int:
        """The frontiers of all rows, and a few more."""
        kept = self.rows + 2 if marginals else 1
        return 8 * ((kept + 1) * (1 << self.width) + grid_kernels.copy_size(self.width))

    def fallbacks(self) -> Iterator[Solver]:
        """Bucket elimination."""
        tree = CompiledTree.build(self.problem)
        yield tree
        yield from tree.fallbacks()

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Down over all rows, then up again for marginals."""
        coefficients, log_scale = site_factors(self.site, self.problem.pairwise)
        fronts = np.empty((self.rows + 1 if marginals else 1, 2**self.width))
        copy = np.empty(grid_kernels.copy_size(self.width))
        log_sum: float = grid_kernels.forward(coefficients, fronts, copy, _FLOOR)
        if math.isnan(log_sum):
            raise PrecisionError(_TOO_STRONG)
        if not marginals:
            return log_scale + log_sum, None
        both, back = np.empty(2 * self.site.size), np.empty(2**self.width)
        if not grid_kernels.backward(self.site, coefficients, fronts, copy, back, both, _FLOOR):
            raise PrecisionError(_TOO_STRONG)
        return log_scale + log_sum, both


def site_factors(site: IntArray, pairwise: Pairwise) -> tuple[FloatArray, float]:
    """The factors of the sites in the ±1 form h·σ + Σ J σσ, the largest of each 1.

    Args:
        site: (R, C), the variables of the sites.
        pairwise: the model.

    Returns:
        (R, C, 2, 2, 2) [row, column, left spin, to, from], and the log of all that was taken out.
    """
    ends = np.argsort(site.ravel())[pairwise.edges]
    below = np.abs(ends[:, 1] - ends[:, 0]) == site.shape[1]
    beside = np.zeros((2, site.size))
    beside[below.astype(np.int64), ends.max(axis=1)] = pairwise.couplings / 4
    left, up = beside.reshape(2, *site.shape, 1, 1, 1)
    field, spins = pairwise.fields[site][..., None, None, None], np.array([-1.0, 1.0])
    largest = np.abs(field) + np.abs(left) + np.abs(up)
    logs = spins[:, None] * (field + left * spins[:, None, None] + up * spins) - largest
    return np.exp(logs), pairwise.spin_constant + float(largest.sum())
