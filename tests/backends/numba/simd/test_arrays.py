"""Arrays that kernels make, and functions that are written out: as NumPy and Python have them."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest
from numba.core.errors import TypingError

from spinbench.backends.numba.simd.arrays import copy_into, empty_array, zero_array
from spinbench.backends.numba.simd.formulas import formula, formula_pair
from spinbench.backends.numba.simd.functions import larger, smaller


@nb.njit
def _made(n, like):
    flat, cube = zero_array(n, like.dtype), empty_array((n, 2, 3), np.uint16)
    for i in range(n):
        for j in range(2):
            for k in range(3):
                cube[i, j, k] = 100 * i + 10 * j + k
    return flat, cube


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [0, 1, 37])
def test_arrays_have_shape_type_and_zeros(n: int, kind: str) -> None:
    flat, cube = _made(n, np.ones(1, dtype=kind))
    assert (flat.dtype, cube.dtype) == (np.dtype(kind), np.dtype(np.uint16))
    np.testing.assert_array_equal(flat, np.zeros(n))
    i, j, k = np.indices((n, 2, 3))
    np.testing.assert_array_equal(cube, 100 * i + 10 * j + k)
    assert cube.flags.c_contiguous


def test_copies_are_whole_or_refused() -> None:
    copied = nb.njit(lambda target, source: copy_into(target, source))
    source = np.arange(24.0).reshape(2, 3, 4)
    target = np.zeros((2, 3, 4))
    copied(target, source)
    np.testing.assert_array_equal(target, source)
    copied(target[1], source[0])
    np.testing.assert_array_equal(target[1], source[0])
    with pytest.raises(ValueError, match="different sizes"):
        copied(target, source[:1])
    with pytest.raises(TypingError):
        copied(target[:, :, 1], source[:, :, 1])


PAIRS = [(1.0, 2.0), (2.0, 1.0), (np.nan, 1.0), (1.0, np.nan), (3, 2), (-3, 2)]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_larger_and_smaller_are_pythons(a: Any, b: Any) -> None:
    found = nb.njit(lambda a, b: (larger(a, b), smaller(a, b)))(a, b)
    np.testing.assert_array_equal(found, (max(a, b), min(a, b)))


@formula
def _polynomial(x, y):
    return -(x * y) + x / y - 3.0


@formula_pair
def _mixed(x, y):
    return (x ^ (y >> 3)) * y, x - y


def test_formulas_compute_what_their_python_says() -> None:
    x, y = 1.75, 0.3
    assert nb.njit(lambda x, y: _polynomial(x, y))(x, y) == pytest.approx(-(x * y) + x / y - 3, rel=1e-15)
    a, b = np.uint64(977), np.uint64(65)
    first, second = nb.njit(lambda a, b: _mixed(a, b))(a, b)
    assert (int(first), int(second)) == ((977 ^ (65 >> 3)) * 65, 977 - 65)
