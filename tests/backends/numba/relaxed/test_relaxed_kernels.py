"""The Numba kernels of DHMC and block Gibbs: against enumeration, exact draws and the generic programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import relaxed_kernels
from relaxed_kernels import FORMS, LONG_STEPS, RING, Relaxed, check, check_batches, random_model
from small_graphs import exact_start, keeps_law

from spinbench.api import Precision
from spinbench.api.trace import Trace
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.block_gibbs import BlockGibbsKernel
from spinbench.backends.numba.relaxed.dhmc import DHMCKernel
from spinbench.backends.numba.relaxed.matrices import Sparse
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import PairwiseModel, generators

MODELS = {
    **relaxed_kernels.MODELS,
    "path, stored by diagonals": random_model(7, [(i, i + 1) for i in range(6)], 10, 1.5),
    "grid": generators.grid(4, 4, seed=3),
}


def make(method: Relaxed, model: PairwiseModel, precision: Precision = "float64") -> Any:
    kernel = DHMCKernel if isinstance(method, DHMC) else BlockGibbsKernel
    return kernel(method, NumbaBackend(precision=precision), model, method.plan(model))


def check_estimate(method: Relaxed, model: PairwiseModel, precision: Precision, chains: int = 64) -> Any:
    """The estimate, near to enumeration; from exact draws, so that chains frozen between far modes have the right
    mixture."""
    tables = method.plan(model)
    found = drive(
        make(method, model, precision),
        Trace(method.reductions),
        lambda trace: method.estimate(model, tables, trace),
        Budget(samples=64_000 // chains, burn_in=100),
        start=exact_start(model, chains, 1),
        seed=1,
        checkpoints=1,
    ).estimate
    check(model, found, biased=["mirrored_in_sample"])
    return found


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_enumeration(form: str, kind: str, precision: Precision) -> None:
    check_estimate(FORMS[form], MODELS[kind], precision)


@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_few_chains_agree_with_enumeration(form: str, kind: str, chains: int) -> None:
    """One chain has products of its own, few chains their own order of random numbers."""
    check_estimate(FORMS[form], MODELS[kind], "float64", chains)


@pytest.mark.parametrize("form", FORMS)
def test_other_statistics_agree_with_enumeration(form: str) -> None:
    method = replace(FORMS[form], log_z="zero_state")
    if isinstance(method, BlockGibbs):
        method = replace(method, marginals="empirical")
    found = check_estimate(method, MODELS["sparse"], "float64")
    assert list(found.log_z_estimates) == ["zero_state_bar", "zero_state"]


@pytest.mark.parametrize("chains", [1, 16])
@pytest.mark.parametrize("form", ["block_gibbs/sparse", "dhmc/sparse"])
def test_a_graph_without_a_narrow_band_is_factored_over_edges(form: str, chains: int) -> None:
    kernel, start = make(FORMS[form], RING), np.zeros((40, chains), dtype=np.int8)
    state = kernel.adapt(kernel.warm(kernel.init(1, start), 300), True)
    assert isinstance(state.system.factor.root, Sparse)
    check_batches(RING, kernel, state, chains)


@pytest.mark.parametrize("kind", ["free", "groups"])
@pytest.mark.parametrize("form", LONG_STEPS)
def test_exact_draws_stay_exact(form: str, kind: str) -> None:
    """s ~ p(s), x ~ p(x|s), three steps; then s ~ p(s|x) has the law p(s) again: χ² over all states."""
    groups = ((0, 2),) if kind == "groups" else ()
    model = random_model(4, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], 8, 1.5, groups=groups)
    start = exact_start(model, 100_000, 9)
    kernel = make(replace(LONG_STEPS[form], log_z="none"), model)
    state, statistics = kernel.advance(kernel.init(10, start), 2)
    assert 0.4 < statistics.get("accept", np.ones(1)).mean() / 2 < 0.97
    _, statistics = kernel.advance(state, 1)
    draws = (np.random.default_rng(11).random(start.shape) < statistics["p"]).astype(int)
    if groups:
        draws[2] = 1 - draws[0]
    assert keeps_law(model, draws)
    assert np.any(draws != start, axis=0).mean() > 0.3


def compare_moments(a: np.ndarray, b: np.ndarray) -> None:
    """First and second moments of two samples (N, C) agree within 5 standard errors."""
    pairs = [(x, x[:, None] * x[None]) for x in (a, b)]
    for first, second in zip(*pairs, strict=True):
        first, second = first.reshape(-1, first.shape[-1]), second.reshape(-1, second.shape[-1])
        error = np.sqrt((first.var(axis=-1) + second.var(axis=-1)) / first.shape[-1])
        assert (np.abs(first.mean(axis=-1) - second.mean(axis=-1)) <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("kind", ["dense", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_steps_have_the_law_of_the_generic_program(form: str, kind: str) -> None:
    """From one fixed s: all statistics after two steps; of DHMC after warm steps, which adapt its step size."""
    model, method, backend = MODELS[kind], replace(FORMS[form], log_z="bridge"), NumpyBackend()
    burn_in: list[tuple[int, bool]] = []
    if isinstance(method, DHMC):
        method, burn_in = replace(method, leapfrog_steps=2), [(3, False), (4, False), (5, True)]
    start = np.repeat(exact_start(model, 1, 3), 20_000, axis=1)
    program = ProgramEngine(method.program(backend), backend, method.plan(model), method.reductions)
    statistics: list[dict[str, np.ndarray]] = []
    for engine in (make(method, model), program):
        state = engine.init(4, start)
        for steps, last in burn_in:
            state = engine.adapt(engine.warm(state, steps), last)
        state, of_steps = engine.advance(state, 2)
        statistics.append({**of_steps, **engine.look(state)})
    compiled, generic = statistics
    np.testing.assert_allclose(compiled.pop("step_size", 1.0), generic.pop("step_size", 1.0), rtol=0.05)
    assert set(compiled) >= {"p", "alpha"}
    for name in {"p", "alpha", "accept"} & set(compiled):
        compare_moments(np.atleast_2d(compiled[name]), np.atleast_2d(generic[name]))


@pytest.mark.parametrize("chains", [1, 4, 24])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_seed_gives_the_same_result_however_it_is_cut(form: str, chains: int) -> None:
    kernel = make(FORMS[form], MODELS["dense"])
    start = np.random.default_rng(0).integers(0, 2, size=(6, chains)).astype(np.int8)

    def run(seed: int, burn_in: tuple[int, ...], cuts: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
        state = kernel.adapt(kernel.warm(kernel.init(seed, start), 9), False)
        for steps in burn_in:
            state = kernel.warm(state, steps)
        state = kernel.adapt(state, True)
        pieces = []
        for steps in cuts:
            state, statistics = kernel.advance(state, steps)
            pieces.append({**statistics, **kernel.look(state)})
        return pieces

    (whole,), (again,) = run(3, (6,), (12,)), run(3, (6,), (12,))
    parts, (other,) = run(3, (2, 4), (5, 1, 6)), run(4, (6,), (12,))
    np.testing.assert_array_equal(whole["alpha"], again["alpha"])
    np.testing.assert_array_equal(whole["alpha"], parts[2]["alpha"])
    for name in {"p", "accept"} & set(whole):
        np.testing.assert_allclose(whole[name], sum(part[name] for part in parts), rtol=1e-12)
    assert not np.array_equal(whole["alpha"], other["alpha"])
    assert all(array.dtype == np.float64 for array in whole.values())
    assert whole["p"].shape == whole["alpha"].shape == (6, chains)
