"""Sweeps in tiles are those of one variable after another."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy.special import expit, log_expit

from spinbench.api import Backend
from spinbench.backends.jax import JaxBackend, dense_tiles
from spinbench.foundation.arithmetic import make_operations
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


@pytest.mark.parametrize(("n", "chains"), [(2, 1), (31, 33), (33, 32), (75, 40)])
@pytest.mark.parametrize("backward", [False, True])
def test_members_of_a_tile_in_sequence(n, chains, backward, monkeypatch):
    monkeypatch.setattr(dense_tiles, "WIDTH", 32)
    monkeypatch.setattr(dense_tiles, "PANEL", 4)
    monkeypatch.setattr(dense_tiles.SequentialTiles, "devices", {"cpu"})
    backend, scan, rng = JaxBackend(precision="float32"), tables(n, 1.0), np.random.default_rng(n)
    # Numbers whose sums float32 has exactly.
    scan = scan._replace(biases=np.rint(4 * scan.biases) / 4, weights=np.rint(4 * scan.weights) / 4)
    s, u, beta = (
        rng.integers(0, 2, (n, chains)).astype(float),
        rng.random((n, chains)),
        rng.choice([0.0, 0.5, 1.0], chains),
    )
    in_sequence = make_operations(backend, Tiles)
    assert isinstance(in_sequence, dense_tiles.SequentialTiles)
    assert dense_tiles.is_kernel_right("cpu")
    for at_beta in (None, beta):
        expected = swept(scan, s, u, np.ones(chains) if at_beta is None else beta, backward=backward)

        def sweep(t, s, p, u, beta, at_beta=at_beta):
            return in_sequence.sweep(t, s, p, u, backward=backward, beta=None if at_beta is None else beta)

        arrays = [backend.to_device(a) for a in (s, 0 * s, u, beta)]
        states, p = map(backend.to_host, backend.compile(sweep)(put(backend, scan), *arrays))
        np.testing.assert_array_equal(states, expected[0])
        np.testing.assert_allclose(p, expected[1], atol=1e-6)


def test_a_kernel_of_tiles_that_fails_or_errs_is_left(monkeypatch, capsys):
    is_right, draw = dense_tiles.is_kernel_right.__wrapped__, dense_tiles.draw_in_sequence
    monkeypatch.setattr(dense_tiles, "PANEL", 4)
    within_a_program = jax.jit(lambda x: x + is_right("cpu"))
    assert within_a_program(1) == 2
    monkeypatch.setattr(dense_tiles, "draw_in_sequence", lambda *tile, **_: draw(*tile, interpret=False))
    assert not is_right("cpu")
    monkeypatch.setattr(dense_tiles, "draw_in_sequence", lambda fields, *_, **__: (fields, fields > 0))
    assert not is_right("cpu")
    failed, erred = capsys.readouterr().err.splitlines()
    assert failed.startswith("spinbench: dense models are swept by repeated products")
    assert "Error" in failed
    assert erred.endswith("its sums of whole numbers are wrong")


def test_the_kernel_of_tiles_is_lowered_for_a_gpu():
    shapes = (128, 1000), (128, 128), (128, 1000), (128, 1000), (1000,)
    arrays = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    traced = jax.jit(dense_tiles.draw_in_sequence).trace(*arrays)
    assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


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
