"""The Numba kernel of block Gibbs: against enumeration, from exact draws, and against the generic program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import relaxed_kernels
from compiled_parts import called
from relaxed_kernels import RING, check, check_batches, exact_start, random_model
from scipy import stats

from spinbench.api import Precision
from spinbench.api.trace import Trace
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.block_gibbs import BlockGibbsKernel
from spinbench.backends.numba.relaxed.matrices import Sparse
from spinbench.backends.numba.relaxed.units import add_to_sums
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.models import PairwiseModel

FORMS = {
    "harmonium": BlockGibbs(),
    "identity": BlockGibbs(form="identity", diagonal="minshift"),
    "sparse": BlockGibbs(form="sparse"),
}


MODELS = {
    **relaxed_kernels.MODELS,
    "path, stored by diagonals": random_model(7, [(i, i + 1) for i in range(6)], 10, 1.5),
}


def make(method: BlockGibbs, model: PairwiseModel, precision: Precision = "float64") -> BlockGibbsKernel:
    return BlockGibbsKernel(method, NumbaBackend(precision=precision), model, method.plan(model))


def estimate(method: BlockGibbs, model: PairwiseModel, precision: Precision, chains: int = 64, seed: int = 1) -> Any:
    """From exact draws, so that chains frozen between far modes have the right mixture."""
    tables = method.plan(model)
    return drive(
        BlockGibbsKernel(method, NumbaBackend(precision=precision), model, tables),
        Trace(method.reductions),
        lambda trace: method.estimate(model, tables, trace),
        Budget(samples=64_000 // chains, burn_in=50),
        start=exact_start(model, chains, seed),
        seed=seed,
        checkpoints=1,
    ).estimate


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_enumeration(form: str, kind: str, precision: Precision) -> None:
    check(MODELS[kind], estimate(FORMS[form], MODELS[kind], precision))


@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_few_chains_agree_with_enumeration(form: str, kind: str, chains: int) -> None:
    """One chain has products of its own, few chains their own order of random numbers."""
    check(MODELS[kind], estimate(FORMS[form], MODELS[kind], "float64", chains))


@pytest.mark.parametrize("chains", [1, 16])
def test_a_graph_without_a_narrow_band_is_factored_over_edges(chains: int) -> None:
    kernel, start = make(FORMS["sparse"], RING), np.zeros((40, chains), dtype=np.int8)
    state = kernel.warm(kernel.init(1, start), 100)
    assert isinstance(state.system.factor.root, Sparse)
    check_batches(RING, kernel, state, chains)


@pytest.mark.parametrize("form", FORMS)
def test_other_statistics_agree_with_enumeration(form: str) -> None:
    method = replace(FORMS[form], marginals="empirical", log_z="zero_state")
    found = estimate(method, MODELS["sparse"], "float64")
    assert list(found.log_z_estimates) == ["zero_state_bar", "zero_state"]
    check(MODELS["sparse"], found)


@pytest.mark.parametrize("kind", ["free", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_exact_draws_stay_exact(form: str, kind: str) -> None:
    """From s ~ p(s), the s after three steps have the law p(s) again: χ² over all states."""
    groups = ((0, 2),) if kind == "groups" else ()
    model = random_model(4, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], 8, 1.5, groups=groups)
    chains, start = 100_000, exact_start(model, 100_000, 9)
    kernel = make(replace(FORMS[form], marginals="empirical", log_z="none"), model)
    state, _ = kernel.advance(kernel.init(10, start), 2)
    _, seen = kernel.advance(state, 1)
    assert list(seen) == ["s"]
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    weights = np.exp(model.log_weight(states) - model.log_weight(states).max())
    counts = np.bincount((seen["s"].T @ [1, 2, 4, 8]).astype(int), minlength=16)
    possible = weights > 0
    assert counts[~possible].sum() == 0
    expected = chains * weights[possible] / weights.sum()
    assert stats.chisquare(counts[possible], expected).pvalue > 1e-4
    assert np.any(seen["s"] != start, axis=0).mean() > 0.3


@pytest.mark.parametrize("kind", ["dense", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_one_step_has_the_law_of_the_generic_program(form: str, kind: str) -> None:
    """From one fixed s: means and covariances of u = α + b and of p after one step."""
    model, chains = MODELS[kind], 40_000
    method = replace(FORMS[form], log_z="bridge")
    start = np.repeat(exact_start(model, 1, 3), chains, axis=1)
    backend = NumpyBackend()
    program = ProgramEngine(method.program(backend), backend, method.plan(model), method.reductions)
    kernel = make(method, model)
    seen = []
    for engine in (kernel, program):
        state, statistics = engine.advance(engine.init(4, start), 1)
        seen.append({**statistics, **engine.look(state)})
    for name in ("p", "alpha"):
        compare_moments(seen[0][name], seen[1][name])


def compare_moments(a: np.ndarray, b: np.ndarray) -> None:
    """First and second moments of two samples (N, C) agree within 5 standard errors."""
    pairs = [(x, x[:, None] * x[None]) for x in (a, b)]
    for first, second in zip(*pairs, strict=True):
        first, second = first.reshape(-1, first.shape[-1]), second.reshape(-1, second.shape[-1])
        error = np.sqrt((first.var(axis=-1) + second.var(axis=-1)) / first.shape[-1])
        assert (np.abs(first.mean(axis=-1) - second.mean(axis=-1)) <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("chains", [1, 4, 24])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_seed_gives_the_same_result_however_it_is_cut(form: str, chains: int) -> None:
    kernel = make(FORMS[form], MODELS["dense"])
    start = np.random.default_rng(0).integers(0, 2, size=(6, chains)).astype(np.int8)

    def run(seed: int, cuts: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
        state = kernel.adapt(kernel.warm(kernel.init(seed, start), 9), True)
        pieces = []
        for steps in cuts:
            state, seen = kernel.advance(state, steps)
            pieces.append({**seen, **kernel.look(state)})
        return pieces

    (whole,), (again,), parts, (other,) = run(3, (12,)), run(3, (12,)), run(3, (5, 1, 6)), run(4, (12,))
    np.testing.assert_array_equal(whole["alpha"], again["alpha"])
    np.testing.assert_array_equal(whole["alpha"], parts[2]["alpha"])
    np.testing.assert_allclose(whole["p"], sum(part["p"] for part in parts), rtol=1e-12)
    assert not np.array_equal(whole["alpha"], other["alpha"])
    assert whole["p"].dtype == whole["alpha"].dtype == np.float64
    assert whole["p"].shape == whole["alpha"].shape == (6, chains)


def test_float32_sums_do_not_saturate() -> None:
    """A float32 sum of ones would stay at 2^24."""
    for shape in ((16,), (3, 16)):
        sums = np.full(shape, 2.0**24)
        called(add_to_sums)(np.ones(shape, dtype=np.float32), shape[0], sums)
        np.testing.assert_array_equal(sums, 2.0**24 + 1)
