"""Memory is asked for before it is taken. A CPU reports none, so that its limit is set by the test."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from spinbench import run
from spinbench.backends.jax import JaxBackend, check_memory, free_bytes
from spinbench.backends.peers.library import OnJax
from spinbench.errors import UnsupportedError
from spinbench.models import generators


class Device:
    """What the guard reads of a JAX device."""

    device_kind = "a small device"

    def __init__(self, stats):
        self._stats = stats

    def memory_stats(self):
        return self._stats


@pytest.fixture
def limit(monkeypatch):
    """Lets the CPU report so many free bytes."""

    def set_limit(count):
        monkeypatch.setattr("spinbench.backends.jax.free_bytes", lambda device: count)

    return set_limit


def test_what_a_device_tells_of_its_memory():
    assert free_bytes(Device(None)) is None
    assert free_bytes(Device({"bytes_in_use": 1})) is None
    assert free_bytes(Device({"bytes_limit": 100, "bytes_in_use": 30})) == 70
    check_memory(70, Device({"bytes_limit": 100, "bytes_in_use": 30}), "two arrays")
    with pytest.raises(UnsupportedError, match=r"two arrays need 0.50 GiB on a small device, where 1.00 MiB are free"):
        check_memory(2**29, Device({"bytes_limit": 2**21, "bytes_in_use": 2**20}), "two arrays")


def test_a_run_that_fits_is_the_same_with_the_guard(limit):
    model = generators.grid(3, 3)

    def marginals():
        return run(model, "gibbs", "jax", 20, chains=4, precision="float32").marginals

    free = marginals()
    limit(2**40)
    assert np.array_equal(marginals(), free)


def test_tables_that_do_not_fit_are_refused(limit):
    limit(1000)
    with pytest.raises(UnsupportedError, match=r"tables and states need .* MiB on cpu, where 0.00 MiB are free"):
        run(generators.grid(10, 10), "gibbs", "jax", 20)


def test_a_batch_that_does_not_fit_is_refused_before_it_runs(limit):
    backend = JaxBackend(precision="float32")
    limit(2**20)
    x = backend.to_device(np.ones((256, 512)))  # half of what is free
    grow = backend.compile(lambda x: backend.xp.concat([x, x, x], axis=0))
    with pytest.raises(UnsupportedError, match=r"results and temporary arrays need 1.50 MiB on cpu"):
        grow(x)
    halve = backend.compile(lambda x: x[:128] + x[128:])
    assert float(halve(x).sum()) == 2 * 128 * 512
    assert halve(x).shape == (128, 512)


def test_memory_that_runs_out_on_the_way_is_told_in_a_sentence():
    def raise_error(message):
        raise jax.errors.JaxRuntimeError(message)

    backend = JaxBackend()
    full = backend.compile(lambda x: raise_error("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 byte."))
    with pytest.raises(UnsupportedError, match=r"cpu is out of memory \(RESOURCE_EXHAUSTED.*\); fewer chains"):
        full(1.0)
    broken = backend.compile(lambda x: raise_error("INTERNAL: something else"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        broken(1.0)


def test_a_library_tells_of_memory_that_runs_out():
    kernel = OnJax()
    kernel.load_jax(JaxBackend(precision="float32"))
    with pytest.raises(UnsupportedError, match="backend jax: cpu is out of memory"), kernel._scope():
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
    with pytest.raises(jax.errors.JaxRuntimeError, match="else"), kernel._scope():
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")


def test_transfers_are_timed_apart():
    model = generators.grid(3, 3)
    seconds = run(model, "gibbs", "jax", 20, chains=4).seconds
    assert 0 < seconds.transfer < seconds.compile + seconds.burn_in + seconds.run
    assert seconds.total == seconds.plan + seconds.compile + seconds.burn_in + seconds.run
    assert run(model, "exact", "numpy").seconds.transfer == 0
