"""Sweeps in tiles are those of one variable after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit

from spinbench.api import Backend
from spinbench.foundation.trees import map_arrays
from spinbench.inference import registry
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import Scan, layout, scan_tables
from spinbench.mathematics.heat_bath import tiles
from spinbench.mathematics.heat_bath.tiles import Tiles, in_tiles
from spinbench.models import PairwiseModel

CHAINS = 7
BETA = np.array([0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 30.0])


def tables(n: int, size: float) -> Scan:
    """Of a dense model with couplings of that size."""
    rng = np.random.default_rng([n, int(10 * size)])
    first, second = np.triu_indices(n, 1)
    model = PairwiseModel(rng.normal(0, 1, n), np.stack([first, second], axis=1), rng.normal(0, size, len(first)))
    plan = layout(model, "raster")
    return scan_tables(model, plan, compressed_rows(model, plan.order))


def put(backend: Backend, tree: Any) -> Any:
    return map_arrays(lambda leaf: backend.to_device(np.asarray(leaf)), tree)


def swept(scan: Scan, s: np.ndarray, u: np.ndarray, beta: np.ndarray, *, backward: bool) -> tuple[np.ndarray, ...]:
    """(s, p), variable by variable."""
    s, p = s.copy(), np.zeros_like(s)
    for i in reversed(range(len(s))) if backward else range(len(s)):
        p[i] = expit(beta * (scan.biases[i] + scan.weights[i] @ s))
        s[i] = u[i] < p[i]
    return s, p


@pytest.fixture(params=["cpu", "gpu"])
def form(request, monkeypatch):
    """Tiles as they are on a device, here."""
    monkeypatch.setitem(tiles.WIDTH, "cpu", tiles.WIDTH[request.param])
    monkeypatch.setitem(tiles.AT_ONCE, "cpu", tiles.AT_ONCE[request.param])


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("size", [0.1, 8.0])
@pytest.mark.parametrize(("n", "backend"), [*((n, "numpy") for n in (2, 31, 32, 33, 300)), (300, "jax")])
def test_sweeps_are_those_of_one_variable_after_another(n, backend, size, backward, form):
    scan, arrays = tables(n, size), registry.backend_class(backend)()
    assert in_tiles(scan)
    rng = np.random.default_rng(n)
    s, u = rng.integers(0, 2, (n, CHAINS)).astype(float), rng.random((n, CHAINS))
    if size < 1:
        u[0, :5] = 0.0
    for beta in (None, BETA):
        wanted = swept(scan, s, u, np.ones(CHAINS) if beta is None else beta, backward=backward)

        def sweep(t, s, p, u, *beta):
            return Tiles(arrays).sweep(t, s, p, u, backward=backward, beta=beta[0] if beta else None)

        given = [arrays.to_device(a) for a in (s, 0 * s, u, *([] if beta is None else [beta]))]
        found = arrays.compile(sweep)(put(arrays, scan), *given)
        np.testing.assert_array_equal(arrays.to_host(found[0]), wanted[0])
        np.testing.assert_allclose(arrays.to_host(found[1]), wanted[1], atol=1e-12)


@pytest.mark.parametrize("n", [2, 33, 300])
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_forced_fields_and_conditionals(backend, n, form):
    scan, arrays = tables(n, 1.0), registry.backend_class(backend)()
    rng = np.random.default_rng(n)
    s, target = rng.integers(0, 2, (n, CHAINS)).astype(float), rng.integers(0, 2, n).astype(float)
    mixed, wanted = s.copy(), np.zeros(CHAINS)
    for i in range(n):
        x = scan.biases[i] + scan.weights[i] @ mixed
        wanted += log_expit((2 * target[i] - 1) * x)
        mixed[i] = target[i]

    def summed(t, s, target):
        def seen(x, target):
            return (2 * target - 1) * x - arrays.xp.logaddexp((2 * target - 1) * x, 0 * x)

        of = Tiles(arrays)
        return of.sum_forced_fields(t, s, target, seen, s[0, :] * 0), of.conditionals(t, s)

    found, p = arrays.compile(summed)(put(arrays, scan), arrays.to_device(s), arrays.to_device(target))
    np.testing.assert_allclose(arrays.to_host(found), wanted, atol=1e-9)
    np.testing.assert_allclose(arrays.to_host(p), expit(scan.biases[:, None] + scan.weights @ s), atol=1e-12)
