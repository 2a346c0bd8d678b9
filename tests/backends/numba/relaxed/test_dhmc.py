"""The Numba kernel of DHMC: against enumeration, from exact draws, and against the generic program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import relaxed_kernels
from relaxed_kernels import RING, check_batches, exact_start, random_model
from scipy import stats

from spinbench.api import Precision
from spinbench.api.trace import Trace
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.dhmc import DHMCKernel
from spinbench.backends.numba.relaxed.matrices import Sparse
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import PairwiseModel, generators

FORMS = {
    "identity": DHMC(),
    "harmonium": DHMC(form="harmonium", diagonal="sdp"),
    "preconditioned": DHMC(form="preconditioned", diagonal="sdp"),
    "sparse": DHMC(form="sparse", diagonal="dd"),
}
LONG = {
    # long steps, so that a good part of the proposals is refused
    "identity": DHMC(step_size=1.6, leapfrog_steps=3, slack=0.5),
    "harmonium": DHMC(form="harmonium", step_size=1.4, leapfrog_steps=3, jitter=0.05),
    "preconditioned": DHMC(form="preconditioned", step_size=1.3, leapfrog_steps=3, diagonal="sdp"),
    "sparse": DHMC(form="sparse", diagonal="dd", step_size=1.3, leapfrog_steps=3, jitter=0.1),
}


MODELS = {**relaxed_kernels.MODELS, "grid": generators.grid(4, 4, seed=3)}
LARGER = random_model(30, [(i, (i + k) % 30) for i in range(30) for k in (1, 5)], 11, 0.7)


def make(method: DHMC, model: PairwiseModel, precision: Precision = "float64") -> DHMCKernel:
    return DHMCKernel(method, NumbaBackend(precision=precision), model, method.plan(model))


def estimate(method: DHMC, model: PairwiseModel, precision: Precision, chains: int = 64, seed: int = 1) -> Any:
    """From exact draws, so that chains frozen between far modes have the right mixture."""
    tables = method.plan(model)
    return drive(
        DHMCKernel(method, NumbaBackend(precision=precision), model, tables),
        Trace(method.reductions),
        lambda trace: method.estimate(model, tables, trace),
        Budget(samples=96_000 // chains, burn_in=100),
        start=exact_start(model, chains, seed),
        seed=seed,
        checkpoints=1,
    ).estimate


def check(model: PairwiseModel, found: Any) -> None:
    relaxed_kernels.check(model, found, biased=["mirrored_in_sample"])


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_enumeration(form: str, kind: str, precision: Precision) -> None:
    check(MODELS[kind], estimate(FORMS[form], MODELS[kind], precision))


@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "groups"])
@pytest.mark.parametrize("form", FORMS)
def test_few_chains_agree_with_enumeration(form: str, kind: str, chains: int) -> None:
    check(MODELS[kind], estimate(FORMS[form], MODELS[kind], "float64", chains))


@pytest.mark.parametrize("chains", [1, 16])
def test_a_graph_without_a_narrow_band_is_factored_over_edges(chains: int) -> None:
    kernel, start = make(FORMS["sparse"], RING), np.zeros((40, chains), dtype=np.int8)
    state = kernel.adapt(kernel.warm(kernel.init(1, start), 300), True)
    assert isinstance(state.system.factor.root, Sparse)
    check_batches(RING, kernel, state, chains)


@pytest.mark.parametrize("form", FORMS)
def test_zero_state_agrees_with_enumeration(form: str) -> None:
    found = estimate(replace(FORMS[form], log_z="zero_state"), MODELS["sparse"], "float64")
    assert list(found.log_z_estimates) == ["zero_state_bar", "zero_state"]
    check(MODELS["sparse"], found)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_acceptance_is_what_was_aimed_at(form: str, precision: Precision) -> None:
    for target, chains in ((0.9, 1), (0.7, 16)):
        kernel = make(replace(FORMS[form], target_acceptance=target, log_z="none"), LARGER, precision)
        state = kernel.init(2, np.zeros((30, chains), dtype=np.int8))
        for steps, last in ((500, False), (500, False), (1000, False), (2000, True)):
            state = kernel.adapt(kernel.warm(state, steps), last)
        _, seen = kernel.advance(state, 4000)
        assert abs(seen["accept"].mean() / 4000 - target) < 0.04


@pytest.mark.parametrize("form", FORMS)
def test_the_step_size_is_frozen_after_burn_in(form: str) -> None:
    kernel = make(FORMS[form], LARGER)
    state = kernel.init(2, np.zeros((30, 4), dtype=np.int8))
    steps = []
    for last in (False, True):
        state = kernel.adapt(kernel.warm(state, 50), last)
        for _ in range(2):
            state, seen = kernel.advance(state, 20)
            steps.append(seen["step_size"])
    assert (steps[0] == steps[1]).all()
    assert (steps[2] == steps[3]).all()
    assert (steps[1] != steps[2]).all()
    assert np.ptp(steps[3]) == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_given_step_size_is_kept(form: str) -> None:
    kernel = make(LONG[form], LARGER)
    state = kernel.adapt(kernel.warm(kernel.init(2, np.zeros((30, 4), dtype=np.int8)), 50), True)
    assert (kernel.advance(state, 3)[1]["step_size"] == LONG[form].step_size).all()


@pytest.mark.parametrize("kind", ["free", "groups"])
@pytest.mark.parametrize("form", LONG)
def test_exact_draws_stay_exact(form: str, kind: str) -> None:
    """s ~ p(s), x ~ p(x|s), three steps; then s ~ p(s|x) has the law p(s) again: χ² over all states."""
    groups = ((0, 2),) if kind == "groups" else ()
    model = random_model(4, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)], 8, 1.5, groups=groups)
    chains, start = 100_000, exact_start(model, 100_000, 9)
    kernel = make(replace(LONG[form], log_z="none"), model)
    state, seen = kernel.advance(kernel.init(10, start), 2)
    assert 0.4 < seen["accept"].mean() / 2 < 0.97
    _, seen = kernel.advance(state, 1)
    draws = (np.random.default_rng(11).random(start.shape) < seen["p"]).astype(int)
    if groups:
        draws[2] = 1 - draws[0]
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    weights = np.exp(model.log_weight(states) - model.log_weight(states).max())
    counts = np.bincount(draws.T @ [1, 2, 4, 8], minlength=16)
    possible = weights > 0
    assert counts[~possible].sum() == 0
    expected = chains * weights[possible] / weights.sum()
    assert stats.chisquare(counts[possible], expected).pvalue > 1e-4
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
def test_burn_in_and_steps_have_the_law_of_the_generic_program(form: str, kind: str) -> None:
    """From one fixed s, after warm steps with adaptation and two more: p, α, acceptance, and the step size itself."""
    model, chains, backend = MODELS[kind], 20_000, NumpyBackend()
    method = replace(FORMS[form], log_z="bridge", leapfrog_steps=2)
    start = np.repeat(exact_start(model, 1, 3), chains, axis=1)
    program = ProgramEngine(method.program(backend), backend, method.plan(model), method.reductions)
    seen = []
    for engine in (make(method, model), program):
        state = engine.init(4, start)
        for steps, last in ((3, False), (4, False), (5, True)):
            state = engine.adapt(engine.warm(state, steps), last)
        state, statistics = engine.advance(state, 2)
        seen.append({**statistics, **engine.look(state)})
    np.testing.assert_allclose(seen[0]["step_size"], seen[1]["step_size"], rtol=0.05)
    for name in ("p", "alpha", "accept"):
        compare_moments(np.atleast_2d(seen[0][name]), np.atleast_2d(seen[1][name]))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_energy_is_conserved_to_second_order(form: str, precision: Precision) -> None:
    """Half the step size, twice the steps: the energy error of the same trajectories falls by four."""
    errors = []
    for halving in (1, 2, 4):
        method = replace(FORMS[form], step_size=0.2 / halving, leapfrog_steps=5 * halving, jitter=0.0, log_z="none")
        kernel = make(method, LARGER, precision)
        state, _ = kernel.advance(kernel.init(5, np.zeros((30, 400), dtype=np.int8)), 1)
        # E[1 - min(1, e^-ΔH)] is E|ΔH|/2 for small ΔH
        errors.append(1 - state.layout.gather_energies(state.chains.accept).mean())
    assert 0 < errors[2] < errors[1] < errors[0] < 0.2
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.3)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("chains", [1, 9])
@pytest.mark.parametrize("model", [LARGER, MODELS["grid"]], ids=["dense", "grid"])
@pytest.mark.parametrize("form", ["identity", "harmonium"])
def test_a_diverging_trajectory_is_refused(form: str, model: PairwiseModel, chains: int, precision: Precision) -> None:
    kernel = make(replace(FORMS[form], step_size=1e30, leapfrog_steps=8, log_z="none"), model, precision)
    state = kernel.init(7, np.zeros((model.num_variables, chains), dtype=np.int8))
    before = state.chains.points.position.copy()
    state, seen = kernel.advance(state, 3)
    np.testing.assert_array_equal(state.chains.points.position, before)
    assert (seen["accept"] == 0).all()
    assert np.isfinite(seen["p"]).all()
    state.step_size = state.step_size._replace(step=0.01)  # nothing of it is left in the work space
    assert (kernel.advance(state, 1)[1]["accept"] > 0.9).all()


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
            state, seen = kernel.advance(state, steps)
            pieces.append({**seen, **kernel.look(state)})
        return pieces

    (whole,), (again,) = run(3, (6,), (12,)), run(3, (6,), (12,))
    parts, (other,) = run(3, (2, 4), (5, 1, 6)), run(4, (6,), (12,))
    np.testing.assert_array_equal(whole["alpha"], again["alpha"])
    np.testing.assert_array_equal(whole["alpha"], parts[2]["alpha"])
    for name in ("p", "accept"):
        np.testing.assert_allclose(whole[name], sum(part[name] for part in parts), rtol=1e-12)
    assert not np.array_equal(whole["alpha"], other["alpha"])
    assert all(array.dtype == np.float64 for array in whole.values())
