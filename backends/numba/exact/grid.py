"""Frontier elimination (the transfer matrix, one site at a time) on open-boundary grids.

The frontier holds the 2^C joint states of C spins: of the row that is being added up to the present column, of the
row above beyond it. One site costs two multiplications and an addition for each state. After every row the frontier
F_r is kept; on the way back B_r joins it, and F_r B_r is the joint distribution of the whole row r.

The sums are plain ones of positive numbers, so nothing cancels; what could go wrong is underflow, which strong
couplings bring. After every row the largest entry is made 1, and the smallest is looked at: an entry can only have lost
something below 2.2e-308, so while all stay above 1e-280 nothing of weight is lost. If one falls lower, all is done
again in log space: many times slower, and right for any couplings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from spinbench.backends.numba.exact import grid_columns, grid_kernels
from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver, draw

_FLOOR = 1e-280

T = TypeVar("T")


class _UnderflowError(ArithmeticError):
    """Plain sums do not do for this model."""


class Grid(Solver):
    """Binary pairwise models on an R x C grid with open boundary, any fields and couplings."""

    name = "grid"
    backend = "numba"

    width: int

    def __init__(self, site: IntArray, pairwise: Pairwise) -> None:
        self.site = site
        self.pairwise = pairwise
        self.rows, self.width = site.shape
        strength = float(np.abs(pairwise.biases).sum() + 1.5 * np.abs(pairwise.couplings).sum())
        per_state = 8e-9 if strength > 650 * self.rows else 6e-10  # beyond, sums may have to be in log space
        self.seconds = 4e-5 + 1e-6 * site.size + 2 * site.size * 2.0**self.width * per_state

    @classmethod
    def build(cls, problem: Problem) -> Grid:
        """Applies to grids numbered row by row, or complete ones in any numbering."""
        return cls(problem.sites, problem.pairwise)

    def memory(self, *, marginals: bool) -> int:
        """The frontiers of all rows, or of all sites of a row in `sample`, and a few more."""
        kept = self.rows + self.width + 2 if marginals else 1
        return 8 * ((kept + 1) * (1 << self.width) + grid_columns.copy_size(self.width))

    def _with(self, action: Callable[[_Sweep], T], *, keep: bool) -> T:
        """In plain sums, or in log space where those underflow."""
        try:
            return action(_Sweep(self.site, self.pairwise, keep=keep, log_space=False))
        except _UnderflowError:
            return action(_Sweep(self.site, self.pairwise, keep=keep, log_space=True))

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all rows, then backward for marginals."""

        def both(sweep: _Sweep) -> tuple[float, FloatArray | None]:
            return sweep.log_z, sweep.backward() if marginals else None

        return self._with(both, keep=marginals)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the last row from its distribution, then each row given the one below."""
        return self._with(lambda sweep: sweep.draw(count, rng), keep=True)


class _Sweep:
    """The forward pass, made at once, and what can follow it."""

    def __init__(self, site: IntArray, pairwise: Pairwise, *, keep: bool, log_space: bool) -> None:
        self.site = site
        self.log_space = log_space
        self.rows, self.columns = site.shape
        self.coefficients = np.empty((self.rows, self.columns, 2, 2, 2))  # [row, column, left spin, new spin, old spin]
        self.fronts = np.empty((self.rows + 1 if keep else 1, 2**self.columns))
        self.copy = np.empty(grid_columns.copy_size(self.columns))
        model = pairwise.biases, pairwise.edges, pairwise.couplings
        self.log_z: float = pairwise.constant + grid_kernels.forward(
            site, *model, self.coefficients, self.fronts, self.copy, log_space or None, _FLOOR
        )
        if math.isnan(self.log_z):
            raise _UnderflowError

    def backward(self) -> FloatArray:
        """(2N,) 1 - p and p of each p(s = 1)."""
        both, back = np.empty(2 * self.site.size), np.empty(2**self.columns)
        whole = grid_kernels.backward(
            self.site, self.coefficients, self.fronts, back, self.copy, both, self.log_space or None, _FLOOR
        )
        if not whole:
            raise _UnderflowError
        return both

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """(count, N) states."""
        column, draw_above = grid_columns.column, grid_kernels.draw_above
        last = self.fronts[-1]
        bits = draw(last if self.log_space else np.log(last), count, rng)
        states = np.empty((count, self.site.size), dtype=np.int64)
        shifts = np.arange(self.columns)
        within = np.empty((self.columns, 2**self.columns))
        for r in range(self.rows - 1, -1, -1):
            states[:, self.site[r]] = bits[:, None] >> shifts & 1
            if r:
                within[0] = self.fronts[r]
                for c in range(self.columns - 1):
                    within[c + 1] = within[c]
                    column(within[c + 1], 1 << c, self.coefficients[r, c], self.log_space or None)
                draw_above(within, self.coefficients[r], rng.random((count, self.columns)), bits, self.log_space)
        return states
