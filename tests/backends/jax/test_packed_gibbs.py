"""Packed chains of few neighbours: their law, their sums, and that neither depends on how chains are cut or packed."""

from __future__ import annotations

import numpy as np
import pytest
from packed_models import (
    MODELS,
    conditionals_of_a_sweep,
    ising,
    lattice,
    random_couplings,
    random_signs,
    require_law,
    tempered,
)

from spinbench import exact, run
from spinbench.backends.jax import JaxBackend, packed_sweeps
from spinbench.backends.jax.packed_gibbs import PackedGibbsKernel
from spinbench.errors import UnsupportedError
from spinbench.inference import binding
from spinbench.inference.kernels import Wish
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import generators
from spinbench.testing import method_checks
from spinbench.testing.laws.cases import enumerate_law, three_state_model

CHAINS = [1, 5, 31, 32, 33, 100]


@pytest.fixture(autouse=True)
def packed_on_cpu(monkeypatch):
    monkeypatch.setattr(PackedGibbsKernel, "devices", frozenset({"cpu", "gpu"}))


def bind(model, **settings):
    method = Gibbs(**settings)
    return binding.bind(method, "jax", model, method.plan(model), wish=Wish("native"))


def test_chains_keep_the_law_of_another_temperature():
    model = MODELS["±J grid"]
    engine, at_beta = bind(model).engine, tempered(model, 0.4)
    state = engine.init(7, enumerate_law(at_beta).exact_draws(20_000, 8))
    state, slopes = engine.temper(state, np.array([0.4, 0.4]), 2)
    require_law(engine, state, at_beta)
    states = engine.states(state)
    assert slopes.shape == (2, 2, 20_000)
    assert np.allclose(slopes[-1, -1], model.log_weight(states.T) - model.log_constant)
    assert np.array_equal(engine.slope(state)["slope"], slopes[-1, -1])


@pytest.mark.parametrize("name", MODELS)
def test_law_of_chains_and_sums_of_conditional_probabilities(name):
    model = MODELS[name]
    bound = bind(model, log_z="none")
    engine, order = bound.engine, bound.tables.order
    before = enumerate_law(model).exact_draws(20_000, 8)
    state, statistics = engine.advance(engine.init(7, before), 1)
    expected = conditionals_of_a_sweep(model, bound.tables, before, engine.states(state))
    assert statistics["p"].shape == (model.num_variables, 20_000)
    assert np.abs(statistics["p"] - expected[order]).max() <= 2.0**-31
    state, _ = engine.advance(state, 2)
    require_law(engine, state, model)


def test_sums_of_states_are_those_of_the_states():
    bound = bind(MODELS["±J grid"], marginals="empirical", log_z="none")
    engine, order = bound.engine, bound.tables.order
    state, total = engine.init(3, enumerate_law(bound.model).uniform_states(33, 1)), 0.0
    for _ in range(4):
        state, statistics = engine.advance(state, 1)
        assert np.array_equal(statistics["s"], engine.states(state)[order])
        total = total + statistics["s"]
    again, statistics = engine.advance(engine.init(3, enumerate_law(bound.model).uniform_states(33, 1)), 4)
    assert np.array_equal(statistics["s"], total)
    assert np.array_equal(engine.states(again), engine.states(state))


def test_the_cut_into_batches_changes_nothing():
    engine = bind(MODELS["±J grid"]).engine
    start = enumerate_law(MODELS["±J grid"]).uniform_states(100, 1)
    ends, sums = [], []
    for warm, lengths in (([7], [11]), ([3, 4], [1, 3, 7]), ([], [6, 1, 2, 9])):
        state, total = engine.init(5, start), 0.0
        for steps in warm:
            state = engine.warm(state, steps)
        for steps in lengths:
            engine.look(state)
            state, statistics = engine.advance(state, steps)
            total = total + statistics["p"]
        ends.append(engine.states(state))
        sums.append(total)
    assert np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[0], ends[2])
    # Sums of integers times a power of two.
    assert np.array_equal(sums[0], sums[1])


