"""The kernels' products and draws against NumPy, for one chain and for a tile of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_parts import called

from spinbench.backends.numba.relaxed import gram
from spinbench.backends.numba.relaxed.banded import banded_product, make_diagonals
from spinbench.backends.numba.relaxed.elimination import eliminated_product, make_eliminated, two_colours
from spinbench.backends.numba.relaxed.products import make_matrix, product
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout
from spinbench.mathematics.relaxation.density import Relaxation, relax
from spinbench.methods.relaxed import family
from spinbench.models import PairwiseModel, generators

KINDS = ["float32", "float64"]
RTOL = {"float32": 2e-5, "float64": 1e-12}


def make_model(n: int) -> PairwiseModel:
    rng = np.random.default_rng(n)
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 4 / n]
    return PairwiseModel.from_edges(rng.normal(size=n), np.array(edges).reshape(-1, 2), rng.normal(size=len(edges)))


def make_layout(kind: str, single: bool, n: int, order: Any = None) -> Layout:
    """Of one chain, or as many as fill a tile."""
    real = np.dtype(kind)
    return Layout(1 if single else 64 // real.itemsize, real, np.arange(n) if order is None else order, n)


def fill(layout: Layout, values: np.ndarray) -> np.ndarray:
    """A tile of work space with (rows, C) in it."""
    tile = layout.tile(len(values))
    if layout.single:
        tile[: len(values)] = values[:, 0]
    else:
        tile[:] = values
    return tile


def rows(layout: Layout, tile: np.ndarray, n: int) -> np.ndarray:
    return tile[:n, None] if layout.single else tile


def close(found: np.ndarray, exact: np.ndarray, kind: str) -> None:
    np.testing.assert_allclose(found, exact, rtol=RTOL[kind], atol=RTOL[kind] * np.abs(exact).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (23, 23), (57, 131)])
def test_products(shape: tuple[int, int], single: bool, kind: str) -> None:
    """57 rows are two panels in float64, 23 narrow ones; both leave a part of a block."""
    rng, (n, m) = np.random.default_rng(shape[0]), shape
    layout = make_layout(kind, single, m)
    M, v = rng.normal(size=shape).astype(kind), rng.normal(size=(m, 1 if single else layout.lanes)).astype(kind)
    tile, out = fill(layout, v), layout.tile(n)
    called(product)(make_matrix(M, layout), tile, out)
    close(rows(layout, out, n), M @ v, kind)
    if n == m:
        band = np.triu(np.tril(M, 2), -3)
        called(banded_product)(make_diagonals(band, layout), tile, out)
        close(rows(layout, out, n), band @ v, kind)


def make_gram(name: str, relaxation: Relaxation, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> gram.Gram:
    if name == "harmonium":
        return gram.make_harmonium(relaxation.harmonium, layout)
    if name in ("dense", "banded"):
        monkeypatch.setattr(gram, "WORTH", 0.0 if name == "dense" else 1.0)
        return gram.make_dense(relaxation.gram, relaxation.cholesky, layout)
    monkeypatch.setattr(gram, "WIDEST_BAND", -1 if name == "edges" else 100)
    return gram.make_sparse(relaxation.edge_factor, layout)


FORMS = {
    "harmonium": "harmonium",
    "dense": "dense",
    "banded": "banded",
    "sparse, banded": "banded",
    "edges": "edges",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("n", [1, 30])
@pytest.mark.parametrize("name", FORMS)
def test_draws_from_given_noise(name: str, n: int, single: bool, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relaxation, layout, rng = relax(make_model(n), "dd", 0.1), make_layout(kind, single, n), np.random.default_rng(0)
    factor = make_gram(name, relaxation, layout, monkeypatch)
    assert factor.form == FORMS[name]
    chains = 1 if single else layout.lanes
    s = rng.integers(0, 2, size=(n, chains)).astype(kind)
    noise = rng.normal(size=(gram.noise_rows(relaxation.edge_factor, n) if name == "edges" else n, chains)).astype(kind)
    if name == "edges":
        velocity = family.edge_noise(np, relaxation.edge_factor, noise.astype(np.float64))
    else:
        velocity = (relaxation.harmonium if name == "harmonium" else relaxation.cholesky) @ noise
    out, work = layout.tile(), layout.tile()
    called(gram.draw_field)(factor.roots, factor, fill(layout, s), fill(layout, noise), n, work, out)
    close(rows(layout, out, n), relaxation.gram @ s + velocity, kind)
    if name != "harmonium":
        called(gram.draw_velocity)(factor.second, factor.lower, factor.edges, fill(layout, noise), n, out)
        close(rows(layout, out, n), velocity, kind)
        v = fill(layout, s - s.dtype.type(0.3))
        called(gram.gram_product)(factor.first, factor.band, factor.edges, v, n, fill(layout, noise), out)
        close(rows(layout, out, n), relaxation.gram @ (s - 0.3), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("size", [(4, 4), (7, 9), (10, 10)])
def test_elimination_on_lattices(size: tuple[int, int], single: bool, kind: str) -> None:
    relaxation = relax(generators.grid(*size), "minshift", 0.1)
    colours = two_colours(relaxation.gram)
    assert colours is not None
    order = np.concatenate(colours)
    layout = make_layout(kind, single, order.size, order)
    x = np.random.default_rng(0).normal(size=(order.size, 1 if single else layout.lanes)).astype(kind)
    out = layout.tile()
    eliminated = make_eliminated(relaxation.gram, relaxation.precision, colours, layout)
    called(eliminated_product)(eliminated, fill(layout, x[order]), out)
    close(rows(layout, out, order.size), (relaxation.precision @ x)[order], kind)


def test_elimination_is_for_lattices_alone() -> None:
    """An odd cycle has no two colours, a star too few variables of one, a random bipartite graph many diagonals."""
    rng = np.random.default_rng(0)
    cycle = [(i, (i + 1) % 9) for i in range(9)]
    star = [(0, i) for i in range(1, 12)]
    random = [(i, j) for i in range(10) for j in range(10, 20) if rng.random() < 0.5]
    for n, edges in ((9, cycle), (12, star), (20, random)):
        model = PairwiseModel.from_edges(np.zeros(n), np.array(edges), np.ones(len(edges)))
        assert two_colours(relax(model, "dd", 0.1).gram) is None


def test_lattices_are_stored_by_diagonals_and_dense_models_whole() -> None:
    """A 6 × 9 grid has 5 diagonals, its root those from 0 to 9 below, however it is made."""
    relaxation, layout = relax(generators.grid(6, 9), "dd", 0.1), make_layout("float64", True, 54)
    for factor in (
        gram.make_dense(relaxation.gram, relaxation.cholesky, layout),
        gram.make_sparse(relaxation.edge_factor, layout),
    ):
        assert factor.form == "banded"
        assert sorted(factor.band.offsets.tolist()) == [-9, -1, 0, 1, 9]
        assert sorted(factor.lower.offsets.tolist()) == list(range(-9, 1))
    dense = relax(make_model(30), "dd", 0.1)
    assert gram.make_dense(dense.gram, dense.cholesky, make_layout("float64", True, 30)).form == "dense"


@pytest.mark.parametrize("chains", [1, 3, 8, 16, 50])
def test_chains_go_to_tiles_and_back(chains: int) -> None:
    values, order = np.random.default_rng(0).normal(size=(5, chains)), np.array([3, 1, 4, 0, 2])
    layout = Layout(chains, np.dtype("float64"), order)
    tiles = layout.scatter(values)
    np.testing.assert_array_equal(layout.gather(tiles), values)
    np.testing.assert_array_equal(layout.gather_energies(layout.spread_energies(values[0])), values[0])
    assert layout.single == (chains <= 4)
    assert tiles.shape[1:] == ((8,) if layout.single else (5, 8))
    column = layout.column(values[:, 0], NEVER)
    assert column.tolist() == [*values[order, 0], *[NEVER] * 3]
    assert (tiles.ctypes.data % 64, layout.tile().ctypes.data % 64) == (0, 0)
