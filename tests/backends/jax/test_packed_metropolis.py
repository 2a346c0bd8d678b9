"""Packed chains by Metropolis' rule: moves, law and sums, however a run is cut or packed."""

from __future__ import annotations

import numpy as np
import pytest
from packed_models import MODELS, conditionals_of_a_sweep, require_law

from spinbench import exact, run
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.packed_metropolis import PackedMetropolisKernel
from spinbench.inference import binding
from spinbench.inference.kernels import Wish
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.tempering.replicas import build_pair_tables
from spinbench.models import PairwiseModel
from spinbench.testing import method_checks
from spinbench.testing.laws.cases import enumerate_law, three_state_model


@pytest.fixture(autouse=True)
def packed_on_cpu(monkeypatch):
    monkeypatch.setattr(PackedMetropolisKernel, "devices", frozenset({"cpu", "gpu"}))


def bind(model, **settings):
    method = Metropolis(**settings)
    return binding.bind(method, "jax", model, method.plan(model), wish=Wish("native"))


def test_states_that_weigh_more_are_entered_and_others_by_the_ratio():
    biases, count = np.array([2.0, 0.3, 1e-3, 0.0, -1e-3, -0.7, -3.0]), 100_000
    engine = bind(PairwiseModel.from_edges(biases, [], [], name="alone")).engine
    for state in (0, 1):
        after = engine.states(engine.warm(engine.init(1, np.full((7, count), state, dtype=np.int8)), 1))
        moves = np.exp(np.minimum(biases * (1 - 2 * state), 0.0))
        share = (after != state).mean(axis=1)
        assert (np.abs(share - moves) <= 5 * np.sqrt(moves * (1 - moves) / count)).all()


@pytest.mark.parametrize("name", MODELS)
def test_law_of_chains_and_sums_of_conditional_probabilities(name):
    model = MODELS[name]
    engine = bind(model).engine
    before = enumerate_law(model).exact_draws(20_000, 8)
    state, statistics = engine.advance(engine.init(7, before), 1)
    expected = conditionals_of_a_sweep(model, build_pair_tables(model), before, engine.states(state))
    assert np.abs(statistics["p"] - expected).max() <= 2.0**-31
    state, _ = engine.advance(state, 2)
    require_law(engine, state, model)


@pytest.mark.parametrize("chains", [1, 31, 32, 33, 64, 1000])
def test_the_cut_into_batches_changes_nothing(chains):
    engine = bind(MODELS["torus"], marginals="empirical").engine
    ends, start = [], enumerate_law(MODELS["torus"]).uniform_states(chains, 1)
    for warm, lengths in ((4, [7]), (1, [3, 1, 2, 4])):
        state, total = engine.warm(engine.init(5, start), warm), 0.0
        for steps in lengths:
            state, statistics = engine.advance(state, steps)
            total = total + statistics["s"]
        ends.append(engine.states(state))
    assert np.array_equal(*ends)
    state, statistics = engine.advance(state, 1)
    assert np.array_equal(statistics["s"], engine.states(state))


@pytest.mark.parametrize("marginals", ["rao_blackwell", "empirical"])
def test_marginals_of_a_run(marginals):
    model = MODELS["grid"]
    result = run(model, "metropolis", "jax", 2000, chains=33, seed=4, tier="native", marginals=marginals)
    assert result.tier == "native"
    assert (np.abs(result.marginals - exact(model).marginals) <= 5 * result.marginals_se + 1e-4).all()


SUITE = {f"accuracy, {case}" for case in ("one variable", "zero couplings", "sparse", "disconnected", "101 variables")}


@pytest.mark.parametrize(
    "check", [c for c in method_checks("metropolis", "jax", chains=256) if c.name in SUITE], ids=str
)
def test_conformance(check):
    check()


def test_others_run_the_program(monkeypatch):
    refuses, method = PackedMetropolisKernel.refuses, Metropolis()
    assert "binary pairwise models, which" in refuses(method, JaxBackend(), three_state_model())
    hub = PairwiseModel.from_edges(np.zeros(33), [(0, i) for i in range(1, 33)], np.ones(32), name="hub")
    assert "31 neighbours of a variable; hub has one with 32" in refuses(method, JaxBackend(), hub)
    monkeypatch.undo()
    result = run(MODELS["grid"], "metropolis", "jax", 20)
    assert (result.tier, result.notes) == ("generic", ())
