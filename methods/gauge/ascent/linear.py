"""Symmetric systems of equations with one pattern of entries throughout an ascent, as banded matrices.

Dense matrices are no faster where graphs are small, and sparse ones no faster where they are as large as these methods
go (docs/explanations/gauged-parts.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Pattern:
    """Where the entries of a Hessian stand, and how systems with it are solved.

    A Hessian is given by its entries: those of the nodes' blocks, one after the other, then those of `extra`. Entries
    at one place are added up.

    Attributes:
        size: number of coordinates, n.
    """

    def __init__(
        self, nodes: Sequence[IntArray], owners: IntArray, extra: Sequence[tuple[IntArray, IntArray]] = ()
    ) -> None:
        """What the entries are.

        Args:
            nodes: coordinates (n, v) of the nodes' blocks.
            owners: (size,) coordinates with the same owner stay together where coordinates are put in an order.
            extra: (rows, columns) of further entries.
        """
        self.size = len(owners)
        self._coordinates = np.concatenate([index.ravel() for index in nodes])
        rows = [np.repeat(index, index.shape[1], axis=1).ravel() for index in nodes]
        columns = [np.tile(index, (1, index.shape[1])).ravel() for index in nodes]
        self._rows = np.concatenate([*rows, *(pair[0] for pair in extra)])
        self._columns = np.concatenate([*columns, *(pair[1] for pair in extra)])
        found, self._which = np.unique(self._columns * self.size + self._rows, return_inverse=True)
        self._number = len(found)
        self._diagonal = np.searchsorted(found, np.arange(self.size) * (self.size + 1))
        self._solve = _Band(found % self.size, found // self.size, owners)

    def total(self, gradients: Sequence[FloatArray]) -> FloatArray:
        """(size,) from the nodes' own gradients (n, v)."""
        return _added(self._coordinates, np.concatenate([part.ravel() for part in gradients]), self.size)

    def ascent(
        self, entries: FloatArray, slope: FloatArray, free: npt.NDArray[np.bool_], shift: float
    ) -> tuple[FloatArray, float]:
        """(A + λD)⁻¹ slope with A minus the Hessian and D = |diag A|, over the free coordinates.

        Args:
            entries: of the Hessian.
            slope: (size,), 0 at coordinates that are not free.
            free: (size,).
            shift: λ is the first of a rising sequence from here on for which the matrix is positive definite.

        Returns:
            The direction (size,), 0 at coordinates that are not free, and λ.
        """
        if not free.all():
            entries = np.where(free[self._rows] & free[self._columns], entries, 0.0)
        matrix = _added(self._which, -entries, self._number)
        diagonal = matrix[self._diagonal]
        scale = np.maximum(np.abs(diagonal), 1e-8)
        while True:
            matrix[self._diagonal] = np.where(free, diagonal + shift * scale, 1.0)
            direction = self._solve(matrix, slope)
            if direction is not None:
                return direction, shift
            shift = max(4.0 * shift, 1e-6)


def _added(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(places, values, size), dtype=np.float64)


def _order(rows: IntArray, columns: IntArray, owners: IntArray) -> IntArray:
    """(n,) the place of each coordinate where neighbours are close: Cuthill and McKee's order of the owners."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    number = int(owners.max()) + 1
    index = owners[rows], owners[columns]
    graph = coo_array((np.ones(len(rows)), index), shape=(number, number)).tocsr()
    rank = np.empty(number, dtype=np.int64)
    rank[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(number)
    place = np.empty(len(owners), dtype=np.int64)
    place[np.argsort(rank[owners], kind="stable")] = np.arange(len(owners))
    return place


class _Band:
    """Solves from the entries of a symmetric matrix, in order of columns, then rows, and a right hand side.

    The lower half stands in LAPACK's band form, (width, n), in an order of small width.

    The band is kept between calls: allocating it anew costs as much as half of the factorisation.
    """

    def __init__(self, rows: IntArray, columns: IntArray, owners: IntArray) -> None:
        place = _order(rows, columns, owners)
        below = place[rows] - place[columns]
        width = int(below.max()) + 1
        self._kept = np.flatnonzero(below >= 0)
        self._flat = (below + width * place[columns])[self._kept]
        self._place = place
        self._matrix = np.empty((width, len(place)), order="F")

    def __call__(self, entries: FloatArray, right: FloatArray) -> FloatArray | None:
        """None where the matrix is not positive definite."""
        from scipy.linalg import lapack

        self._matrix.fill(0.0)
        self._matrix.T.reshape(-1)[self._flat] = entries[self._kept]
        factor, failed = lapack.dpbtrf(self._matrix, lower=1, overwrite_ab=1)
        if failed:
            return None
        ordered = np.empty_like(right)
        ordered[self._place] = right
        return np.asarray(lapack.dpbtrs(factor, ordered, lower=1)[0][self._place])
