"""Exact solvers in compiled code, as a kernel; among them frontier elimination on open-boundary grids.

That is the transfer matrix, one site at a time. The frontier holds the 2^C joint states of C spins: of the row that is
being added up to the present column, of the row above beyond it. One site costs two multiplications and an addition for
each state. After every row the frontier F_r is kept; on the way back B_r joins it, and F_r B_r is the joint
distribution of the whole row r.

The sums are plain ones of positive numbers, so nothing cancels; what could go wrong is underflow, which strong
couplings bring. After every row the largest entry is made 1, and the smallest is looked at: an entry can only have lost
something below 2.2e-308, so while all stay above 1e-280 nothing of weight is lost. If one falls lower, bucket
elimination answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spinbench.backends.numba.exact import grid_kernels
from spinbench.backends.numba.exact.tree import CompiledTree
from spinbench.backends.numba.kernel_cache import compile_seconds
from spinbench.methods.exact_kernel import ExactKernel
from spinbench.reference import NUMPY_SOLVERS, Solvers
from spinbench.reference.network import FloatArray
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError, Solver

# A frontier entry below this may have lost digits to underflow, and the answer is refused.
_FLOOR = 1e-280
# Seconds from which `CompiledGrid` predicts its time. On grids of 10 to 22 columns measured over predicted time is 0.6
# to 1.4 (Numba 0.68, a Xeon); the last number is the cost of newly allocated memory.
CALL_SECONDS, SITE_SECONDS = 4e-5, 3e-7
LOG_Z_ENTRY_SECONDS, ENTRY_SECONDS, FRONTIER_SECONDS = 4e-10, 7e-10, 8e-9
_TOO_STRONG = "its couplings are too strong for plain sums in float64"


class Sweep(NamedTuple):
    """What the pass down over all rows leaves.

    Attributes:
        coefficients: (R, C, 2, 2, 2) [row, column, left spin, new spin, old spin].
        fronts: (R + 1, 2^C) the frontier after each row, or the last one alone.
        copy: work.
    """

    coefficients: FloatArray
    fronts: FloatArray
    copy: FloatArray


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
        self.seconds = self.predict_seconds(marginals=True)

    @classmethod
    def build(cls, problem: Problem) -> Grid:
        """Applies to grids numbered row by row, or complete ones in any numbering."""
        return cls(problem)

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the states of each site's frontier, and with marginals by the frontiers that are kept."""
        states = 2.0 ** min(self.width, 1000)
        entries, kept = self.site.size * states, self.rows * states
        seconds = SITE_SECONDS * self.site.size + (ENTRY_SECONDS if marginals else LOG_Z_ENTRY_SECONDS) * entries
        return CALL_SECONDS + seconds + (FRONTIER_SECONDS * kept if marginals else 0.0)

    def memory(self, *, marginals: bool) -> int:
        """The frontiers of all rows, and a few more."""
        frontiers = self.rows + 2 if marginals else 1
        return 8 * ((frontiers + 1) * (1 << self.width) + grid_kernels.copy_size(self.width))

    def fallbacks(self) -> Iterator[Solver]:
        """Bucket elimination."""
        tree = CompiledTree.build(self.problem)
        yield tree
        yield from tree.fallbacks()

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all rows, then backward for marginals."""
        log_z, sweep = self._forward(keep=marginals)
        if not marginals:
            return log_z, None
        both, back = np.empty(2 * self.site.size), np.empty(2**self.width)
        if not grid_kernels.backward(self.site, *sweep, back, both, _FLOOR):
            raise PrecisionError(_TOO_STRONG)
        return log_z, both

    def _forward(self, *, keep: bool) -> tuple[float, Sweep]:
        pairwise = self.problem.pairwise
        sweep = Sweep(
            np.empty((self.rows, self.width, 2, 2, 2)),
            np.empty((self.rows + 1 if keep else 1, 2**self.width)),
            np.empty(grid_kernels.copy_size(self.width)),
        )
        model = pairwise.biases, pairwise.edges, pairwise.couplings
        log_z: float = grid_kernels.forward(self.site, *model, *sweep, _FLOOR)
        if math.isnan(log_z):
            raise PrecisionError(_TOO_STRONG)
        return pairwise.constant + log_z, sweep


class NumbaExactKernel(ExactKernel):
    """Compiled solvers wherever there is one."""

    solvers = Solvers(
        {**NUMPY_SOLVERS.kinds, "grid": Grid, "bucket_tree": CompiledTree},
        compiled_from=0,
        nothing=1e-4,
        loading_seconds=compile_seconds,
    )
