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
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spinbench.reference.compiled import kernels
from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import Solver, binary_marginals, draw

_FLOOR = 1e-280

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Layout:
    """A model on an R x C grid with C <= R.

    Attributes:
        site: (R, C) int64, the variable at each site.
        fields: (R, C) h of the ±1 form.
        left: (R, C) J to the left neighbour, zero in column 0.
        up: (R, C) J to the neighbour above, zero in row 0.
    """

    site: IntArray
    fields: FloatArray
    left: FloatArray
    up: FloatArray


def grid_layout(pairwise: Pairwise) -> Layout | None:
    """The grid that a model's edges form: numbered row by row, edges missing or not, or in any order if complete."""
    layout = _row_major(pairwise)
    if layout is None:
        layout = _any_numbering(pairwise)
    if layout is None or layout.site.shape[1] <= layout.site.shape[0]:
        return layout
    return Layout(layout.site.T, *map(np.transpose, (layout.fields, layout.up, layout.left)))


def _row_major(pairwise: Pairwise) -> Layout | None:
    n, (first, second) = pairwise.size, pairwise.edges.T
    steps = second - first
    short = steps == 1
    long = steps[~short]
    if long.size == 0 or long.size == steps.size or (long != long[0]).any():
        return None
    columns = int(long[0])
    if n % columns or (second[short] % columns == 0).any():
        return None
    couplings = np.zeros((2, n))
    couplings[0, second[short]] = pairwise.couplings[short]
    couplings[1, second[~short]] = pairwise.couplings[~short]
    couplings /= 4
    site = np.arange(n, dtype=np.int64)
    return Layout(*(part.reshape(-1, columns) for part in (site, pairwise.fields, *couplings)))


def _any_numbering(pairwise: Pairwise) -> Layout | None:
    site = _complete_grid(pairwise)
    if site is None:
        return None
    place = np.empty((pairwise.size, 2), dtype=np.int64)
    place[site.ravel()] = np.argwhere(np.ones(site.shape, dtype=bool))
    couplings = np.zeros((2, *site.shape))
    ends = place[pairwise.edges]  # (E, 2, [row, column])
    at = ends.max(axis=1)
    vertical = ends[:, 0, 0] != ends[:, 1, 0]
    couplings[vertical.astype(np.int64), at[:, 0], at[:, 1]] = pairwise.couplings / 4
    return Layout(site, pairwise.fields[site], couplings[0], couplings[1])


def _complete_grid(pairwise: Pairwise) -> IntArray | None:
    """Sites from the distances to two corners on one side."""
    n, count = pairwise.size, len(pairwise.edges)
    half = 2 * n - count  # R + C, while R C = n
    root = half * half - 4 * n
    if n < 4 or half <= 0 or root < 0 or math.isqrt(root) ** 2 != root:
        return None
    columns = (half - math.isqrt(root)) // 2
    rows = half - columns
    if columns < 2 or rows * columns != n or pairwise.degrees.max() > 4:
        return None
    corners = np.flatnonzero(pairwise.degrees == 2)
    if len(corners) != 4 or pairwise.degrees.min() < 2:
        return None
    neighbours = pairwise.neighbours()
    near = _distances(neighbours, int(corners[0]))
    beside = [int(v) for v in corners[1:] if near[v] == columns - 1]
    if not beside:
        return None
    far = _distances(neighbours, beside[0])
    column, odd = np.divmod(near - far + columns - 1, 2)
    row = near - column
    site = np.full((rows, columns), -1, dtype=np.int64)
    if odd.any() or min(row.min(), column.min()) < 0 or row.max() >= rows or column.max() >= columns:
        return None
    site[row, column] = np.arange(n)
    i, j = pairwise.edges.T
    adjacent = np.abs(row[i] - row[j]) + np.abs(column[i] - column[j]) == 1
    return site if adjacent.all() and (site >= 0).all() else None


def _distances(neighbours: list[list[int]], start: int) -> IntArray:
    distance = np.full(len(neighbours), 10 * len(neighbours), dtype=np.int64)
    distance[start] = 0
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for u in neighbours[v]:
            if distance[u] > distance[v] + 1:
                distance[u] = distance[v] + 1
                queue.append(u)
    return distance


class _UnderflowError(ArithmeticError):
    """Plain sums do not do for this model."""


