"""The kernels' products and draws against NumPy, for one chain and for a tile of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_parts import called

from spinbench.backends.numba.relaxed.factors import make_eliminated, two_colours
from spinbench.backends.numba.relaxed.matrices import (
    entries,
    make_banded,
    make_dense,
    make_sparse,
    product,
)
from spinbench.backends.numba.relaxed.tiles import Layout
from spinbench.backends.numba.relaxed.units import add_to_sums
from spinbench.mathematics.relaxation.density import relax
from spinbench.models import generators

KINDS = ["float32", "float64"]
RTOL = {"float32": 2e-5, "float64": 1e-12}


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


def test_float32_sums_do_not_saturate() -> None:
    """A float32 sum of ones would stay at 2^24."""
    for shape in ((16,), (3, 16)):
        sums = np.full(shape, 2.0**24)
        called(add_to_sums)(np.ones(shape, dtype=np.float32), shape[0], sums)
        np.testing.assert_array_equal(sums, 2.0**24 + 1)
