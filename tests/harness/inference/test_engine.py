"""The generic engine: reductions, batching invariance and keys, on every array backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spinbench.api import Backend, Program
from spinbench.inference import registry
from spinbench.inference.engine import ProgramEngine

REDUCTIONS = {"total": "sum", "weight": "logsumexp", "draw": "last"}


def walk(backend: Backend) -> Program:
    """A random walk of (3, C) whose start, steps and observations are easy to follow."""
    xp = backend.xp

    def init(key: Any, tables: Any, start: Any) -> Any:
        return start + tables[0][:, None], xp.zeros_like(start[0])

    def step(key: Any, tables: Any, state: Any) -> Any:
        x, scale = state
        return x + backend.uniform(key, x.shape) + 0 * scale, scale

    def warm(key: Any, tables: Any, state: Any) -> Any:
        return state[0], state[1] + 1

    def adapt(tables: Any, state: Any, last: bool) -> Any:
        return state[0], state[1] * (10 if last else 1)

    def observe(tables: Any, state: Any) -> Any:
        return {"total": state[0], "weight": state[0][0], "draw": state[1]}

    def look(key: Any, tables: Any, state: Any) -> Any:
        return {"first": state[0][0], "number": backend.uniform(key, state[1].shape)}

    return Program(init, step, observe, warm, adapt, look)


def engine(name: str, precision: Any) -> ProgramEngine:
    backend = registry.backend_class(name)(precision=precision)
    return ProgramEngine(walk(backend), backend, (np.array([0.0, 1.0, 2.0]),), REDUCTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_batches_reduce_the_steps(name: str, precision: str) -> None:
    whole, cut = engine(name, precision), engine(name, precision)
    start = np.zeros((3, 2), dtype=np.int8)
    state = whole.adapt(whole.warm(whole.init(5, start), 3), last=True)
    state, one = whole.advance(state, 10)
    parts = []
    other = cut.adapt(cut.warm(cut.warm(cut.init(5, start), 1), 2), last=True)
    for steps in (1, 4, 5):
        other, batch = cut.advance(other, steps)
        parts.append(batch)
    rtol = 1e-5 if precision == "float32" else 1e-12
    np.testing.assert_allclose(one["total"], sum(part["total"] for part in parts), rtol=rtol)
    np.testing.assert_allclose(one["weight"], np.logaddexp.reduce([part["weight"] for part in parts]), rtol=rtol)
    np.testing.assert_array_equal(one["draw"], [30.0, 30.0])
    assert one["total"].dtype == precision


@pytest.mark.parametrize(("name", "steps"), [("numpy", 3_000), ("jax", 1_000_000)])
def test_sums_of_single_precision_do_not_drift(name: str, steps: int) -> None:
    """Plain sums of so many float32 are 3e-5 and 1e-2 off."""

    def still(backend: Backend) -> Program:
        def observe(tables: Any, state: Any) -> Any:
            return {"total": state}

        return Program(lambda key, tables, start: start + tables[0][:, None], lambda key, tables, s: s, observe)

    values = np.array([0.1, 0.3, 0.7])
    backend = registry.backend_class(name)(precision="float32")
    bound = ProgramEngine(still(backend), backend, (values,), {"total": "sum"})  # type: ignore[arg-type]
    _, batch = bound.advance(bound.init(0, np.zeros((3, 2), dtype=np.int8)), steps)
    expected = np.repeat(values.astype(np.float32).astype(np.float64)[:, None] * steps, 2, axis=1)
    np.testing.assert_allclose(batch["total"], expected, rtol=2e-7)


def test_jax_scopes_64_bit_mode_to_its_calls() -> None:
    import jax.numpy as jnp

    bound = engine("jax", "float64")
    _, batch = bound.advance(bound.init(0, np.zeros((3, 2), dtype=np.int8)), 1)
    assert batch["total"].dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32


@pytest.mark.parametrize("name", ["numpy", "jax"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_step_that_asks_for_its_index_gets_it(name: str, compiled: bool) -> None:
    """1, 2, … from the start of burn-in, however a run is cut."""
    backend = registry.backend_class(name)()

    def step(key: Any, tables: Any, state: Any, *, index: Any) -> Any:
        return 0 * state + index

    program = Program(lambda key, tables, start: start, step, lambda tables, s: {"total": s}, compiled=compiled)
    bound = ProgramEngine(program, backend, (np.zeros(1),), {"total": "sum"})  # type: ignore[arg-type]
    state = bound.warm(bound.init(0, np.zeros((1, 2), dtype=np.int8)), 3)
    state, first = bound.advance(state, 2)
    _, second = bound.advance(state, 3)
    np.testing.assert_array_equal(first["total"], np.full((1, 2), 4 + 5))
    np.testing.assert_array_equal(second["total"], np.full((1, 2), 6 + 7 + 8))


@pytest.mark.parametrize("name", ["numpy", "numba", "jax"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_steps_on_the_host_get_numpy_arrays_on_every_backend(name: str, precision: Any) -> None:
    seen = []

    def step(key: Any, tables: Any, state: Any) -> Any:
        seen.append((type(tables[0]), tables[0].dtype, type(state)))
        return state + np.random.default_rng(key).random(state.shape, dtype=state.dtype)

    program = Program(lambda key, tables, start: start + 0, step, lambda tables, s: {"total": s}, compiled=False)
    backend = registry.backend_class(name)(precision=precision)
    start, runs = np.zeros((2, 3), dtype=np.int8), []
    for seed in (4, 4, 5):
        bound = ProgramEngine(program, backend, (np.zeros(1),), {"total": "sum"})  # type: ignore[arg-type]
        runs.append(bound.advance(bound.init(seed, start), 4)[1]["total"])
    assert set(seen) == {(np.ndarray, np.dtype(precision), np.ndarray)}
    assert runs[0].dtype == precision
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).all()
