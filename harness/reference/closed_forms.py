"""Models whose sums are known: Kaufman's torus, and planar graphs without field.

The last by the Kac-Ward determinant, with any couplings: Kac and Ward, Phys. Rev. 88, 1332 (1952); Kager, Lis, Meester,
"The signed loop approach to the Ising model", J. Stat. Phys. 152, 353 (2013), eq. 1.4: with x = tanh J and Λ over the
directed edges of a straight-line drawing, Λ[d, f] = x_f exp(i turn(d, f) / 2) where f starts at the end of d and is not
d backwards, Z = 2^N Π cosh J √det(1 - Λ). All marginals are 1/2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.foundation.platforms import one_blas_thread
from spinbench.models.lattices import torus_edges
from spinbench.reference.network import FloatArray, Pairwise
from spinbench.reference.problem import NotApplicableError, Problem, grid_sites
from spinbench.reference.solver import PrecisionError, Solver, binary_marginals

if TYPE_CHECKING:
    from scipy import sparse

# Largest error of log Z, relative, or in nats where log Z is small.
_TOLERANCE = 1e-9
# Largest error of a log determinant: above it the error estimate itself is unreliable, however small relative to log Z.
_KNOWN = 1e-3


class Torus(Solver):
    """The m x n Ising torus (m, n >= 3) without field and with one coupling, sites numbered row by row.

    Kaufman, "Crystal statistics II", Phys. Rev. 76, 1232 (1949), eq. 77. By symmetry all marginals are 1/2.
    """

    name = "torus"
    can_sample = False
    width = None

    def __init__(self, rows: int, columns: int, coupling: float, constant: float) -> None:
        self.rows, self.columns = rows, columns
        self.coupling = coupling
        self.constant = constant
        self.seconds = 1e-4 + 1e-6 * (rows + columns)

    @classmethod
    def build(cls, problem: Problem) -> Torus:
        """Applies to ferromagnets, and to antiferromagnets with m and n even (the same Z by symmetry)."""
        pairwise = problem.pairwise
        n = pairwise.size
        refusal = NotApplicableError(
            "a torus numbered row by row with one coupling and zero field (a = -½ W 1), and this model is none"
        )
        if n < 9 or len(pairwise.edges) != 2 * n or np.ptp(pairwise.couplings) or pairwise.fields.any():
            raise refusal
        for columns in range(3, n // 3 + 1):
            if n % columns == 0 and np.array_equal(pairwise.edges, torus_edges(n // columns, columns)):
                break
        else:
            raise refusal
        # The ±1 form's coupling is K = W / 4.
        coupling = float(pairwise.couplings[0]) / 4
        if coupling < 0 and (columns % 2 or n // columns % 2):
            raise NotApplicableError("even sides where the coupling is negative, and this torus has an odd one")
        return cls(n // columns, columns, abs(coupling), pairwise.spin_constant)

    def memory(self, *, marginals: bool) -> int:
        """A few numbers a column, and the marginals."""
        return 8 * (32 * self.columns + 4 * self.rows * self.columns)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Kaufman's four terms, in logs with their signs."""
        log_z = self.constant + kaufman_log_z(self.rows, self.columns, self.coupling)
        ones = np.full(self.rows * self.columns, 0.5)
        return log_z, binary_marginals(ones) if marginals else None


