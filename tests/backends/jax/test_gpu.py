"""Programs on a CUDA device, where there is one: the same answers as on the CPU, and no more memory than there is."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import exact, run
from spinbench.backends.jax import JaxBackend
from spinbench.errors import UnsupportedError
from spinbench.models import generators
from spinbench.testing import backend_checks, method_checks

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True, scope="module")
def gpu():
    try:
        JaxBackend(device="gpu")
    except UnsupportedError as reason:
        pytest.skip(f"not measured on a GPU: {reason}")


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("method", "samples"), [("gibbs", 400), ("block_gibbs", 2000), ("dhmc", 2000)])
def test_marginals(method, samples, precision):
    model = generators.grid(4, 4, c2=0.5)
    found = run(model, method, "jax", samples, chains=256, precision=precision, device="gpu", seed=3)
    error = np.abs(found.marginals - exact(model).marginals)
    assert (error <= 5 * found.marginals_se + 1e-4).all()


def test_random_numbers_are_those_of_the_cpu():
    there, here = JaxBackend(precision="float32", device="gpu"), JaxBackend(precision="float32")

    def numbers(backend):
        draw = backend.compile(lambda key: backend.uniform(backend.fold_in(key, 7), (33, 5)))
        return backend.to_host(draw(backend.key(1)))

    assert np.array_equal(numbers(there), numbers(here))


def test_more_than_fits_is_refused():
    backend = JaxBackend(precision="float32", device="gpu")
    spread = backend.compile(lambda x: backend.xp.broadcast_to(x, (2**20, 2**20)))
    with pytest.raises(UnsupportedError, match=r"need 4096.00 GiB on .*, where .* GiB are free"):
        spread(backend.to_device(np.zeros(2**20)))


CHECKS = [*backend_checks("jax", "gpu"), *method_checks("gibbs", "jax", chains=256, device="gpu")]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(check):
    check()
