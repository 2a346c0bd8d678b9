"""NumPy's sums in place and in parts give what the plain formulas give."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.api import Backend
from spinbench.backends.numpy import AT_ONCE, NumpyBackend


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2 * AT_ONCE + 3, 1), (700, 100), (2, 2 * AT_ONCE)])
def test_sums_in_parts(shape: tuple[int, ...]) -> None:
    backend = NumpyBackend(precision="float32")
    total, excess, values, scale = np.random.default_rng(0).normal(size=(4, *shape)).astype(np.float32)
    excess = np.float32(1e-7) * excess
    plain = Backend.add_compensated(backend, total, excess, values)
    mixed = Backend.add_product(backend, total, values, scale)
    column = Backend.add_product(backend, total, values, scale[:, :1]) if len(shape) == 2 else None
    for found, expected in zip(backend.add_compensated(total.copy(), excess.copy(), values), plain, strict=True):
        assert np.array_equal(found, expected)
    if shape:
        assert np.array_equal(backend.add_product(total.copy(), values, scale), mixed)
    if column is not None:
        assert np.array_equal(backend.add_product(total.copy(), values, scale[:, :1]), column)


def test_long_compensated_sums_keep_small_terms() -> None:
    backend = NumpyBackend(precision="float32")
    total, excess = np.full((3, 2), 2.0**24, dtype=np.float32), np.zeros((3, 2), dtype=np.float32)
    for _ in range(1000):
        total, excess = backend.add_compensated(total, excess, np.ones((3, 2), dtype=np.float32))
    assert np.array_equal(total, np.full((3, 2), 2.0**24 + 1000))