def kaufman_log_z(rows: int, columns: int, coupling: float) -> float:
    """log Σ_σ exp(K Σ σσ') on the torus, K > 0.

    With cosh γ_l = cosh 2K coth 2K - cos(π l / n) and γ_0 = 2K + log tanh K,
    Z = ½ (2 sinh 2K)^{mn/2} [Π 2cosh(mγ_{2r+1}/2) + Π 2sinh(mγ_{2r+1}/2) + Π 2cosh(mγ_{2r}/2) + Π 2sinh(mγ_{2r}/2)],
    the last term with the sign of γ_0 (negative above the critical temperature).
    """
    # Z is unchanged, and 1 / sinh 2K stays finite.
    coupling = max(coupling, 1e-300)
    # sinh overflows above 710, and γ equals 2K up to rounding long before that.
    angle = np.pi * np.arange(2 * columns) / columns
    if coupling < 350:
        double = math.sinh(2 * coupling)
        # cosh γ - 1 without cancellation: sinh 2K + 1/sinh 2K - 2 is a square
        above = (double - 1) * ((double - 1) / double) + 2 * np.sin(angle / 2) ** 2
        gamma = 2 * np.arcsinh(np.sqrt(above / 2))
        log_double = math.log(2 * double)
    else:
        gamma = np.full(2 * columns, 2 * coupling)
        log_double = 2 * coupling
    zero = 2 * coupling + math.log(math.tanh(coupling))
    gamma[0] = abs(zero)
    half = rows * gamma / 2
    with np.errstate(divide="ignore"):
        cosh, sinh = half + np.log1p(np.exp(-2 * half)), half + np.log(-np.expm1(-2 * half))
    terms = np.array([cosh[1::2].sum(), sinh[1::2].sum(), cosh[::2].sum(), sinh[::2].sum()])
    signs = np.array([1.0, 1.0, 1.0, math.copysign(1.0, zero)])
    peak = float(terms.max())
    total = float(signs @ np.exp(terms - peak))
    return rows * columns * log_double / 2 + peak + math.log(total) - math.log(2)


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
        """A sparse LU factorisation; PrecisionError where float64 does not hold the determinant."""
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
        # Written as "not <=": a NaN error is refused, too.
        if not error / 2 <= min(_TOLERANCE * max(1.0, abs(log_z)), _KNOWN):
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
    # A planar graph has no more edges, by Euler's formula.
    if pairwise.size >= 3 and len(pairwise.edges) > 3 * pairwise.size - 6:
        raise refusal
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(pairwise.size))
    graph.add_edges_from(pairwise.edges.tolist())
    planarity: tuple[bool, Any] = nx.check_planarity(graph)
    if not planarity[0]:
        raise refusal
    positions: dict[int, tuple[int, int]] = nx.combinatorial_embedding_to_pos(planarity[1])
    return np.array([positions[v] for v in range(pairwise.size)], dtype=np.float64)


def _loop_matrix(pairwise: Pairwise, position: FloatArray) -> sparse.csc_array:
    """1 - Λ over the 2E directed edges; edge k is k one way and k + E the other."""
    from scipy import sparse

    count = len(pairwise.edges)
    tail, head = np.concatenate([pairwise.edges, pairwise.edges[:, ::-1]]).T
    way = position[head] - position[tail]
    angle = np.arctan2(way[:, 1], way[:, 0])
    edge = np.arange(2 * count)
    begins = sparse.csr_array((np.ones(2 * count), (tail, edge)), shape=(pairwise.size, 2 * count))
    follows = begins[head].tocoo()
    d, f = follows.row, follows.col
    onward = f != (d + count) % (2 * count)
    d, f = d[onward], f[onward]
    # Angles between -π and π; the half turn, which goes back along the edge, is excluded.
    turn = (angle[f] - angle[d] + np.pi) % (2 * np.pi) - np.pi
    values = -np.tanh(pairwise.couplings / 4)[f % count] * np.exp(0.5j * turn)
    loops = sparse.csc_array((values, (d, f)), shape=(2 * count, 2 * count))
    return sparse.csc_array(sparse.eye_array(2 * count) + loops)


def _log_determinant(matrix: sparse.csc_array) -> tuple[float, float]:
    """log |det| and a bound on its error (infinite if the matrix is singular)."""
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    try:
        factors = splu(matrix)
    except RuntimeError:  # the matrix is exactly singular
        return -math.inf, math.inf
    solve: Any = factors.solve
    # L has a unit diagonal, and permutations have determinant ±1.
    pivots = np.abs(factors.U.diagonal())
    adjoint: dict[str, Any] = {"rmatvec": lambda b: solve(b, "H"), "dtype": np.complex128}
    inverse = LinearOperator(matrix.shape, matvec=solve, matmat=solve, **adjoint)
    # The signs of subnormal entries overflow; such entries contribute nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(onenormest(inverse, t=1))
    return math.fsum(np.log(pivots)), norm * float(np.finfo(np.float64).eps)
