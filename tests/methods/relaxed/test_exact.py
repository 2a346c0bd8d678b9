"""Block Gibbs and DHMC, all forms, on NumPy and JAX, against enumeration and from exact draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spinbench import reference
from spinbench.api import Backend, Method, Precision
from spinbench.api.trace import Trace
from spinbench.backends.jax import JaxBackend
from spinbench.backends.numpy import NumpyBackend
from spinbench.foundation.trees import map_arrays
from spinbench.inference.budget import Budget
from spinbench.inference.driver import Run, drive
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.methods.relaxed.family import draw_units
from spinbench.models import PairwiseModel

METHODS: dict[str, Method] = {
    "block_gibbs harmonium": BlockGibbs(),
    "block_gibbs identity": BlockGibbs(form="identity", diagonal="minshift"),
    "block_gibbs sparse": BlockGibbs(form="sparse"),
    "dhmc identity": DHMC(),
    "dhmc harmonium": DHMC(form="harmonium", diagonal="sdp"),
    "dhmc preconditioned": DHMC(form="preconditioned", diagonal="sdp"),
    "dhmc sparse": DHMC(form="sparse", diagonal="dd"),
}


def random_model(n: int, edges: list[tuple[int, int]], seed: int, scale: float = 1.0, **more: Any) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(
        rng.normal(size=n), np.array(edges).reshape(-1, 2), scale * rng.normal(size=len(edges)), **more
    )


ALL_PAIRS = [(i, j) for i in range(5) for j in range(i)]
MODELS = {
    "dense": random_model(5, ALL_PAIRS, 1, log_constant=3.0),
    "sparse": random_model(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], 2, 1.5),
    "disconnected": random_model(5, [(0, 2), (3, 4)], 3, 2.0),
    "one variable": random_model(1, [], 4),
    "zero couplings": random_model(4, [(0, 1), (1, 2), (2, 3)], 5, 0.0),
    "huge couplings": random_model(4, [(0, 1), (1, 2), (2, 3), (0, 3)], 6, 40.0),
    "huge biases": PairwiseModel.from_edges([800.0, -900.0, 0.3], [(0, 1), (1, 2)], [1.0, 2.0]),
    "groups": random_model(6, [(0, 3), (1, 4), (2, 5), (0, 5), (2, 4)], 7, groups=((4, 0, 1),)),
}


def sample(
    method: Method,
    model: PairwiseModel,
    backend: Backend,
    *,
    samples: int,
    chains: int = 64,
    seed: int = 1,
    engine: ProgramEngine | None = None,
) -> Run:
    """From exact draws, so that chains frozen between far modes have the right mixture."""
    tables = method.plan(model)
    start = reference.sample(model, chains, seed, method="enumeration").T.astype(np.int8)
    return drive(
        engine or ProgramEngine(method.program(backend), backend, tables, method.reductions),
        Trace(method.reductions),
        lambda trace: method.estimate(model, tables, trace),
        Budget(samples=samples, burn_in=60),
        start=start,
        seed=seed,
        checkpoints=2,
    )


def check(model: PairwiseModel, run: Run) -> None:
    exact = reference.solve(model, method="enumeration", cache=False)
    estimate = run.estimate
    gap = np.abs(estimate.marginals - exact.probabilities)
    assert (gap <= 4 * estimate.marginals_se + 1e-6).all(), gap / estimate.marginals_se
    assert estimate.marginals_se.max() < 0.1
    assert estimate.r_hat.shape == estimate.ess.shape == (model.num_variables,)
    assert "mirrored" in estimate.log_z_estimates
    for name, (value, error) in estimate.log_z_estimates.items():
        assert abs(value - exact.log_z) <= 4 * error + 1e-6, name
    assert estimate.log_z is not None


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_numpy_agrees_with_enumeration(name: str, kind: str) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        run = sample(METHODS[name], MODELS[kind], NumpyBackend(), samples=150, chains=96)
    check(MODELS[kind], run)


@pytest.mark.parametrize("name", METHODS)
def test_zero_state_on_all_steps_agrees_with_enumeration(name: str) -> None:
    method = replace(METHODS[name], log_z="zero_state")  # type: ignore[type-var]
    model = MODELS["sparse"]
    estimate = sample(method, model, NumpyBackend(), samples=300).estimate
    exact = reference.solve(model, method="enumeration", cache=False).log_z
    assert list(estimate.log_z_estimates) == ["zero_state_bar", "zero_state"]
    for (value, error), widest in zip(estimate.log_z_estimates.values(), (0.05, 0.3), strict=True):
        assert abs(value - exact) < 4 * error < 4 * widest


@pytest.mark.parametrize(
    ("name", "kind", "precision"),
    [
        ("block_gibbs harmonium", "dense", "float64"),
        ("block_gibbs sparse", "groups", "float32"),
        ("dhmc identity", "dense", "float64"),
        ("dhmc preconditioned", "dense", "float32"),
        ("dhmc sparse", "groups", "float32"),
    ],
)
def test_jax_agrees_with_enumeration(name: str, kind: str, precision: Precision) -> None:
    """Compilation takes seconds a case: each form's arithmetic once, the rest is shared with NumPy."""
    check(MODELS[kind], sample(METHODS[name], MODELS[kind], JaxBackend(precision=precision), samples=1000, seed=2))


