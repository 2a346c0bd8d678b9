"""Models whose sums are known: the uniform complete graph and Kaufman's torus."""

from __future__ import annotations

import math

import numpy as np

from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import Solver, binary_marginals, draw


class CurieWeiss(Solver):
    """The complete graph with one bias and one coupling: a state weighs what its number of ones says."""

    name = "curie_weiss"
    width = None

    def __init__(self, pairwise: Pairwise) -> None:
        self.size = pairwise.size
        self.bias, self.coupling = float(pairwise.biases[0]), float(pairwise.couplings[0])
        self.constant = pairwise.constant
        self.seconds = 1e-4 + 1e-7 * self.size

    @classmethod
    def build(cls, problem: Problem) -> CurieWeiss:
        """Applies to three variables or more, all alike."""
        pairwise = problem.pairwise
        n = pairwise.size
        if n < 3 or len(pairwise.edges) != n * (n - 1) // 2 or np.ptp(pairwise.couplings) or np.ptp(pairwise.biases):
            raise NotApplicableError("a complete graph with one bias and one coupling, and this model differs")
        return cls(pairwise)

    def memory(self, *, marginals: bool) -> int:
        """A few numbers a variable."""
        return 8 * 16 * (self.size + 1)

    def _log_weights(self) -> FloatArray:
        """(N + 1,) log of the summed weight of the states with k ones."""
        from scipy.special import gammaln

        k = np.arange(self.size + 1, dtype=np.float64)
        ways = gammaln(self.size + 1.0) - gammaln(k + 1) - gammaln(self.size - k + 1)
        return np.asarray(ways + self.bias * k + self.coupling * k * (k - 1) / 2)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Sums over the number of ones."""
        logs = self._log_weights()
        peak = float(logs.max())
        weights = np.exp(logs - peak)
        total = float(weights.sum())
        log_z = self.constant + peak + math.log(total)
        if not marginals:
            return log_z, None
        mean = float(weights @ np.arange(self.size + 1)) / total / self.size
        return log_z, binary_marginals(np.full(self.size, mean))

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the number of ones, then which."""
        ones = draw(self._log_weights(), count, rng)
        ranks = rng.random((count, self.size)).argsort(axis=1).argsort(axis=1)
        return np.asarray(ranks < ones[:, None], dtype=np.int64)


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
            if n % columns == 0 and np.array_equal(pairwise.edges, _torus_edges(n // columns, columns)):
                break
        else:
            raise refusal
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


def _torus_edges(rows: int, columns: int) -> IntArray:
    site = np.arange(rows * columns).reshape(rows, columns)
    pairs = [np.stack([site, np.roll(site, -1, axis=axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    edges = np.sort(np.concatenate(pairs), axis=1)
    return np.asarray(edges[np.lexsort((edges[:, 1], edges[:, 0]))], dtype=np.int64)


def kaufman_log_z(rows: int, columns: int, coupling: float) -> float:
    """log Σ_σ exp(K Σ σσ') on the torus, K > 0.

    With cosh γ_l = cosh 2K coth 2K - cos(π l / n) and γ_0 = 2K + log tanh K,
    Z = ½ (2 sinh 2K)^{mn/2} [Π 2cosh(mγ_{2r+1}/2) + Π 2sinh(mγ_{2r+1}/2) + Π 2cosh(mγ_{2r}/2) + Π 2sinh(mγ_{2r}/2)],
    the last term with the sign of γ_0 (negative above the critical temperature).
    """
    double = math.sinh(2 * coupling) if coupling < 350 else math.inf
    angle = np.pi * np.arange(2 * columns) / columns
    if double < math.inf:
        # cosh γ - 1 without cancellation: sinh 2K + 1/sinh 2K - 2 is a square
        above = (double - 1) ** 2 / double + 2 * np.sin(angle / 2) ** 2
        gamma = np.log1p(above + np.sqrt(above * (above + 2)))
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
    signs = np.array([1.0, 1.0, 1.0, -1.0 if zero < 0 else 1.0])
    peak = float(terms.max())
    total = float(signs @ np.exp(terms - peak))
    return rows * columns * log_double / 2 + peak + math.log(total) - math.log(2)
