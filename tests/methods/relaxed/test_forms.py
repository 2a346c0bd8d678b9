"""Block Gibbs and DHMC, all forms, on NumPy and JAX, against enumeration and from exact draws."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from relaxed_kernels import FORMS, LONG_STEPS, MODELS, random_model
from small_graphs import exact_start, keeps_law, law

from spinbench.api import Backend, Estimate, Method, Precision
from spinbench.api.trace import Trace
from spinbench.backends.jax import JaxBackend
from spinbench.backends.numpy import NumpyBackend
from spinbench.foundation.trees import map_arrays
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.family import draw_units
from spinbench.models import PairwiseModel


def sample(method: Method, model: PairwiseModel, backend: Backend, samples: int, chains: int = 64) -> Estimate:
    """From exact draws, so that chains frozen between far modes have the right mixture."""
    tables = method.plan(model)
    trace = Trace(method.reductions, chains)
    return drive(
        ProgramEngine(method.program(backend), backend, tables, method.reductions),
        trace,
        lambda trace: method.estimate(model, tables, trace),
        Budget(samples=samples, burn_in=60),
        start=exact_start(model, chains),
        warm_up=partial(method.warm_up, tables),
        seed=1,
        checkpoints=2,
    ).estimate


# Compilation takes seconds a case on JAX: each form's arithmetic once, the rest is shared with NumPy.
CASES = [
    *((name, kind, "numpy", "float64", {}) for name in FORMS for kind in MODELS),
    *((name, "dense", "numpy", "float32", {}) for name in FORMS),
    *((name, "sparse", "numpy", "float64", {"log_z": "zero_state", "draws": 150 * 96}) for name in FORMS),
    ("block_gibbs/harmonium", "dense", "jax", "float64", {}),
    ("dhmc/identity", "dense", "jax", "float64", {}),
    ("dhmc/preconditioned", "dense", "jax", "float32", {}),
    ("block_gibbs/sparse", "groups", "jax", "float32", {}),
    ("dhmc/sparse", "groups", "jax", "float32", {}),
]


@pytest.mark.parametrize(("name", "kind", "backend", "precision", "changes"), CASES, ids=str)
def test_agrees_with_enumeration(
    name: str, kind: str, backend: str, precision: Precision, changes: dict[str, Any]
) -> None:
    model, method = MODELS[kind], replace(FORMS[name], **changes)  # type: ignore[type-var]
    kinds = {"numpy": NumpyBackend, "jax": JaxBackend}
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        estimate = sample(method, model, kinds[backend](precision=precision), 150 if backend == "numpy" else 1000, 96)
    states, p, log_z = law(model)
    assert (np.abs(estimate.marginals - states @ p) <= 4 * estimate.marginals_error_bound + 1e-6).all()
    assert estimate.marginals_error_bound.max() < 0.1
    assert ("zero_state" if changes else "mirrored") in estimate.log_z_estimates
    for value, error in estimate.log_z_estimates.values():
        assert abs(value - log_z) <= 4 * error + 1e-6 < 1.3


@pytest.mark.parametrize("groups", [(), ((0, 2),)], ids=["free", "groups"])
@pytest.mark.parametrize("name", LONG_STEPS)
def test_exact_draws_stay_exact(name: str, groups: Any) -> None:
    """s ~ p(s), x ~ p(x|s), three steps; then s ~ p(s|x) has the law p(s) again: χ² over all states."""
    model = random_model(4, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], 8, 1.5, groups=groups)
    method, backend, start = LONG_STEPS[name], NumpyBackend(), exact_start(model, 40_000)
    tables, key = map_arrays(backend.to_device, method.plan(model)), backend.key(9)
    program = method.program(backend)
    state = program.init(backend.fold_in(key, 0), tables, start.astype(float))
    for t in range(1, 4):
        state = program.step(backend.fold_in(key, t), tables, state)
    statistics = program.observe(tables, state)
    assert name.startswith("block") or 0.4 < statistics["accept"].mean() < 0.97
    draws = draw_units(backend, backend.fold_in(key, 99), tables.sites, statistics["p"])
    assert keeps_law(model, draws)
    assert np.any(draws != start, axis=0).mean() > 0.3


def test_too_few_draws_leave_log_z_open() -> None:
    estimate = sample(BlockGibbs(), MODELS["dense"], NumpyBackend(), 6, 4)
    assert (estimate.log_z, estimate.log_z_se, estimate.log_z_estimates) == (None, None, {})
    assert estimate.diagnostics["log_z_draws"] == 24
    assert np.isfinite(estimate.marginals).all()
