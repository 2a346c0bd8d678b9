"""Tempering and populations over packed replicas: laws at all temperatures, weights, and runs however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from packed_models import MODELS, tempered

from spinbench import exact, run
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.packed_layout import build_colours
from spinbench.backends.jax.packed_replicas import PackedReplicasKernel, PackedTables
from spinbench.foundation.trees import map_arrays
from spinbench.inference import binding, registry
from spinbench.inference.kernels import Wish
from spinbench.methods.tempering.replicas import build_pair_tables
from spinbench.models import PairwiseModel
from spinbench.testing import limits, method_checks
from spinbench.testing.laws.cases import enumerate_law, three_state_model

BETAS = np.array([0.0, 0.4, 1.0])


@pytest.fixture(autouse=True)
def packed_on_cpu(monkeypatch):
    monkeypatch.setattr(PackedReplicasKernel, "devices", frozenset({"cpu", "gpu"}))


def on_device(model, precision, temperatures):
    """(backend, tables, replicas)."""
    backend, pairs = JaxBackend(precision=precision), build_pair_tables(model)
    host = PackedTables(pairs.order, build_colours(model, pairs), np.zeros(temperatures))
    tables = map_arrays(lambda leaf: backend.to_device(np.asarray(leaf)), host)
    return backend, tables, tables.over(backend)


def sweep_once(model, precision, start, beta, seed=1):
    """States by variable and p by row after a sweep, D before and after it, and the rows' order."""
    backend, tables, replicas = on_device(model, precision, len(np.unique(beta)))

    def program(key, tables, start, beta):
        x = replicas.arrange_states(tables, start)
        before = replicas.log_weights(tables, x)[0]
        x, p = replicas.sweep(key, tables, x, beta)
        return replicas.states_by_variable(tables, x), p, before, replicas.log_weights(tables, x)[0]

    arrays = backend.to_device(start.astype(float)), backend.to_device(beta)
    parts = backend.compile(program)(backend.key(seed), tables, *arrays)
    return [backend.to_host(part) for part in parts], backend.to_host(tables.order)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    "name",
    [
        "±J torus with fields",
        "grid",
        "six neighbours",
        "ten neighbours ±J",
        "diluted ±J torus",
        "isolated and apart",
        "no couplings",
    ],
)
def test_each_temperature_keeps_its_law(name, precision):
    model, count = MODELS[name], 20_000
    draws = [enumerate_law(tempered(model, beta)).exact_draws(count, 8 + k) for k, beta in enumerate(BETAS)]
    # Replicas of all temperatures, side by side and not in order, as after swaps.
    places = np.random.default_rng(3).permutation(len(BETAS) * count)
    beta = np.repeat(BETAS, count)[places]
    (states, p, before, after), order = sweep_once(model, precision, np.concatenate(draws, axis=1)[:, places], beta)
    assert np.allclose(after, model.log_weight(states.T.astype(int)) - model.log_constant, atol=1e-4)
    assert not np.array_equal(before, after)
    for value in BETAS:
        at = states[:, beta == value].astype(np.int64)
        counts = np.bincount(2 ** np.arange(len(at)) @ at, minlength=2 ** len(at))
        law = enumerate_law(tempered(model, value)).probabilities
        limits.require_law(f"{name} at {value}: the law of replicas", counts, law)
    cold = beta == BETAS.max()
    assert np.abs(p[:, cold].mean(axis=1) - states[order][:, cold].mean(axis=1)).max() < 0.03
    assert not p[:, ~cold].any()


@pytest.mark.parametrize("replicas", [1, 5, 31, 32, 33, 64])
def test_any_number_of_replicas(replicas):
    model, count = MODELS["grid"], 3 * replicas
    rng = np.random.default_rng(replicas)
    start, beta = rng.integers(0, 2, (9, count)), rng.permutation(np.repeat([0.2, 0.5, 3.0], replicas))
    (states, p, before, after), order = sweep_once(model, "float64", start, beta)
    assert np.allclose(before, model.log_weight(start.T) - model.log_constant)
    assert np.allclose(after, model.log_weight(states.T.astype(int)) - model.log_constant)
    # The variables of the last colour were updated given all others as they are.
    last = order[-1]
    field, cold = model.biases[last] + model.dense()[last] @ states, beta == 3.0
    assert np.allclose(p[-1, cold], 1 / (1 + np.exp(-3.0 * field[cold])), atol=2.0**-31)


@pytest.mark.parametrize("coupling", [700.0, -700.0, 0.0])
def test_couplings_beyond_the_range_of_exponentials(coupling):
    model = PairwiseModel.from_edges([1.0, 0.5, 0.0], [(0, 1), (1, 2)], [coupling, coupling], name="pairs")
    start = np.random.default_rng(1).integers(0, 2, (3, 64))
    for precision in ("float32", "float64"):
        (states, p, _, after), _ = sweep_once(model, precision, start, np.full(64, 1.0))
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
        assert np.allclose(after, model.log_weight(states.T.astype(int)), rtol=1e-6)


@pytest.mark.parametrize(("name", "settings"), [("pt", {"rungs": 5, "sweeps": 2}), ("smc", {"particles": 9})])
def test_the_cut_into_batches_changes_nothing(name, settings):
    model, method = MODELS["±J grid"], registry.make_method(name, settings)
    engine = binding.bind(method, "jax", model, method.plan(model), precision="float32", wish=Wish("native")).engine
    ends, start = [], np.random.default_rng(1).integers(0, 2, (9, 33), np.int8)
    for lengths in ([7], [1, 2, 4]):
        state = engine.adapt(engine.warm(engine.warm(engine.init(5, start), 2), 1), True)
        for steps in lengths:
            state, statistics = engine.advance(state, steps)
        ends.append((engine.states(state), engine.advance(state, 1)[1], statistics))
    assert np.array_equal(ends[0][0], ends[1][0])
    for key, values in ends[0][1].items():
        assert np.array_equal(values, ends[1][1][key]), key


@pytest.mark.parametrize(("method", "chains"), [("pt", 33), ("smc", 5)])
def test_marginals_and_log_z(method, chains):
    model = MODELS["torus"]
    answer, samples = exact(model), 300 if method == "pt" else 100
    result = run(model, method, "jax", samples, chains=chains, seed=4, precision="float32", tier="native")
    assert result.tier == "native"
    assert (np.abs(result.marginals - answer.marginals) <= 5 * result.marginals_se + 1e-4).all()
    assert abs(result.log_z - answer.log_z) <= 5 * result.log_z_se


SUITE = {f"accuracy, {case}" for case in ("one variable", "zero couplings", "sparse", "disconnected")}


@pytest.mark.parametrize(
    "check",
    [c for method in ("pt", "smc") for c in method_checks(method, "jax", chains=256) if c.name in SUITE],
    ids=str,
)
def test_conformance(check):
    check()


def test_others_run_the_program(monkeypatch):
    result = run(three_state_model(), "smc", "jax", 20, chains=2)
    assert result.tier == "generic"
    assert any("binary pairwise models, which" in note for note in result.notes)
    hub = PairwiseModel.from_edges(np.zeros(33), [(0, i) for i in range(1, 33)], np.ones(32), name="hub")
    refuses, backend = PackedReplicasKernel.refuses, JaxBackend()
    assert "31 neighbours of a variable; hub has one with 32" in refuses(registry.make_method("pt", {}), backend, hub)
    monkeypatch.undo()
    assert "on device=gpu" in refuses(registry.make_method("pt", {}), backend, MODELS["grid"])
    assert run(MODELS["grid"], "smc", "jax", 20, chains=2).notes == ()
