"""Arrays that kernels make, addresses, and explicit vectors in compiled code: as NumPy and Python have them."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest
from numba.core.errors import TypingError

from spinbench.backends.numba.simd import memory as mem
from spinbench.backends.numba.simd import vector_sums
from spinbench.backends.numba.simd import vectors as vec
from spinbench.backends.numba.simd.arrays import copy_into, empty_array, zero_array
from spinbench.backends.numba.simd.formulas import formula, formula_pair
from spinbench.backends.numba.simd.functions import larger, sigmoid, smaller, softplus
from spinbench.backends.numba.simd.memory import address, load, load_vector, store


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


@nb.njit(forceinline=True)
def _store_elsewhere(x, number):
    store(address(x, 0), 0, number)


@nb.njit
def _change_between_loads(x, y):
    before = load(address(x, 0), 0)
    _store_elsewhere(y, before + 1.0)
    return load(address(x, 0), 0) - before


def test_a_load_after_a_store_to_the_same_array_is_of_what_was_stored() -> None:
    x = np.zeros(1)
    assert _change_between_loads(x, x) == 1.0


@nb.njit
def _chain(x):
    """Each step loads what the one before it stored."""
    elements = address(x, 0)
    for i in range(x.size - 1):
        store(elements, i + 1, load(elements, i) + 1)


@pytest.mark.parametrize("number", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_steps_that_wait_for_each_other_are_not_made_a_vector(number: type) -> None:
    x = np.zeros(101, dtype=number)
    _chain(x)
    np.testing.assert_array_equal(x, np.arange(101))


@nb.njit
def _shift(x):
    elements = address(x, 0)
    store(elements, 0, load_vector(elements, 1))


def test_a_vector_may_be_stored_over_that_which_was_loaded() -> None:
    x = np.arange(9.0)
    _shift(x)
    np.testing.assert_array_equal(x, [*range(1, 9), 8])


@nb.njit(error_model="numpy")
def _integer_to_real_conversion(x, y, places, out):
    p, q, to = address(x, 0), address(y, 0), address(out, 0)
    a, b = mem.load_vector(p, 0), mem.load_vector(q, 0)
    n = x.size
    mem.store(to, 0, a * b - a / b + -a)
    mem.store(to, n, vec.choose((a > b) & (b >= 0.25), a, 2 * b))
    mem.store(to, 2 * n, sigmoid(a) + softplus(b))
    mem.store(to, 3 * n, mem.gather_indexed(p, address(places, 0), 0))
    mem.store(to, 4 * n, vec.count_up(a) + vec.spread(x[1]))
    out[5 * n] = vec.total(a)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_reals(kind):
    n = 64 // np.dtype(kind).itemsize
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n)).astype(kind)
    places = rng.permutation(n).astype(np.uint32)
    out = np.empty(5 * n + 1, dtype=kind)
    _integer_to_real_conversion(x, y, places, out)
    expected = [
        x * y - x / y - x,
        np.where((x > y) & (y >= 0.25), x, 2 * y),
        1 / (1 + np.exp(-x)) + np.log1p(np.exp(y)),
        x[places],
        np.arange(n) + x[1],
        [x.sum()],
    ]
    np.testing.assert_allclose(out, np.concatenate(expected), rtol=2e-5 if kind == "float32" else 1e-12, atol=1e-6)


@nb.njit
def _words(x, y, lanes, out):
    p, to = address(x, 0), address(out, 0)
    a, b = mem.load_lanes(p, 0, lanes), mem.load_lanes(address(y, 0), 0, lanes)
    n = len(lanes)
    mem.store(to, 0, ((a ^ b) & ~a) | (b >> np.uint64(7)))
    mem.store(to, n, (a << np.uint64(3)) * b + a)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_words(n):
    x, y = np.random.default_rng(n).integers(0, 2**63, (2, n)).astype(np.uint64)
    out = np.empty(2 * n, dtype=np.uint64)
    _words(x, y, (0,) * n, out)
    seven, three = np.uint64(7), np.uint64(3)
    assert np.array_equal(out[:n], ((x ^ y) & ~x) | (y >> seven))
    assert np.array_equal(out[n:], (x << three) * y + x)


@nb.njit
def _tables(short, places, words, real, where, out, cut, found):
    to, index = address(out, 0), mem.load_vector(address(places, 0), 0)
    entries = mem.look_up(address(short, 0), 3, index)
    mem.store(to, 0, entries)
    mem.store(to, 32, vec.choose(entries == index, entries + np.uint16(1), entries ^ entries))
    out[64] = 2 * vec.any_lane(entries < index) + vec.any_lane(index < index)
    mem.store(address(cut, 0), 0, vector_sums.quarters(mem.load_lanes(address(words, 0), 0, (0,) * 8)))
    for half in (0, 8):
        rows = mem.load_lanes(address(where, 0), half, (0,) * 8)
        mem.store(address(found, 0), half, mem.gather(address(real, 0), rows))


def test_tables():
    rng = np.random.default_rng(1)
    short, places = rng.integers(0, 32, 40).astype(np.uint16), rng.integers(0, 32, 32).astype(np.uint16)
    words, real = rng.integers(0, 2**63, 8).astype(np.uint64), rng.normal(size=50)
    short[3:9] = np.arange(6)  # some entries equal their places
    where = rng.integers(0, 50, 16).astype(np.uint32)
    out, cut, found = np.zeros(65, dtype=np.uint16), np.empty(32, dtype=np.uint16), np.empty(16)
    _tables(short, places, words, real, where, out, cut, found)
    entries = short[3:][places]
    assert np.array_equal(out[:32], entries)
    assert np.array_equal(out[32:64], np.where(entries == places, entries + 1, 0))
    assert out[64] == 2 * (entries < places).any()
    assert np.array_equal(cut, words.view("<u2"))
    assert np.array_equal(found, real[where])
