"""Choices of the diagonal D that makes Q = W + D positive definite.

Any d with W + D > 0 leaves p(s) as it is; a larger one slows every sampler on the relaxation down.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.mathematics.graphs.colouring import colouring
from spinbench.models import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DIAGONALS = ("minshift", "dd", "sdp")
# Up to this many variables eigenvalues come from LAPACK, above from Lanczos iterations.
DENSE_EIGEN = 1000


def choose(model: PairwiseModel, diagonal: str, slack: float) -> FloatArray:
    """d by one of the rules

    * minshift: every d_i = |λ_min(W)| (1 + slack), the paper's choice;
    * dd: d_i = Σ_j |W_ij| (1 + slack), diagonal dominance;
    * sdp: the smallest trace with W + D >= 0, times 1 + slack.

    Variables without neighbours would get d_i = 0 from the last two; they get slack times the mean of d. Without
    any coupling d = slack, in log-odds.

    Args:
        model: of N variables.
        diagonal: one of DIAGONALS.
        slack: >= 0.

    Returns:
        (N,) float64.

    Raises:
        UnsupportedError: slack = 0 where that leaves a d_i of zero.
    """
    if model.num_edges == 0 or not model.couplings.any():
        d = np.zeros(model.num_variables)
    elif diagonal == "minshift":
        d = np.full(model.num_variables, -smallest_eigenvalue(model, np.zeros(model.num_variables)))
    elif diagonal == "dd":
        d = dominance(model)
    else:
        d = trace_minimal(model)
    scale = float(d.mean()) or 1.0
    d = np.maximum((1 + slack) * d, slack * scale)
    if not (d > 0).all():
        raise UnsupportedError(
            f"{model.name}: slack=0 leaves d[{int(np.argmin(d))}] = 0 and W + D singular; slack > 0 is needed"
        )
    return np.asarray(d)


def checked_diagonal(diagonal: object, slack: float, extra: tuple[str, ...] = ()) -> str | tuple[float, ...]:
    """The rule, or the numbers as a tuple, which settings can be compared and hashed by.

    Raises:
        SpinbenchError: an unknown rule, no list of numbers, or a slack that is negative or not finite.
    """
    if not (np.isfinite(slack) and slack >= 0):
        raise SpinbenchError(f"slack={slack} was given; a finite number >= 0 is needed")
    allowed = (*DIAGONALS, *extra)
    if isinstance(diagonal, str) and diagonal in allowed:
        return diagonal
    try:
        if not isinstance(diagonal, str):
            return tuple(float(x) for x in diagonal)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        pass
    raise SpinbenchError(f"diagonal={diagonal!r} was given; {', '.join(allowed)} or a list of N numbers are allowed")


def dominance(model: PairwiseModel) -> FloatArray:
    """(N,) Σ_j |W_ij|."""
    ends = model.edges.ravel()
    sums = np.bincount(ends, np.repeat(np.abs(model.couplings), 2), minlength=model.num_variables)
    # bincount returns integers if there are no edges.
    return sums.astype(np.float64)


def smallest_eigenvalue(model: PairwiseModel, d: FloatArray) -> float:
    """λ_min(W + diag(d)); for large models a Lanczos estimate less its residual, so not above the truth."""
    if model.num_variables <= DENSE_EIGEN:
        dense = model.dense()
        dense[np.diag_indices_from(dense)] += d
        return float(np.linalg.eigvalsh(dense)[0])
    from scipy import sparse
    from scipy.sparse.linalg import eigsh

    Q = sparse.csr_array(model.csr() + sparse.diags_array(d))
    start = np.random.default_rng(0).standard_normal(model.num_variables)
    values, vectors = eigsh(Q, k=1, which="SA", tol=1e-6, v0=start, maxiter=100 * model.num_variables)
    residual = np.linalg.norm(Q @ vectors[:, 0] - values[0] * vectors[:, 0])
    return float(values[0] - residual)


def trace_minimal(model: PairwiseModel, *, tolerance: float = 1e-3, max_sweeps: int = 20_000) -> FloatArray:
    """min Σ d_i subject to W + diag(d) >= 0.

    The dual, min <W, VV'> over unit rows v_i of dimension ceil(√(2N)) + 2 (Burer and Monteiro), is solved by the
    sweeps v_i = -g_i / |g_i| with g_i = Σ_j W_ij v_j; then d_i = |g_i|. Rows of one colour class do not touch and
    are updated together. A uniform shift makes the end result feasible.

    Args:
        model: of N variables.
        tolerance: the sweeps end when that shift adds at most this share to the trace.
        max_sweeps: they end anyway after so many.

    Returns:
        (N,) float64 with λ_min(W + diag(d)) >= 0 up to rounding; 0 for variables without neighbours.
    """
    n = model.num_variables
    rank = math.ceil(math.sqrt(2 * n)) + 2
    V = np.random.default_rng(0).standard_normal((n, rank))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    W: Any = model.csr()
    coupled = np.flatnonzero(np.diff(W.indptr))
    if 8 * model.num_edges > n * n:
        W = W.toarray()
    colours = colouring(n, model.edges)[coupled]
    classes = [(rows, W[rows]) for rows in (coupled[colours == colour] for colour in np.unique(colours))]
    d, check = np.zeros(n), 32
    for sweep in range(1, max_sweeps + 1):
        for rows, block in classes:
            g = block @ V
            length = np.linalg.norm(g, axis=1, keepdims=True)
            d[rows] = length[:, 0]
            V[rows] = np.where(length > 0, -g / np.maximum(length, 1e-300), V[rows])
        if sweep in (check, max_sweeps):
            shift = max(0.0, -smallest_eigenvalue(model, d))
            if shift * len(coupled) <= tolerance * d.sum():
                break
            check *= 2
    # A margin for floating point, in which the smallest eigenvalue is only known to rounding.
    d[coupled] += shift * (1 + 1e-9)
    return d
