"""PyTorch's arrays; what its programs compute, the conformance suite looks at (tests/test_conformance.py)."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnavailableError, UnsupportedError
from spinbench.inference import registry
from spinbench.models import generators

HERE = all(importlib.util.find_spec(name) for name in ("torch", "array_api_compat"))
installed = pytest.mark.skipif(not HERE, reason="PyTorch is not installed: pip install 'spinbench[torch]'")


@pytest.mark.skipif(HERE, reason="PyTorch is installed")
def test_without_pytorch_the_command_that_installs_it_is_named() -> None:
    with pytest.raises(UnavailableError, match=r"pip install 'spinbench\[torch\]'"):
        spinbench.run(generators.grid(2, 2), "gibbs", "torch", 10)


@installed
def test_random_numbers_are_those_of_numpy() -> None:
    for precision in ("float64", "float32"):
        torch, numpy = (registry.backend_class(name)(precision=precision) for name in ("torch", "numpy"))
        for draw in ("uniform", "normal"):
            found, expected = (
                backend.to_host(getattr(backend, draw)(backend.fold_in(backend.key(2**70), 3), (5, 7)))
                for backend in (torch, numpy)
            )
            assert found.dtype == precision
            np.testing.assert_array_equal(found, expected)


@installed
def test_answers_are_those_of_numpy_to_the_last_digits() -> None:
    model = generators.grid(4, 5, seed=2)
    found, expected = (spinbench.run(model, "gibbs", name, 200, chains=8, seed=4) for name in ("torch", "numpy"))
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=1e-12)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-12)


@installed
def test_what_is_handed_in_stays() -> None:
    backend = registry.backend_class("torch")()
    numbers = np.arange(6.0).reshape(3, 2)
    array = backend.to_device(numbers)
    changed = backend.update(array, 1, backend.to_device(np.ones(2)))
    backend.add(array, changed)
    np.testing.assert_array_equal(numbers, np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(backend.to_host(changed), [[0, 1], [1, 1], [4, 5]])


@installed
def test_gradients() -> None:
    backend = registry.backend_class("torch")()
    found = backend.grad(lambda x: backend.xp.sum(x[0] * x[0] * x[1]))((backend.to_device(np.ones(3)),) * 2)
    np.testing.assert_array_equal(np.stack([backend.to_host(part) for part in found]), [[2, 2, 2], [1, 1, 1]])


@installed
def test_a_device_that_is_not_there_is_refused() -> None:
    import torch

    kind = registry.backend_class("torch")
    with pytest.raises(UnsupportedError, match="device=cpu or gpu; device=tpu was asked for"):
        kind(device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(UnsupportedError, match="finds no device=gpu"):
            kind(device="gpu")
