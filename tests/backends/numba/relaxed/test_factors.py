"""The kernels' products and draws against NumPy, for one chain and for a tile of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_parts import called

from spinbench.backends.numba.relaxed import factors
from spinbench.backends.numba.relaxed.factors import Gram, Harmonium, make_eliminated, two_colours
from spinbench.backends.numba.relaxed.matrices import (
    Banded,
    Dense,
    Sparse,
    entries,
    make_banded,
    make_dense,
    make_sparse,
    product,
)
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout
from spinbench.mathematics.relaxation.density import relax
from spinbench.methods.relaxed.tables import Factor, build_tables, draw_velocity, noise_rows
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
    called(product)(make_dense(M, layout), tile, out)
    close(rows(layout, out, n), M @ v, kind)
    few = np.where(rng.random(shape) < 0.2, M, 0).astype(kind)
    called(product)(make_sparse(entries(few), layout), tile, out)
    close(rows(layout, out, n), few @ v, kind)
    if n == m:
        band = np.triu(np.tril(M, 2), -3)
        called(product)(make_banded(entries(band), layout), tile, out)
        close(rows(layout, out, n), band @ v, kind)


FORMS: dict[str, tuple[Factor, Any]] = {
    "harmonium": ("harmonium", Dense),
    "dense": ("gram", Dense),
    "banded": ("gram", Banded),
    "sparse, banded": ("edges", Banded),
    "edges": ("edges", Sparse),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("n", [1, 30])
@pytest.mark.parametrize("name", FORMS)
def test_draws_from_given_noise(name: str, n: int, single: bool, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relaxation, layout, rng = relax(make_model(n), "dd", 0.1), make_layout(kind, single, n), np.random.default_rng(0)
    known, stored = FORMS[name]
    monkeypatch.setattr(factors, "WORTH", 0.0 if name == "dense" else 1.0)
    monkeypatch.setattr(factors, "WIDEST_BAND", -1 if name == "edges" else 100)
    tables = build_tables(relaxation, known, 0.5)
    factor = factors.make_factor(tables, None, layout)
    assert isinstance(factor, Harmonium if name == "harmonium" else Gram)
    assert isinstance(factor.root, stored)
    chains = 1 if single else layout.lanes
    s = rng.integers(0, 2, size=(n, chains)).astype(kind)
    assert factor.noise == (noise_rows(tables) if name == "edges" else n)
    noise = rng.normal(size=(factor.noise, chains)).astype(kind)
    if name == "sparse, banded":
        velocity = relaxation.cholesky @ noise
    else:
        velocity = draw_velocity(np, tables, noise.astype(np.float64))
    out, work = layout.tile(), layout.tile()
    called(factors.draw_field)(factor, fill(layout, s), fill(layout, noise), work, out)
    close(rows(layout, out, n), relaxation.gram @ s + velocity, kind)
    if isinstance(factor, Gram):
        called(product)(factor.root, fill(layout, noise), out)
        close(rows(layout, out, n), velocity, kind)
        called(product)(factor.gram, fill(layout, s - s.dtype.type(0.3)), out)
        close(rows(layout, out, n), relaxation.gram @ (s - 0.3), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("size", [(4, 4), (7, 9), (10, 10)])
def test_elimination_on_lattices(size: tuple[int, int], single: bool, kind: str) -> None:
    relaxation = relax(generators.grid(*size), "minshift", 0.1)
    halves = two_colours(relaxation.gram)
    assert halves is not None
    order = np.concatenate(halves[1:])
    layout = make_layout(kind, single, order.size, order)
    x = np.random.default_rng(0).normal(size=(order.size, 1 if single else layout.lanes)).astype(kind)
    out = layout.tile()
    eliminated = make_eliminated(halves, relaxation.precision, layout)
    called(product)(eliminated, fill(layout, x[order]), out)
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
    known: Factor
    for known in ("gram", "edges"):
        factor = factors.make_factor(build_tables(relaxation, known, 0.5), None, layout)
        assert isinstance(factor, Gram)
        assert isinstance(factor.gram, Banded)
        assert isinstance(factor.root, Banded)
        assert sorted(factor.gram.offsets.tolist()) == [-9, -1, 0, 1, 9]
        assert sorted(factor.root.offsets.tolist()) == list(range(-9, 1))
    tables = build_tables(relax(make_model(30), "dd", 0.1), "gram", 0.5)
    dense = factors.make_factor(tables, None, make_layout("float64", True, 30))
    assert isinstance(dense, Gram)
    assert isinstance(dense.gram, Dense)


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
