"""Explicit vectors in compiled code, against NumPy."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba.simd import memory as mem
from spinbench.backends.numba.simd import vector_sums
from spinbench.backends.numba.simd import vectors as vec
from spinbench.backends.numba.simd.functions import sigmoid, softplus
from spinbench.backends.numba.simd.memory import address


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
