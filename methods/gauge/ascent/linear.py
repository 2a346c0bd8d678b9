"""Symmetric systems of equations with one pattern of entries throughout an ascent, as banded matrices.

Dense matrices are no faster where graphs are small, and sparse ones no faster where they are as large as these methods
go (docs/explanations/gauged-parts.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class BandSolver:
    """Solves systems with a Hessian that is given by summands.

    The lower half stands in LAPACK's band form, in an order of small width. The band is kept between calls: allocating
    it anew costs as much as half of the factorisation.
    """

    def __init__(self, rows: IntArray, columns: IntArray, owners: IntArray) -> None:
        """Where the summands stand.

        Args:
            rows, columns: (B,) coordinates of each summand.
            owners: (size,) coordinates with the same owner stay together where coordinates are put in an order.
        """
        self._rows, self._columns = rows, columns
        self._order = _bandwidth_order(owners[rows], owners[columns], owners)
        place = np.argsort(self._order)
        below = np.abs(place[rows] - place[columns])
        self._width = int(below.max(initial=0)) + 1
        self._spots = below + self._width * np.minimum(place[rows], place[columns])
        self._factor = np.empty((len(owners), self._width))

    def ascent(
        self, bends: FloatArray, slope: FloatArray, free: npt.NDArray[np.bool_], shift: float
    ) -> tuple[FloatArray, float]:
        """(A + λD)⁻¹ slope with A minus the Hessian and D = |diag A|, over the free coordinates.

        Args:
            bends: (B,) summands of the Hessian.
            slope: (size,), 0 at coordinates that are not free.
            free: (size,).
            shift: λ is the first of a rising sequence from here on for which the matrix is positive definite.

        Returns:
            The direction (size,), 0 at coordinates that are not free, and λ.
        """
        from scipy.linalg import lapack

        if not free.all():
            bends = np.where(free[self._rows] & free[self._columns], bends, 0.0)
        band = np.bincount(self._spots, -bends, self._factor.size).reshape(self._factor.shape)
        diagonal, movable = band[:, 0].copy(), free[self._order]
        # In proportion to the diagonal (Levenberg and Marquardt): coordinates have different scales.
        scale = np.maximum(np.abs(diagonal), 1e-8)
        while True:
            band[:, 0] = np.where(movable, diagonal + shift * scale, 1.0)
            np.copyto(self._factor, band)
            factor, failed = lapack.dpbtrf(self._factor.T, lower=1, overwrite_ab=1)
            if not failed:
                break
            # Cholesky's factorisation stops early at a matrix that is not positive definite: trying it is cheaper than
            # computing eigenvalues.
            shift = max(4.0 * shift, 1e-6)
        direction = np.empty_like(slope)
        direction[self._order] = lapack.dpbtrs(factor, slope[self._order], lower=1)[0]
        return direction, shift


def _bandwidth_order(rows: IntArray, columns: IntArray, owners: IntArray) -> IntArray:
    """(size,) the coordinates where neighbours are close: Cuthill and McKee's order of the owners."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    number = int(owners.max()) + 1
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(number, number)).tocsr()
    rank = np.argsort(reverse_cuthill_mckee(graph, symmetric_mode=True))
    return np.argsort(rank[owners], kind="stable")