@pytest.mark.parametrize("chains", CHAINS)
def test_marginals_and_log_z(chains):
    model = MODELS["±J grid"]
    result = run(model, "gibbs", "jax", max(40_000 // chains, 1000), chains=chains, seed=4, tier="native")
    answer = exact(model)
    assert (np.abs(result.marginals - answer.marginals) <= 5 * result.marginals_se + 1e-4).all()
    assert abs(result.log_z - answer.log_z) <= 5 * result.log_z_se
    assert result.status == "ok" or chains < 8


def test_random_numbers_are_compared_exactly():
    def draw(threshold, own, shared):
        planes = [np.full((1, 1), -(own >> 10 - k & 1) & 2**32 - 1, dtype=np.uint32) for k in range(11)]
        word = np.full((1, 1), shared << 11, dtype=np.uint32)
        levels = np.array([[[threshold]]], dtype=np.uint32)
        return int(packed_sweeps.draw_states(levels, [], word, planes)[0, 0])

    rng = np.random.default_rng(2)
    for own, shared in [(0, 0), (2047, 2**21 - 1), (2047, 0), *rng.integers(0, [2048, 2**21], size=(20, 2)).tolist()]:
        # The shared bits count backwards, since they are added to thresholds in place of being subtracted from numbers.
        number = own * 2**21 + 2**21 - 1 - shared
        for threshold in {0, 2**32 - 1, number, min(number + 1, 2**32 - 1)}:
            expected = 2**32 - 1 if number < threshold else 0
            assert draw(threshold, own, shared) == expected, (number, threshold)


def test_many_chains_are_summed_in_groups():
    model = generators.torus(60, 60, 0.3)
    start = np.random.default_rng(1).integers(0, 2, size=(3600, 128), dtype=np.int8)
    bound = bind(model, marginals="empirical", log_z="none")
    state, statistics = bound.engine.advance(bound.engine.init(1, start), 1)
    states = bound.engine.states(state)[bound.tables.order]
    groups = statistics["s"].shape[1]
    assert 8 <= groups < 128
    assert np.array_equal(statistics["s"], states.reshape(3600, -1, groups).mean(axis=1))


def test_marginals_of_groups_of_chains_are_as_right_as_they_say():
    edges = lattice((60, 60))
    model = ising(3600, edges, random_signs(edges, 0.2), 0.3, "large grid")
    result = run(model, "gibbs", "jax", 200, chains=128, seed=2, tier="native", log_z="none")
    single = run(model, "gibbs", "numba", 4000, chains=128, seed=2, log_z="none")
    errors = (result.marginals - single.marginals) / np.hypot(result.marginals_se, single.marginals_se)
    assert 0.8 < np.sqrt((errors**2).mean()) < 1.1
    assert result.status == "ok"
    assert result.r_hat.max() < 1.1


def test_rounded_probabilities_run_on_a_cpu_as_well(monkeypatch):
    monkeypatch.undo()
    coarse, fine = (
        bind(MODELS["no couplings"], marginals="empirical", log_z="none", precision_bits=bits).engine
        for bits in (8, 32)
    )
    start = np.zeros((5, 200_000), dtype=np.int8)
    for engine, bits in ((coarse, 8), (fine, 32)):
        p = 1 / (1 + np.exp(-MODELS["no couplings"].biases))
        p = np.minimum(np.rint(p * 2**bits), 2**bits - 1) / 2**bits
        mean = engine.states(engine.warm(engine.init(1, start), 1)).mean(axis=1)
        assert (np.abs(mean - p) <= 5 * np.sqrt(p * (1 - p) / 200_000) + 1e-7).all()


# Of models whose sweeps are packed; those of the other checks have more levels than code is unrolled for.
SUITE = {f"accuracy, {case}" for case in ("one variable", "zero couplings", "sparse", "disconnected", "101 variables")}


@pytest.mark.parametrize(
    "check", [c for c in method_checks("gibbs", "jax", chains=256) if c.name in SUITE], ids=lambda check: check.name
)
def test_conformance(check):
    check()


REFUSED = [
    ({"scan": "raster"}, "grid", "packed chains take scan=chromatic; scan=raster was asked for"),
    ({"sample": "update"}, "grid", "packed chains take sample=sweep"),
    ({"log_z": "chib"}, "grid", "log_z=chib needs T"),
    ({"threads": 2}, "grid", "packed chains take threads=1"),
]


@pytest.mark.parametrize(("settings", "name", "sentence"), REFUSED)
def test_settings_that_it_lacks(settings, name, sentence):
    with pytest.raises(UnsupportedError, match=sentence):
        bind(MODELS[name], **settings)


def test_models_that_it_lacks():
    edges = [(0, i) for i in range(1, 33)]
    with pytest.raises(UnsupportedError, match="31 neighbours of a variable; hub has one with 32"):
        bind(ising(33, edges, 0.1, 0.0, "hub"))
    with pytest.raises(UnsupportedError, match="128 levels of p in all colours; any sizes has 130"):
        bind(ising(8, edges[:7], random_couplings(edges[:7]), 0.0, "any sizes"))
    method, refuses = Gibbs(), PackedGibbsKernel.refuses
    assert "binary pairwise" in refuses(method, JaxBackend(), three_state_model())


def test_a_cpu_keeps_the_program(monkeypatch):
    monkeypatch.undo()
    result = run(MODELS["grid"], "gibbs", "jax", 20)
    assert (result.tier, result.notes) == ("generic", ())
    chosen = run(MODELS["grid"], "gibbs", "jax", 20, kernel="spinbench")
    assert chosen.tier == "generic"
    assert "packed into words on device=gpu" in " ".join(chosen.notes)
