"""The steps of the Numba kernel of DHMC: their size, their energy, and what diverges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from relaxed_kernels import random_model

from spinbench.api import Precision
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.dhmc import DHMCKernel
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import PairwiseModel, generators

FORMS = {
    "identity": DHMC(),
    "harmonium": DHMC(form="harmonium", diagonal="sdp"),
    "preconditioned": DHMC(form="preconditioned", diagonal="sdp"),
    "sparse": DHMC(form="sparse", diagonal="dd"),
}


GRID = generators.grid(4, 4, seed=3)
LARGER = random_model(30, [(i, (i + k) % 30) for i in range(30) for k in (1, 5)], 11, 0.7)


def make(method: DHMC, model: PairwiseModel, precision: Precision = "float64") -> DHMCKernel:
    return DHMCKernel(method, NumbaBackend(precision=precision), model, method.plan(model))


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
    kernel = make(replace(FORMS[form], step_size=1.3, leapfrog_steps=3), LARGER)
    state = kernel.adapt(kernel.warm(kernel.init(2, np.zeros((30, 4), dtype=np.int8)), 50), True)
    assert (kernel.advance(state, 3)[1]["step_size"] == 1.3).all()


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
@pytest.mark.parametrize("model", [LARGER, GRID], ids=["dense", "grid"])
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
