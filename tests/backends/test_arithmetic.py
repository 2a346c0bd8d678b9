"""Each backend's faster array operations give what the plain formulas give."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.api import Precision
from spinbench.backends.numpy import AT_ONCE, NumpyArithmetic, NumpyBackend
from spinbench.foundation.arithmetic import Arithmetic
from spinbench.inference import registry

BACKENDS = [name for name in ("numpy", "numba", "jax", "torch") if not registry.missing(registry.backend_class(name))]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_operations_are_the_formulas(name: str, precision: Precision) -> None:
    backend = registry.backend_class(name)(precision=precision)
    arithmetic, plain = backend.operations(Arithmetic), Arithmetic(NumpyBackend(precision=precision))
    x, y, column = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(precision)
    column = column[:, :1]

    def put(array: np.ndarray) -> object:
        return backend.to_device(array)

    pairs = {
        "add": (arithmetic.add(put(x), put(y)), plain.add(x, y)),
        "add_product": (arithmetic.add_product(put(x), put(y), put(x)), plain.add_product(x, y, x)),
        "one factor a row": (arithmetic.add_product(put(x), put(y), put(column)), plain.add_product(x, y, column)),
        "window": (arithmetic.window(put(x), 2, 3), x[2:5]),
    }
    for case, (found, expected) in pairs.items():
        np.testing.assert_allclose(backend.to_host(found), expected, rtol=8 * np.finfo(precision).eps, err_msg=case)
    assert type(arithmetic) is not Arithmetic


@pytest.mark.parametrize("name", BACKENDS)
def test_compensated_sums_lose_no_digits(name: str) -> None:
    backend = registry.backend_class(name)(precision="float32")
    arithmetic = backend.operations(Arithmetic)
    terms = np.array([[0.1, 1 / 3], [-0.7, 1e-3]], dtype=np.float32)
    total, excess = backend.to_device(terms * 0), backend.to_device(terms * 0)
    for _ in range(4000):
        total, excess = arithmetic.add_compensated(total, excess, backend.to_device(terms))
    np.testing.assert_allclose(backend.to_host(total), 4000 * terms.astype(np.float64), rtol=5e-7)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2 * AT_ONCE + 3, 1), (700, 100), (2, 2 * AT_ONCE)])
def test_sums_in_parts(shape: tuple[int, ...]) -> None:
    backend = NumpyBackend(precision="float32")
    parts, plain = NumpyArithmetic(backend), Arithmetic(backend)
    total, excess, values, scale = np.random.default_rng(0).normal(size=(4, *shape)).astype(np.float32)
    excess = np.float32(1e-7) * excess
    compensated = plain.add_compensated(total, excess, values)
    for found, expected in zip(parts.add_compensated(total.copy(), excess.copy(), values), compensated, strict=True):
        assert np.array_equal(found, expected)
    for factor in (scale, scale[:, :1] if len(shape) == 2 else scale):
        if shape:
            mixed = plain.add_product(total, values, factor)
            assert np.array_equal(parts.add_product(total.copy(), values, factor), mixed)
