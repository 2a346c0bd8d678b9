"""The smallest upper bound on log Z that a Gaussian integral with quadratic bounds on log cosh gives.

With spins σ = 2s - 1 and K = J + diag(d) >= 0, the Gaussian integral gives Z = e^{c - Σd/2} E Π 2 cosh u_i with
u ~ N(h, K). For any ξ, log cosh u <= log cosh ξ + λ (u² - ξ²) / 2 with λ = tanh ξ / ξ (Jaakkola and Jordan, "Bayesian
parameter estimation via variational methods", Statistics and Computing 10, 2000). Where I - K Λ has positive
eigenvalues,

    log Z <= c - Σd/2 + Σ_i [log 2cosh ξ_i - λ_i ξ_i²/2] - log det(I - KΛ)/2 + h'Λ(I - KΛ)⁻¹h/2,

which is convex in λ, and whose derivative is (E u_i² - ξ_i²)/2 under u ~ N((I - KΛ)⁻¹h, (I - KΛ)⁻¹K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import PairwiseModel
from spinbench.mathematics.relaxation.diagonal import trace_minimal
from spinbench.mathematics.rounding import EPS, work_of

FloatArray = npt.NDArray[np.float64]

# Steps of the search: `MAX_WORK` / N³, between `MIN_STEPS` and `MAX_STEPS`.
MAX_STEPS, MAX_WORK, MIN_STEPS = 400, 4e9, 20
# Gain in nats, and step size, below which the search ends.
MIN_GAIN, MIN_STEP_SIZE = 1e-6, 1e-8
# Margin, relative to J, by which K is made positive definite; it hardly widens the bound.
POSITIVITY_MARGIN = 1e-9
# Rounding error in units in the last place per N² operations, relative to the smallest eigenvalue of I - KΛ, which
# amplifies errors of the inverse.
ROUNDING_UNITS = 64


class Spins(NamedTuple):
    """A model as spins: fields h, J + diag(d) and the constant, - Σd/2 and N log 2 included."""

    fields: FloatArray
    kernel: FloatArray
    constant: float


class GaussianFit(NamedTuple):
    """Where the bound stands.

    Attributes:
        value: () the bound, its rounding not added.
        slack: () nats by which rounding may put it off.
        xi, slopes: (N,) ξ and λ.
        mean: (N,) of u; root: (N, N) of its covariance.
    """

    value: FloatArray
    slack: FloatArray
    xi: FloatArray
    slopes: FloatArray
    mean: FloatArray
    root: FloatArray


def to_spins(model: PairwiseModel) -> Spins:
    """With the diagonal of the smallest trace."""
    n, weights = model.num_variables, model.dense()
    coupling, d = weights / 4, trace_minimal(model) / 4
    room = POSITIVITY_MARGIN * float(np.abs(coupling).sum(axis=1).max(initial=0.0))
    d = d + room + max(0.0, -float(np.linalg.eigvalsh(coupling + np.diag(d))[0]))
    fields = model.biases / 2 + weights.sum(axis=1) / 4
    constant = model.log_constant + model.biases.sum() / 2 + weights.sum() / 8
    return Spins(fields, coupling + np.diag(d), float(constant - d.sum() / 2 + n * np.log(2)))


def fit_seconds(n: int) -> float:
    """About how long `fit_upper_bound` takes for n variables on one core."""
    return (3e-10 + _max_steps(n) * 7e-11) * n**3


def _max_steps(n: int) -> int:
    return int(np.clip(MAX_WORK / max(n, 1) ** 3, MIN_STEPS, MAX_STEPS))


def fit_upper_bound(model: PairwiseModel) -> GaussianFit:
    """The smallest bound that steps along the gradient find, in proportion to λ."""
    spins = to_spins(model)
    top = float(np.linalg.eigvalsh(spins.kernel)[-1])
    # A feasible start: I - KΛ is positive definite where λ is below the inverse of K's largest eigenvalue.
    slopes = np.full(len(spins.fields), min(0.9 / max(top, 1e-12), 0.95))
    best, gradient = _bound_and_gradient(spins, slopes)
    step = 0.1
    for _ in range(_max_steps(len(slopes))):
        # Steps in log λ, which keep λ positive. The plain fixed-point steps ξ² ← E u² are not monotone.
        trial_slopes = np.clip(slopes * np.exp(-step * np.clip(gradient * slopes, -20.0, 20.0)), 1e-6, 1 - 1e-6)
        value, trial_gradient = _bound_and_gradient(spins, trial_slopes)
        if not value < best:
            step /= 3
            if step < MIN_STEP_SIZE:
                break
            continue
        gain, best, slopes, gradient, step = best - value, value, trial_slopes, trial_gradient, step * 1.5
        if gain < MIN_GAIN:
            break
    return _evaluate_bound_with_slack(model, spins, slopes)


def _bound_and_gradient(spins: Spins, slopes: FloatArray) -> tuple[float, FloatArray]:
    """The bound and its gradient; inf where there is no such Gaussian."""
    xi = _xi_from_slopes(slopes)
    root = np.sqrt(slopes)
    matrix = np.eye(len(root)) - root[:, None] * spins.kernel * root
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(slopes)
    inverse = np.linalg.inv(matrix)
    pull = inverse @ (root * spins.fields)
    log_det = 2 * float(np.log(np.diag(factor)).sum())
    value = spins.constant + _sum_quadratic_bounds(xi, slopes) - log_det / 2 + float((root * spins.fields) @ pull) / 2
    squares = (np.diag(inverse) - 1) / slopes + (pull / root) ** 2
    return value, (squares - xi**2) / 2


def _sum_quadratic_bounds(xi: FloatArray, slopes: FloatArray) -> float:
    return float((log_cosh(xi) - slopes * xi**2 / 2).sum())


def _xi_from_slopes(slopes: FloatArray) -> FloatArray:
    """ξ > 0 with tanh ξ / ξ = λ."""
    # Starting points of Newton's method: tanh ξ / ξ is 1 - ξ²/3 for small ξ and 1 / ξ for large ξ.
    xi = np.where(slopes > 0.7, np.sqrt(3 * (1 - slopes)), 1 / slopes)
    for _ in range(30):
        tanh = np.tanh(xi)
        slope = (1 - tanh**2) / xi - tanh / xi**2
        xi = np.maximum(xi - np.clip((tanh / xi - slopes) / np.minimum(slope, -1e-12), -xi / 2, xi / 2), 1e-6)
    return np.asarray(xi)


def _evaluate_bound_with_slack(model: PairwiseModel, spins: Spins, slopes: FloatArray) -> GaussianFit:
    """The bound by eigenvalues, at the λ that belong to ξ to the last place."""
    xi = _xi_from_slopes(slopes)
    # The bound needs consistent pairs of ξ and λ: λ is computed from ξ, so that an error of ξ does not invalidate the
    # bound.
    slopes = np.tanh(xi) / xi
    root = np.sqrt(slopes)
    values, vectors = np.linalg.eigh(np.eye(len(root)) - root[:, None] * spins.kernel * root)
    least = float(values.min(initial=1.0))
    along = vectors.T @ (root * spins.fields)
    quadratic = float((along**2 / values).sum())
    value = spins.constant + _sum_quadratic_bounds(xi, slopes) - float(np.log(values).sum()) / 2 + quadratic / 2
    n = len(root)
    slack = (
        work_of(model).allowance(float(xi.sum()) + abs(quadratic)) + ROUNDING_UNITS * EPS * n * (n + quadratic) / least
    )
    mean = vectors @ (along / values) / root
    spread = np.sqrt(np.maximum(1 / values - 1, 0.0))
    return GaussianFit(np.array(value), np.array(slack), xi, slopes, mean, vectors * spread / root[:, None])


def log_cosh(u: FloatArray) -> FloatArray:
    """Without overflow."""
    return np.asarray(np.logaddexp(u, -u) - np.log(2))
