"""The kernels' products and draws against NumPy, for one chain and for several."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba import gram, products
from spinbench.backends.numba.banded import make_diagonals
from spinbench.methods import relaxed
from spinbench.models import PairwiseModel, generators
from spinbench.relaxation import Relaxation, relax

RTOL = {"float32": 2e-5, "float64": 1e-12}


def make_model(n: int) -> PairwiseModel:
    rng = np.random.default_rng(n)
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 4 / n]
    return PairwiseModel.from_edges(rng.normal(size=n), np.array(edges).reshape(-1, 2), rng.normal(size=len(edges)))


def close(found: np.ndarray, exact: np.ndarray, kind: str) -> None:
    np.testing.assert_allclose(found, exact, rtol=RTOL[kind], atol=RTOL[kind] * np.abs(exact).max())


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("chains", [1, 2, 9])
@pytest.mark.parametrize("n", [1, 3, 4, 7, 131])
def test_products(n: int, chains: int, kind: str) -> None:
    """131 is beyond the first-level cache, not a multiple of 4."""
    assert products.FIRST_LEVEL_CACHE < 131**2 * 4
    rng = np.random.default_rng(n)
    M, v = rng.normal(size=(n, n)).astype(kind), rng.normal(size=(n, chains)).astype(kind)
    s, out = (v > 0).astype(kind), np.full((n, chains), np.nan, dtype=kind)
    products.product(M, v, out)
    close(out, M @ v, kind)
    symmetric, lower = M + M.T, np.tril(M)
    products.symmetric_product(symmetric, v, out)
    close(out, symmetric @ v, kind)
    products.lower_product(lower, v, out)
    close(out, lower @ v, kind)
    for states in (s, np.zeros_like(s), np.ones_like(s)):
        products.binary_product(M, np.ascontiguousarray(M.T), states, out)
        np.testing.assert_allclose(out, M.T @ states, atol=RTOL[kind] * 20)


@nb.njit
def call_draw_field(factor, s, noise, work, out):
    gram.draw_field(factor, s, noise, work, out)


@nb.njit
def call_gram_product(factor, v, work, out):
    gram.gram_product(factor, v, work, out)


@nb.njit
def call_draw_velocity(factor, noise, out):
    gram.draw_velocity(factor, noise, out)


def factors(relaxation: Relaxation, kind: str) -> dict[str, Any]:
    def matrix(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values, dtype=kind)

    return {
        "harmonium": gram.Harmonium(matrix(relaxation.harmonium), matrix(relaxation.harmonium.T)),
        "dense": gram.Dense(matrix(relaxation.gram), matrix(relaxation.cholesky)),
        "banded": gram.Banded(make_diagonals(relaxation.gram, kind), make_diagonals(relaxation.cholesky, kind)),
        "edges": gram.make_edges(relaxation.edge_factor, kind),
    }


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("chains", [1, 9])
@pytest.mark.parametrize("n", [1, 30])
@pytest.mark.parametrize("name", ["harmonium", "dense", "banded", "edges"])
def test_draws_from_given_noise(name: str, n: int, chains: int, kind: str) -> None:
    relaxation = relax(make_model(n), "dd", 0.1)
    factor = factors(relaxation, kind)[name]
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, size=(n, chains)).astype(kind)
    noise = rng.normal(size=(gram.noise_rows(factor, n), chains)).astype(kind)
    if name == "edges":
        velocity = relaxed.edge_noise(np, relaxation.edge_factor, noise.astype(np.float64))
    else:
        velocity = (relaxation.harmonium if name == "harmonium" else relaxation.cholesky) @ noise
    out, work = np.full_like(s, np.nan), np.full_like(s, np.nan)
    call_draw_field(factor, s, noise.copy(), work, out)
    close(out, relaxation.gram @ s + velocity, kind)
    if name != "harmonium":
        call_draw_velocity(factor, noise.copy(), out)
        close(out, velocity, kind)
        call_gram_product(factor, s - 0.3, noise.copy(), out)
        close(out, relaxation.gram @ (s - 0.3), kind)


def test_lattices_are_stored_by_diagonals_and_dense_models_whole() -> None:
    """A 6 × 9 grid has 5 diagonals, its root those from 0 to 9 below."""
    relaxation = relax(generators.grid(6, 9), "dd", 0.1)
    factor = gram.make_dense(relaxation.gram, relaxation.cholesky, "float64")
    assert isinstance(factor, gram.Banded)
    assert factor.gram.offsets.tolist() == [0, -9, -1, 1, 9]
    assert factor.lower.offsets.tolist() == [0, *range(-9, 0)]
    dense = relax(make_model(30), "dd", 0.1)
    assert isinstance(gram.make_dense(dense.gram, dense.cholesky, "float64"), gram.Dense)
