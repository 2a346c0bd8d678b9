"""The models of the comparison, with exact answers."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

import spinbench
from comparison.answers import Answer, FloatArray, IntArray
from spinbench.inference.answers import solve
from spinbench.models import FactorGraph, PairwiseModel, catalogue, generators, lattices

Model = PairwiseModel | FactorGraph


class Known(NamedTuple):
    """A model and its exact marginals p(s_i = 1).

    Attributes:
        model: as all contenders get it.
        exact: (K,) marginals of classes of sites.
        classes: (N,) the class of each site; None: a class a site.
    """

    model: PairwiseModel
    exact: FloatArray
    classes: IntArray | None = None


@cache
def grid(size: int, strength: float = 1.0) -> Known:
    """size × size with a_i, W_ij ~ N(0, (2 strength)²): the DHMC paper's standard set with c1 = c2 = strength."""
    model = generators.grid(size, size, c1=strength, c2=strength)
    return Known(model, np.asarray(spinbench.exact(model).marginals))


@cache
def tiled_grid(size: int) -> Known:
    """size × size whose exact marginals are known: the couplings that cross the borders of 10 × 10 tiles are 0.

    All neighbours are joined by an edge and all kernels treat all edges alike. Four different tiles alternate.
    """
    tiles = [generators.grid(10, 10, seed=seed) for seed in range(4)]
    row, column = np.divmod(np.arange(size * size), size)
    which = 2 * (row // 10 % 2) + column // 10 % 2
    inside = row % 10 * 10 + column % 10
    biases = np.stack([tile.biases for tile in tiles])[which, inside]
    weights = np.stack([tile.dense() for tile in tiles])
    edges = lattices.grid_edges(size, size)
    i, j = edges.T
    together = (row[i] // 10 == row[j] // 10) & (column[i] // 10 == column[j] // 10)
    couplings = np.where(together, weights[which[i], inside[i], inside[j]], 0.0)
    model = PairwiseModel.from_edges(biases, edges, couplings, name=f"tiled grid {size}×{size}")
    exact = np.concatenate([np.asarray(spinbench.exact(tile).marginals) for tile in tiles])
    return Known(model, exact, 100 * which + inside)


@cache
def sherrington_kirkpatrick(n: int) -> PairwiseModel:
    """Zero field, J_ij ~ N(0, 1/n) in the ±1 form, β = 1."""
    return generators.sherrington_kirkpatrick(n, beta=1.0)


@cache
def mattis(n: int, coupling: float = 0.8, field: float = 0.1) -> Known:
    """All pairs coupled by J_ij = coupling ξ_i ξ_j / n with field·ξ_i, ξ_i = ±1 at random, in the ±1 form.

    With τ_i = ξ_i σ_i it is the Curie-Weiss model, whose magnetisation is a sum of n + 1 terms.
    """
    signs = np.random.default_rng(1).choice([-1.0, 1.0], n)
    J = coupling / n * np.outer(signs, signs)
    np.fill_diagonal(J, 0.0)
    up = np.arange(n + 1)
    total = 2.0 * up - n
    weights = gammaln(n + 1) - gammaln(up + 1) - gammaln(n - up + 1) + coupling / (2 * n) * total**2 + field * total
    mean = float((np.exp(weights - logsumexp(weights)) * total).sum() / n)
    return Known(PairwiseModel.from_dense(-2 * J.sum(axis=1) + 2 * field * signs, 4 * J), (1 + signs * mean) / 2)


@cache
def solved(name: str) -> tuple[Model, Answer]:
    """A shipped model, evidence included, or "grid N", with log Z and all tables of its variables, one after another.

    log Z of shipped models was computed elsewhere; a grid is solved by the bucket tree up to 12 × 12, which shares
    no code with the frontier elimination that is timed, and above by the frontier elimination itself.
    """
    if name.startswith("grid "):
        size = int(name.removeprefix("grid "))
        model: Model = generators.grid(size, size)
        found = solve(model, method="bucket_tree" if size <= 12 else "auto", max_bytes=2**32, cache=False)
        return model, Answer(np.concatenate(found.marginals), found.log_z)
    model = spinbench.load(name)
    known = catalogue.reference(name).log_z
    found = solve(model, method="bucket_tree", max_bytes=2**32, cache=False)
    assert abs(found.log_z - known) <= 1e-6 * max(1.0, abs(known))
    return model, Answer(np.concatenate(found.marginals), known)


def stacked(model: Model, marginals: object) -> FloatArray:
    """Tables of single variables, one after another, from p(s = 1) or from a list of tables."""
    if isinstance(marginals, np.ndarray) and marginals.ndim == 1:
        return np.stack([1 - marginals, marginals], axis=1).ravel()
    return np.concatenate([np.asarray(table, dtype=np.float64) for table in marginals])  # type: ignore[attr-defined]


def spins(model: PairwiseModel) -> tuple[FloatArray, IntArray, FloatArray]:
    """h (N,), edges (E, 2) and J (E,) of the ±1 form: exp(Σ h_i σ_i + Σ J_ij σ_i σ_j)."""
    J = model.couplings / 4
    h = model.biases / 2
    h = h + np.bincount(model.edges[:, 0], J, minlength=h.size) + np.bincount(model.edges[:, 1], J, minlength=h.size)
    return h, model.edges, J


def colours(model: PairwiseModel) -> list[IntArray]:
    """Sites that are not coupled, colour by colour."""
    from spinbench.mathematics.graphs.colouring import colouring

    found = np.asarray(colouring(model.num_variables, model.edges))
    return [np.flatnonzero(found == colour) for colour in range(int(found.max()) + 1)]
