"""Many models at once in JAX: the answers of single runs, and those of NumPy."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.jax.gauge import batch
from spinbench.errors import UnsupportedError
from spinbench.methods.gauge.g_bp import (
    GaugedBeliefPropagationMultiple,
    GaugedBeliefPropagationSequential,
)
from spinbench.methods.gauge.g_mf import GaugedMeanField
from spinbench.models.forney import convert
from spinbench.models.forney.generators import gauge_complete


@pytest.fixture(scope="module")
def models():
    """Ten of one graph and one that contracts to nothing."""
    line = zoo.random_tables(zoo.line(4), 1.0, np.random.default_rng(0)).to_factor_graph()
    return [*(gauge_complete(4, 0.5, seed=seed) for seed in range(10)), line]


@pytest.fixture(scope="module")
def exact(models):
    return np.array([zoo.enumerated_log_z(convert.from_factor_graph(model)) for model in models])


@pytest.fixture(scope="module")
def answers(models):
    return batch.solve(models, GaugedBeliefPropagationMultiple())


def test_g_bp_as_in_single_runs_and_on_numpy(models, exact, answers):
    method = GaugedBeliefPropagationMultiple()
    found = np.array([answer.log_z for answer in answers])
    assert (found <= exact + 1e-9).all()
    assert found[-1] == pytest.approx(exact[-1], abs=1e-10)
    assert all(answer.converged and answer.log_z_kind == "lower" for answer in answers)
    single = spinbench.run(models[0], method, "jax", "2000 samples")
    assert single.log_z == pytest.approx(found[0], abs=1e-9)
    assert single.status == "ok"
    for k in range(3):
        other = spinbench.run(models[k], method, "numpy", "3000 samples")
        assert other.log_z == pytest.approx(found[k], abs=1e-4)


def test_sequential_terms_are_pinned_members(models, exact, answers):
    found = np.array([answer.log_z for answer in batch.solve(models, GaugedBeliefPropagationSequential())])
    assert (found >= np.array([answer.log_z for answer in answers]) - 1e-9).all()
    assert (found <= exact + 1e-9).all()
    assert np.mean((exact - found) / np.abs(exact)) < 0.01


def test_runs_may_be_cut(models):
    method = GaugedBeliefPropagationMultiple()
    tables = method.plan(models[1])
    runs = []
    for lengths in ([40], [1, 3, 36], [20, 20]):
        engine = batch.JaxGaugeKernel(method, spinbench.inference.registry.backend_class("jax")(), models[1], tables)
        state = engine.init(0, None)
        for steps in lengths:
            state, statistics = engine.advance(state, steps)
        runs.append(statistics)
    for other in runs[1:]:
        for name, value in runs[0].items():
            assert value == pytest.approx(other[name], abs=1e-8)


def test_what_jax_does_not_offer(models):
    with pytest.raises(UnsupportedError, match="labels=greedy"):
        batch.solve(models[:1], GaugedBeliefPropagationMultiple(labels="greedy"))


@pytest.mark.slow
def test_g_mf_as_on_numpy(models, exact):
    found = np.array([answer.log_z for answer in batch.solve(models, GaugedMeanField(restarts=1))])
    assert (found <= exact + 1e-9).all()
    numpy = [spinbench.run(model, GaugedMeanField(restarts=1), "numpy", "5000 samples").log_z for model in models]
    assert np.mean(found) == pytest.approx(np.mean(numpy), abs=0.01)