class Grid(Solver):
    """Binary pairwise models on an R x C grid with open boundary, any fields and couplings."""

    name = "grid"

    width: int

    def __init__(self, layout: Layout, constant: float) -> None:
        self.layout = layout
        self.constant = constant
        self.rows, self.width = layout.site.shape
        total = np.abs(layout.fields) + np.abs(layout.left) + np.abs(layout.up)
        strong = 2 * float(total.sum(axis=1).max()) > 650  # a bound on the spread of log F
        per_state = 8e-9 if strong else 6e-10
        self.seconds = 1e-4 + 1e-6 * layout.site.size + 2 * layout.site.size * 2.0**self.width * per_state

    @classmethod
    def build(cls, problem: Problem) -> Grid:
        """Applies to grids numbered row by row, or complete ones in any numbering."""
        pairwise = problem.pairwise
        layout = grid_layout(pairwise)
        if layout is None:
            raise NotApplicableError("an open-boundary grid, and this model is none")
        return cls(layout, pairwise.spin_constant)

    def memory(self, *, marginals: bool) -> int:
        """The frontiers of all rows, or of all sites of a row in `sample`, and a few more."""
        kept = self.rows + self.width + 2 if marginals else 1
        copy: int = kernels("grid_columns").copy_size(self.width)
        return 8 * ((kept + 1) * (1 << self.width) + copy)

    def _with(self, action: Callable[[_Sweep], T], *, keep: bool) -> T:
        """In plain sums, or in log space where those underflow."""
        try:
            return action(_Sweep(self.layout, keep=keep, log_space=False))
        except _UnderflowError:
            return action(_Sweep(self.layout, keep=keep, log_space=True))

    def solve(self, *, marginals: bool) -> tuple[float, Sequence[FloatArray] | None]:
        """Forward over all rows, then backward for marginals."""

        def both(sweep: _Sweep) -> tuple[float, FloatArray | None]:
            return sweep.log_z, sweep.backward() if marginals else None

        log_z, ones = self._with(both, keep=marginals)
        return log_z + self.constant, None if ones is None else binary_marginals(ones)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the last row from its distribution, then each row given the one below."""
        return self._with(lambda sweep: sweep.draw(count, rng), keep=True)


class _Sweep:
    """The forward pass, made at once, and what can follow it."""

    def __init__(self, layout: Layout, *, keep: bool, log_space: bool) -> None:
        self.layout = layout
        self.log_space = log_space
        self.rows, self.columns = layout.site.shape
        self.coefficients = np.empty((self.rows, self.columns, 2, 2, 2))  # [row, column, left spin, new spin, old spin]
        kernels("grid").weigh(layout.fields, layout.left, layout.up, self.coefficients, log_space)
        taken = math.fsum((np.abs(layout.fields) + np.abs(layout.left) + np.abs(layout.up)).ravel().tolist())
        self.fronts = np.empty((self.rows + 1 if keep else 1, 2**self.columns))
        self.work = np.empty(kernels("grid_columns").copy_size(self.columns)), np.empty((self.columns, 2, 2, 2))
        log_z = kernels("grid").forward(self.coefficients, self.fronts, keep, *self.work, log_space, _FLOOR)
        if math.isnan(log_z):
            raise _UnderflowError
        self.log_z = log_z + taken - self.columns * math.log(2)  # above the first row is one of free spins

    def backward(self) -> FloatArray:
        """(N,) p(s = 1)."""
        ones, back = np.empty((self.rows, self.columns)), np.empty(2**self.columns)
        whole = kernels("grid").backward(self.coefficients, self.fronts, back, *self.work, ones, self.log_space, _FLOOR)
        if not whole:
            raise _UnderflowError
        flat = np.empty(ones.size)
        flat[self.layout.site] = ones
        return flat

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """(count, N) states."""
        column, draw_above = kernels("grid_columns").column, kernels("grid").draw_above
        last = self.fronts[-1]
        bits = draw(last if self.log_space else np.log(last), count, rng)
        states = np.empty((count, self.layout.site.size), dtype=np.int64)
        shifts = np.arange(self.columns)
        within = np.empty((self.columns, 2**self.columns))
        for r in range(self.rows - 1, -1, -1):
            states[:, self.layout.site[r]] = bits[:, None] >> shifts & 1
            if r:
                within[0] = self.fronts[r]
                for c in range(self.columns - 1):
                    within[c + 1] = within[c]
                    column(within[c + 1], 2**self.columns, 1 << c, c > 0, 0, self.coefficients[r, c], self.log_space)
                draw_above(within, self.coefficients[r], rng.random((count, self.columns)), bits, self.log_space)
        return states