@pytest.mark.parametrize("name", METHODS)
def test_float32_agrees_with_enumeration(name: str) -> None:
    model = MODELS["dense"]
    run = sample(METHODS[name], model, NumpyBackend(precision="float32"), samples=150, seed=4)
    check(model, run)


STATIONARY = {
    **{name: method for name, method in METHODS.items() if name.startswith("block")},
    # long steps, so that a good part of the proposals is refused
    "dhmc identity": DHMC(step_size=0.9, leapfrog_steps=3, slack=0.5),
    "dhmc harmonium": DHMC(form="harmonium", step_size=1.4, leapfrog_steps=3),
    "dhmc preconditioned": DHMC(form="preconditioned", step_size=1.3, leapfrog_steps=3, diagonal="sdp"),
    "dhmc sparse": DHMC(form="sparse", diagonal="dd", step_size=1.3, leapfrog_steps=3, jitter=0.1),
}


@pytest.mark.parametrize("kind", ["free", "groups"])
@pytest.mark.parametrize("name", STATIONARY)
def test_exact_draws_stay_exact(name: str, kind: str) -> None:
    """s ~ p(s), x ~ p(x|s), three steps; then s ~ p(s|x) has the law p(s) again: χ² over all states."""
    groups = ((0, 2),) if kind == "groups" else ()
    model = random_model(4, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], 8, 1.5, groups=groups)
    method, backend, chains = STATIONARY[name], NumpyBackend(), 40_000
    tables = map_arrays(backend.to_device, method.plan(model))
    program = method.program(backend)
    key = backend.key(9)
    start = reference.sample(model, chains, 10, method="enumeration").T.astype(float)
    state = program.init(backend.fold_in(key, 0), tables, start)
    for t in range(1, 4):
        state = program.step(backend.fold_in(key, t), tables, state)
    if name.startswith("dhmc"):
        assert 0.4 < program.observe(tables, state)["accept"].mean() < 0.97
    p = program.observe(tables, state)["p"]
    draws = draw_units(backend, backend.fold_in(key, 99), tables.sites, p)
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    weights = np.exp(model.log_weight(states) - model.log_weight(states).max())
    counts = np.bincount((draws.T @ [1, 2, 4, 8]).astype(int), minlength=16)
    possible = weights > 0
    assert counts[~possible].sum() == 0
    expected = chains * weights[possible] / weights.sum()
    statistic = np.sum((counts[possible] - expected) ** 2 / expected)
    assert stats.chi2.sf(statistic, possible.sum() - 1) > 1e-4
    moved = np.any(draws != start, axis=0).mean()
    assert moved > 0.3


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_result_however_it_is_cut(name: str) -> None:
    method, model, backend = METHODS[name], MODELS["dense"], NumpyBackend()
    engine = ProgramEngine(method.program(backend), backend, method.plan(model), method.reductions)
    start = np.random.default_rng(0).integers(0, 2, size=(5, 4)).astype(np.int8)

    def run(seed: int, cuts: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
        state = engine.adapt(engine.warm(engine.init(seed, start), 9), True)
        pieces = []
        for steps in cuts:
            state, seen = engine.advance(state, steps)
            pieces.append(seen)
        return pieces

    (whole,), parts, (other,) = run(3, (12,)), run(3, (5, 7)), run(4, (12,))
    np.testing.assert_array_equal(whole["alpha"], parts[1]["alpha"])
    np.testing.assert_allclose(whole["p"], parts[0]["p"] + parts[1]["p"], rtol=1e-12)
    assert not np.array_equal(whole["alpha"], other["alpha"])


@pytest.mark.parametrize("name", ["block_gibbs identity", "dhmc identity"])
def test_standard_errors_are_calibrated_over_repeats(name: str) -> None:
    method, model, backend = METHODS[name], MODELS["dense"], NumpyBackend()
    exact = reference.solve(model, method="enumeration", cache=False)
    engine = ProgramEngine(method.program(backend), backend, method.plan(model), method.reductions)
    scores, log_z_scores = [], []
    repeats = 25
    for seed in range(repeats):
        estimate = sample(method, model, backend, samples=100, chains=8, seed=seed, engine=engine).estimate
        scores.append((estimate.marginals - exact.probabilities) / estimate.marginals_se)
        value, error = estimate.log_z_estimates["bridge"]
        log_z_scores.append((value - exact.log_z) / error)
    # 5 correlated marginals count as one; a standard error from 8 short chains is itself uncertain
    rms = np.sqrt(np.mean(np.square(scores)))
    assert abs(rms - 1) < 4 / np.sqrt(2 * repeats), rms
    log_z_rms = np.sqrt(np.mean(np.square(log_z_scores)))
    assert abs(log_z_rms - 1) < 4 / np.sqrt(2 * repeats), log_z_rms


def test_too_few_draws_leave_log_z_open() -> None:
    estimate = sample(BlockGibbs(), MODELS["dense"], NumpyBackend(), samples=6, chains=4).estimate
    assert estimate.log_z is None
    assert estimate.log_z_se is None
    assert estimate.log_z_estimates == {}
    assert estimate.diagnostics["log_z_draws"] == 24
    assert np.isfinite(estimate.marginals).all()
