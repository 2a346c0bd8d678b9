"""CuPy's arrays; `spinbench check --backend cupy --device gpu` looks at what its programs compute."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnavailableError, UnsupportedError
from spinbench.inference import registry
from spinbench.models import generators

HERE = all(importlib.util.find_spec(name) for name in ("cupy", "array_api_compat"))
installed = pytest.mark.skipif(not HERE, reason="CuPy is not installed: pip install cupy-cuda13x array-api-compat")


@pytest.fixture
def backend() -> spinbench.api.Backend:
    """On a GPU."""
    try:
        return registry.backend_class("cupy")(device="gpu")
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.mark.skipif(HERE, reason="CuPy is installed")
def test_without_cupy_the_command_that_installs_it_is_named() -> None:
    with pytest.raises(UnavailableError, match="pip install cupy-cuda13x array-api-compat"):
        spinbench.run(generators.grid(2, 2), "gibbs", "cupy", 10, device="gpu")


def test_it_has_no_cpu() -> None:
    with pytest.raises(UnsupportedError, match="backend cupy runs on device=gpu; device=cpu was asked for"):
        registry.backend_class("cupy")(device="cpu")


@installed
@pytest.mark.gpu
def test_what_is_handed_in_stays(backend: spinbench.api.Backend) -> None:
    numbers = np.arange(6.0).reshape(3, 2)
    array = backend.to_device(numbers)
    changed = backend.update(array, 1, backend.to_device(np.ones(2)))
    backend.add(array, changed)
    np.testing.assert_array_equal(numbers, np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(backend.to_host(changed), [[0, 1], [1, 1], [4, 5]])


@installed
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("method", ["gibbs", "block_gibbs", "dhmc", "bp"])
def test_marginals_are_the_exact_ones(backend: spinbench.api.Backend, method: str, precision: str) -> None:
    model = generators.grid(4, 4, seed=2) if method != "bp" else generators.grid(1, 9, seed=2)
    found = spinbench.run(model, method, "cupy", 400, chains=256, seed=4, device="gpu", precision=precision)
    exact = spinbench.exact(model)
    error = np.abs(np.asarray(found.marginals) - np.asarray(exact.marginals))
    if found.marginals_se is None:
        assert error.max() < (1e-9 if precision == "float64" else 1e-5)
    else:  # 5 of 16 standard errors: 1e-5
        assert (error < 5 * np.asarray(found.marginals_se) + 1e-6).all()
