"""The Gaussian integral trick: a binary pairwise model as the marginal of a density over x in R^N.

After Zhang, Sutton, Storkey and Ghahramani, "Continuous Relaxations for Discrete Hamiltonian Monte Carlo", NIPS 2012.
For p(s) ∝ exp(a·s + ½ sᵀWs), s in {0,1}^N, a diagonal D with Q = W + D > 0, b = a - d/2 and any invertible A,

    p(x|s) = N(x; AQs, AQAᵀ)        p(s_i = 1|x) = σ(α_i + b_i), independently, with α = A⁻¹x
    p(x) = |2πAQAᵀ|^(-½) exp(-½ αᵀQ⁻¹α) Π_i (1 + exp(α_i + b_i)) / Z

The printed (7) has the quadratic form's A transposed (A⁻¹Q⁻¹A⁻ᵀ for A⁻ᵀQ⁻¹A⁻¹), which is wrong unless A is symmetric;
the text after (12) has x_i - a_i - d_i/2 for the log-odds x_i + a_i - d_i/2; section 3.1 has Vs for Λ^½Vᵀs. Within a
1-of-K group the factors 1 + exp(u_i), u = α + b, become one factor Σ_i exp(u_i), and p(s|x) a softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.relaxation.diagonal import IntArray, checked_diagonal, choose, dominance, smallest_eigenvalue
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]

# A = I (α = x), A = Λ^(-½)Vᵀ with Q = VΛVᵀ (α = VΛ^½x), A = Q⁻¹ (α = Qx).
Form = Literal["identity", "harmonium", "inverse"]

# Memory limit of (N, N) arrays, four of which exist at once.
DENSE_BYTES = 512 * 2**20
# Largest ratio of padded to real entries in the table of incident edges: a single hub widens it for all variables.
MAX_PADDING = 64


def bytes_of(n: int) -> int:
    """Memory of dense arrays for n variables."""
    return 4 * 8 * n * n


class EdgeFactor(NamedTuple):
    """Q = Σ_e w_e (e_i + g_e e_j)(e_i + g_e e_j)ᵀ + diag(rest), the factorisation for diagonally dominant Q.

    With t_e = w_e (s_i + g_e s_j) + √w_e ε_e and ε standard normal, α_k = Σ_e ±t_e + rest_k s_k + √rest_k ε_k is a
    draw of N(Qs, Q).

    Attributes:
        ends: (E, 2) int64, i < j.
        weights: (E,) float64, w_e = |W_ij|.
        signs: (E,) float64, g_e = sign(W_ij).
        rest: (N,) float64, d_k - Σ_e w_e > 0.
        incident: (N, K) int64, the edges at each variable, padded with E to the largest degree K.
        incident_signs: (N, K) float64: 1 for the first end, g_e for the second, 0 for padding.
    """

    ends: IntArray
    weights: FloatArray
    signs: FloatArray
    rest: FloatArray
    incident: IntArray
    incident_signs: FloatArray


class Sites(NamedTuple):
    """What one conditional draw of p(s|x) decides: a free unit, or which member of a 1-of-K group is 1.

    Attributes:
        members: (M, K) int64 units of each of M sites; N stands for the off state of a free unit, N + 1 for padding.
        site: (N,) int64, the site of a unit.
        slot: (N,) int64, the unit's column in `members`.
        last: (M,) int64, the last column that a draw may give: K for free units, the group's size - 1.
    """

    members: IntArray
    site: IntArray
    slot: IntArray
    last: IntArray


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The relaxation of `model` with the diagonal `d`, (N,) float64. Make one with `relax`."""

    model: PairwiseModel
    d: FloatArray

    @property
    def bias(self) -> FloatArray:
        """(N,): b = a - d/2."""
        return self.model.biases - self.d / 2

    @cached_property
    def gram(self) -> FloatArray:
        """(N, N): Q = W + D.

        Raises:
            UnsupportedError: N is too large for dense arrays.
        """
        n = self.model.num_variables
        if (need := bytes_of(n)) > DENSE_BYTES:
            raise UnsupportedError(
                f"{self.model.name} has N = {n} variables, whose dense (N, N) arrays would take {need / 2**20:.0f} MiB "
                f"of {DENSE_BYTES // 2**20} MiB allowed; form=sparse with diagonal=dd needs none"
            )
        Q = self.model.dense()
        Q[np.diag_indices_from(Q)] += self.d
        return Q

    @cached_property
    def cholesky(self) -> FloatArray:
        """(N, N) lower triangular L with LLᵀ = Q.

        Raises:
            ModelError: Q is not positive definite.
        """
        try:
            L: FloatArray = np.linalg.cholesky(self.gram).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            raise self._indefinite(smallest_eigenvalue(self.model, self.d)) from None
        # Cholesky also succeeds for slightly singular matrices, with pivots that are rounding errors
        if float(np.diag(L).min()) ** 2 <= 1e-12 * float(self.d.max()):
            raise self._indefinite(smallest_eigenvalue(self.model, self.d))
        return L

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """(N,) eigenvalues λ, ascending, and (N, N) eigenvectors V in columns: Q = VΛVᵀ; errors as `cholesky`."""
        values, vectors = np.linalg.eigh(self.gram)
        if values[0] <= 1e-12 * values[-1]:
            raise self._indefinite(float(values[0]))
        return values, vectors

    @cached_property
    def harmonium(self) -> FloatArray:
        """(N, N): B = VΛ^½, a root of Q whose inverse is the harmonium's A; errors as `cholesky`."""
        values, vectors = self.eigen
        return np.ascontiguousarray(vectors * np.sqrt(values))

    @cached_property
    def precision(self) -> FloatArray:
        """(N, N): Q⁻¹; errors as `cholesky`."""
        from scipy.linalg import cho_solve

        P = cho_solve((self.cholesky, True), np.eye(self.model.num_variables))
        return np.ascontiguousarray((P + P.T) / 2)

    @property
    def smallest(self) -> float:
        """λ_min(Q), for large N estimated from below."""
        # The step size is derived from the root, which must not be 0.
        return max(smallest_eigenvalue(self.model, self.d), 1e-12 * float(self.d.max()))

    @cached_property
    def edge_factor(self) -> EdgeFactor:
        """The sparse factorisation of a diagonally dominant Q.

        Raises:
            UnsupportedError: some d_i does not exceed Σ_j |W_ij|, or a hub makes the padded table large.
        """
        model, n = self.model, self.model.num_variables
        rest = self.d - dominance(model)
        if not (rest > 0).all():
            i = int(np.argmin(rest))
            raise UnsupportedError(
                f"{model.name}: form=sparse needs d_i > Σ_j |W_ij|, but d[{i}] = {self.d[i]:.6g} and the sum is "
                f"{self.d[i] - rest[i]:.6g}; choose diagonal=dd with slack > 0"
            )
        degree = int(model.degrees.max(initial=0))
        if n * degree > MAX_PADDING * (2 * model.num_edges + n):
            raise UnsupportedError(
                f"{model.name}: a variable has {degree} neighbours, too uneven for form=sparse, whose table would be "
                f"padded to {n} × {degree}; choose a dense form"
            )
        signs = np.where(model.couplings < 0, -1.0, 1.0)
        ends = model.edges.T.ravel()  # all first ends, then all second ends
        edge = np.tile(np.arange(model.num_edges), 2)
        order = np.argsort(ends, kind="stable")
        column = np.arange(len(ends)) - np.repeat(np.cumsum(model.degrees) - model.degrees, model.degrees)
        incident = np.full((n, degree), model.num_edges, dtype=np.int64)
        incident_signs = np.zeros((n, degree))
        incident[ends[order], column] = edge[order]
        incident_signs[ends[order], column] = np.concatenate([np.ones_like(signs), signs])[order]
        return EdgeFactor(model.edges, np.abs(model.couplings), signs, rest, incident, incident_signs)

    @cached_property
    def sites(self) -> Sites | None:
        """How units share conditional draws; None for models without 1-of-K groups."""
        groups, n = self.model.groups, self.model.num_variables
        if not groups:
            return None
        grouped = {i for group in groups for i in group}
        units = [*groups, *((i,) for i in range(n) if i not in grouped)]
        width = max(2, max(len(group) for group in groups))
        members = np.full((len(units), width), n + 1, dtype=np.int64)
        site, slot = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        last = np.full(len(units), width, dtype=np.int64)
        for row, unit in enumerate(units):
            members[row, : len(unit)] = unit
            site[list(unit)], slot[list(unit)] = row, np.arange(len(unit))
            if row < len(groups):
                last[row] = len(unit) - 1
            else:
                members[row, 1] = n
        return Sites(members, site, slot, last)

    def field_map(self, form: Form) -> FloatArray:
        """(N, N): M = A⁻¹, so that α = Mx; errors as `cholesky`."""
        if form == "identity":
            return np.eye(self.model.num_variables)
        return self.harmonium if form == "harmonium" else self.gram

    def quadratic(self, form: Form) -> FloatArray:
        """(N, N): K = A⁻ᵀQ⁻¹A⁻¹, the precision of p(x|s); errors as `cholesky`."""
        if form == "identity":
            return self.precision
        return np.eye(self.model.num_variables) if form == "harmonium" else self.gram

    def log_density(self, x: npt.ArrayLike, form: Form = "identity") -> FloatArray:
        """log(p(x) Z), the constant included: the integral of its exponential over R^N is Z.

        Args:
            x: (N,) or (N, C).
            form: of A.

        Returns:
            () or (C,).
        """
        x = np.asarray(x, dtype=np.float64)
        K = self.quadratic(form)
        log_det = np.linalg.slogdet(K)[1]
        constant = 0.5 * log_det - 0.5 * len(K) * np.log(2 * np.pi) + self.model.log_constant
        u = (self.field_map(form) @ x).T + self.bias
        return np.asarray(constant - 0.5 * np.sum(x * (K @ x), axis=0) + self.conditional(u)[1])

    def gradient(self, x: npt.ArrayLike, form: Form = "identity") -> FloatArray:
        """∇ log p(x) = -Kx + A⁻ᵀ p(s = 1|x), of the shape of x, (N,) or (N, C).

        For A = I it needs the dense Q⁻¹ (section 3.2 of the paper says linear cost); for A = Q⁻¹ it is Q(p - x).
        """
        x, M = np.asarray(x, dtype=np.float64), self.field_map(form)
        return np.asarray(-self.quadratic(form) @ x + M.T @ self.conditional((M @ x).T + self.bias)[0].T)

    def conditional(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """p(s|x) at u = α + b, (…, N): the means p(s_i = 1|x), (…, N), and log Σ_s exp(s·u) over allowed s, (…)."""
        if self.sites is None:
            tail = np.exp(-np.abs(u))
            means = np.where(u >= 0, 1.0, tail) / (1.0 + tail)
            return means, np.asarray((np.maximum(u, 0.0) + np.log1p(tail)).sum(axis=-1))
        ends = np.broadcast_to([0.0, -np.inf], (*u.shape[:-1], 2))
        padded = np.concatenate([u, ends], axis=-1)[..., self.sites.members]
        normalisers = np.logaddexp.reduce(padded, axis=-1)
        return np.exp(u - normalisers[..., self.sites.site]), np.asarray(normalisers.sum(axis=-1))

    def _indefinite(self, smallest: float) -> ModelError:
        return ModelError(
            f"{self.model.name}: W + D is not positive definite (smallest eigenvalue {smallest:.3g}); "
            "give a larger d or more slack"
        )


def relax(model: PairwiseModel, diagonal: str | Sequence[float], slack: float = 0.1) -> Relaxation:
    """The relaxation with a diagonal by rule ("minshift", "dd", "sdp", see `relaxation.diagonal`) or as given.

    Raises:
        SpinbenchError: as `checked_diagonal`.
        ModelError: a given d has the wrong length or entries that are not finite and positive.
        UnsupportedError: as `diagonal.choose`.
    """
    rule = checked_diagonal(diagonal, slack)
    if isinstance(rule, str):
        return Relaxation(model, choose(model, rule, slack))
    d = np.array(rule, dtype=np.float64)
    if d.shape != (model.num_variables,) or not (np.isfinite(d).all() and (d > 0).all()):
        raise ModelError(
            f"{model.name}: diagonal has {d.size} entries; {model.num_variables} finite positive numbers are needed"
        )
    return Relaxation(model, d)
