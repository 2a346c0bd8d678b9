"""The Kac-Ward determinant: log Z of planar Ising models without field, with any couplings.

Kac and Ward, Phys. Rev. 88, 1332 (1952); Kager, Lis, Meester, "The signed loop approach to the Ising model",
J. Stat. Phys. 152, 353 (2013), eq. 1.4: with x = tanh J and Λ over the directed edges of a straight-line drawing,
Λ[d, f] = x_f exp(i turn(d, f) / 2) where f starts at the end of d and is not d backwards,
Z = 2^N Π cosh J √det(1 - Λ). All marginals are 1/2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.foundation.threads import one_blas_thread
from spinbench.reference.grid_sites import grid_sites
from spinbench.reference.network import FloatArray, Pairwise
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import PrecisionError, Solver, binary_marginals

if TYPE_CHECKING:
    from scipy import sparse

_TOLERANCE = 1e-9


class KacWard(Solver):
    """Planar graphs, zero field (a = -½ W 1), any couplings that float64 can resolve.

    Strong frustrated couplings make 1 - Λ nearly singular, as Z / Π cosh J becomes exponentially small. The error
    of the log determinant is then up to ε ‖(1 - Λ)⁻¹‖; more than 1e-9 of log Z is refused.
    """

    name = "kac_ward"
    can_sample = False
    width = None

    def __init__(self, pairwise: Pairwise, position: FloatArray) -> None:
        self.pairwise = pairwise
        self.position = position
        count = len(pairwise.edges) + 1
        self.seconds = 2e-3 + 2e-6 * count * math.log2(count)

    @classmethod
    def build(cls, problem: Problem) -> KacWard:
        """Applies to grids as they lie, and to other planar graphs by a straight-line drawing of NetworkX."""
        pairwise = problem.pairwise
        if pairwise.fields.any():
            v = int(np.flatnonzero(pairwise.fields)[0])
            raise NotApplicableError(
                f"zero field (a = -½ W 1), and here variable {v} has the field {pairwise.fields[v]:.3g} in the ±1 form"
            )
        return cls(pairwise, _drawing(pairwise))

    def memory(self, *, marginals: bool) -> int:
        """A guess at the fill of a planar LU factorisation, n log n entries."""
        directed = 2 * len(self.pairwise.edges) + 1
        return 24 * 16 * directed * max(1, directed.bit_length()) + 64 * self.pairwise.size

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """A sparse LU factorisation.

        Raises:
            PrecisionError: float64 does not hold the determinant.
        """
        log_z = self._log_z()
        return log_z, binary_marginals(np.full(self.pairwise.size, 0.5)) if marginals else None

    def _log_z(self) -> float:
        strength = np.abs(self.pairwise.couplings) / 4
        log_cosh = strength + np.log1p(np.exp(-2 * strength)) - math.log(2)
        log_z = self.pairwise.size * math.log(2) + math.fsum(log_cosh) + self.pairwise.spin_constant
        if not len(strength):
            return log_z
        with one_blas_thread():
            log_det, error = _log_determinant(_loop_matrix(self.pairwise, self.position))
        log_z += log_det / 2
        if not error / 2 <= _TOLERANCE * max(1.0, abs(log_z)):
            raise PrecisionError(
                f"its couplings (up to |J| = {strength.max():.3g}) are too strong for the Kac-Ward determinant in "
                f"float64, whose log may be wrong by {error:.1g}"
            )
        return log_z


def _drawing(pairwise: Pairwise) -> FloatArray:
    """(N, 2) positions of a straight-line drawing without crossings."""
    site = grid_sites(pairwise)
    if site is not None:
        position = np.empty((pairwise.size, 2))
        position[site.ravel()] = np.argwhere(np.ones(site.shape, dtype=bool))
        return position
    refusal = NotApplicableError("a planar graph, and this model's is not")
    if pairwise.size >= 3 and len(pairwise.edges) > 3 * pairwise.size - 6:
        raise refusal
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(pairwise.size))
    graph.add_edges_from(pairwise.edges.tolist())
    found: tuple[bool, Any] = nx.check_planarity(graph)
    if not found[0]:
        raise refusal
    drawn: dict[int, tuple[int, int]] = nx.combinatorial_embedding_to_pos(found[1])
    return np.array([drawn[v] for v in range(pairwise.size)], dtype=np.float64)


def _loop_matrix(pairwise: Pairwise, position: FloatArray) -> sparse.csc_array:
    """1 - Λ over the 2E directed edges; edge k is k one way and k + E the other."""
    from scipy import sparse

    count = len(pairwise.edges)
    tail, head = np.concatenate([pairwise.edges, pairwise.edges[:, ::-1]]).T
    way = position[head] - position[tail]
    angle = np.arctan2(way[:, 1], way[:, 0])
    leaving = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[leaving], np.arange(pairwise.size + 1))
    degree = np.diff(first)[head]
    d = np.repeat(np.arange(2 * count), degree)
    within = np.arange(len(d)) - np.repeat(np.cumsum(degree) - degree, degree)
    f = leaving[first[head[d]] + within]
    onward = f != (d + count) % (2 * count)
    d, f = d[onward], f[onward]
    turn = (angle[f] - angle[d] + np.pi) % (2 * np.pi) - np.pi
    values = -np.tanh(pairwise.couplings / 4)[f % count] * np.exp(0.5j * turn)
    diagonal = np.arange(2 * count)
    rows, columns = np.concatenate([diagonal, d]), np.concatenate([diagonal, f])
    entries = np.concatenate([np.ones(2 * count, dtype=np.complex128), values])
    return sparse.csc_array((entries, (rows, columns)), shape=(2 * count, 2 * count))


def _log_determinant(matrix: sparse.csc_array) -> tuple[float, float]:
    """log |det| and a bound on its error (infinite if the matrix is singular)."""
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    try:
        factors = splu(matrix)
    except RuntimeError:  # exactly singular
        return -math.inf, math.inf
    solve: Any = factors.solve
    pivots = np.abs(factors.U.diagonal())
    inverse = LinearOperator(
        matrix.shape,
        matvec=solve,
        rmatvec=lambda b: solve(b, "H"),
        matmat=solve,
        dtype=np.complex128,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # signs of subnormal entries, which weigh nothing
        norm = float(onenormest(inverse, t=1))
    return math.fsum(np.log(pivots)), norm * float(np.finfo(np.float64).eps)
