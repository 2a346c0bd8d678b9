"""Annealed populations on every backend, against enumeration: fixed seeds, tolerances in standard errors."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError
from spinbench.inference import binding
from spinbench.methods.population import smc
from spinbench.methods.population.estimates import weighed
from spinbench.methods.population.smc import Annealed
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.testing.laws.cases import enumerate_graph

CHAINS, STEPS = 64, 40


def graph():
    """Seven variables of 1 to 3 states, orders 1 to 3, zeros, scopes that are unsorted and one that is there twice."""
    rng = np.random.default_rng(3)
    cards = [2, 3, 1, 2, 3, 2, 2]
    tables = []
    for scope in ([0, 1], [1, 0], [3, 2, 1], [4], [5, 4], [6, 0, 5], [3, 6]):
        table = 1.5 * rng.normal(size=[cards[v] for v in scope])
        if len(scope) > 1:
            table = np.where(rng.random(table.shape) < 0.15, -np.inf, table)
        table.flat[0] = 0.0
        tables.append((scope, table))
    return FactorGraph.from_log_tables(cards, tables, log_constant=0.3)


def glass():
    rng = np.random.default_rng(4)
    edges = np.argwhere(np.triu(np.ones((6, 6)), 1))
    return PairwiseModel.from_edges(rng.normal(size=6), edges, 2 * rng.normal(size=len(edges)), log_constant=0.4)


def glass_graph():
    """Of binary variables and factors of two of them: what some kernels take for pairwise, others for tables."""
    rng = np.random.default_rng(8)
    tables = [([i, (i + 1) % 6], 1.5 * rng.normal(size=(2, 2))) for i in range(6)]
    return FactorGraph.from_log_tables([2] * 6, tables, log_constant=-0.7)


MODELS = {"graph": graph(), "glass": glass(), "glass as a graph": glass_graph()}


def log_z(model):
    if isinstance(model, FactorGraph):
        return enumerate_graph(model)[0]
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    return np.logaddexp.reduce(model.log_weight(states))


def marginals(model):
    if isinstance(model, FactorGraph):
        return np.concatenate(enumerate_graph(model)[1])
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    return np.exp(model.log_weight(states) - log_z(model)) @ states


@pytest.mark.parametrize("settings", [{"resample": 0.0}, {"resample": 0.5}, {"resample": 1.0, "moves": 2}], ids=str)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", MODELS)
def test_z_is_unbiased(name, backend, settings):
    """Over 2560 runs of so few particles and temperatures that a biased estimate would show."""
    method = Annealed(particles=4, temperatures=5, **settings)
    tables = method.plan(MODELS[name])
    engine = binding.bind(method, backend, MODELS[name], tables, precision="float64").engine
    state, seen = engine.init(5, np.zeros((MODELS[name].num_variables, CHAINS), dtype=np.int8)), []
    for _ in range(STEPS):
        state, batch = engine.advance(state, 1)
        seen.append(batch["z"])
    ratios = np.exp(np.array(seen) + float(tables.base) - log_z(MODELS[name])).ravel()
    assert 0.1 < ratios.std() < 3
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


@pytest.mark.parametrize(
    ("name", "backend"), [("graph", "numpy"), ("graph", "numba"), ("glass", "numba"), ("graph", "jax")]
)
def test_marginals_and_log_z(name, backend):
    found = spinbench.run(MODELS[name], "smc", backend, 60, chains=32, seed=1)
    assert found.status == "ok"
    error, claimed = np.hstack(found.marginals) - marginals(MODELS[name]), np.hstack(found.marginals_se)
    assert claimed.max() < 0.03
    assert (np.abs(error) <= 4 * claimed + 1e-9).all()
    assert abs(found.log_z - log_z(MODELS[name])) < 4 * found.log_z_se


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_particles_that_end_at_hard_zeros_count_for_nothing(backend):
    """Four equal variables: sweeps at β < 1 pass between the two states, and one run of five loses particles there.

    Given neighbours that differ a variable has no conditional law.
    """
    same = np.where(np.eye(2), 0.0, -np.inf)
    model = FactorGraph.from_log_tables([2] * 4, [([i, (i + 1) % 4], same) for i in range(4)])
    found = spinbench.run(model, "smc", backend, budget=256, chains=8, temperatures=8, particles=8)
    assert found.status == "ok"
    np.testing.assert_allclose(found.marginals, found.marginals[0])
    assert abs(found.marginals[0] - 0.5) < 3 * found.marginals_se[0] < 0.1


def trace_of(weights, p):
    """Runs (B, C) with log weights and marginals (B, M, C)."""
    trace = Trace(Annealed().reductions)
    for z, one in zip(weights, p, strict=True):
        trace.add({"z": z, "square": 2 * z, "p": z + np.log(one)}, 1)
    return trace


def test_runs_that_carry_all_the_weight_are_doubted():
    rng = np.random.default_rng(6)
    p = rng.uniform(0.2, 0.8, size=(40, 3, 16))
    even = weighed((2,), trace_of(0.3 * rng.normal(size=(40, 16)), p))
    assert even.supported
    assert even.effective > 400
    few = 0.3 * rng.normal(size=(40, 16))
    few[:2, :3] += 50
    heavy = weighed((2,), trace_of(few, p))
    assert heavy.effective < 8
    assert not heavy.supported
    assert heavy.log_z_error == np.inf


def test_weights_of_wide_laws_are_doubted_before_the_heavy_ones_are_seen():
    """Logarithms of sd 2.5, 64 runs: the mean is 23 times the median, and comes from runs 6 above it, one in 160."""
    rng, p = np.random.default_rng(9), np.full((4, 1, 16), 0.5)
    believed = [weighed((2,), trace_of(2.5 * rng.normal(size=(4, 16)), p)).supported for _ in range(200)]
    narrow = [weighed((2,), trace_of(0.7 * rng.normal(size=(4, 16)), p)).supported for _ in range(200)]
    assert np.mean(believed) < 0.05
    assert np.mean(narrow) > 0.95


@pytest.mark.parametrize(("spread", "least", "most"), [(0.5, 380, 400), (0.8, 200, 320), (1.3, 0, 20)])
def test_few_runs_that_happen_to_agree_are_not_believed_beyond_their_law(spread, least, most):
    """32 runs of a normal law: few of those that are believed, whom chance has chosen, are beyond their claims."""
    rng, p = np.random.default_rng(11), np.full((2, 1, 16), 0.5)
    found = [weighed((2,), trace_of(spread * rng.normal(size=(2, 16)) - spread**2 / 2, p)) for _ in range(400)]
    z = np.array([each.log_z / each.log_z_error for each in found if each.supported])
    assert least <= len(z) <= most
    assert (np.abs(z) > 3).sum() <= 4


def test_errors_are_those_of_weighted_means():
    rng, z = np.random.default_rng(7), []
    for _ in range(200):
        p = rng.uniform(0.2, 0.8, size=(25, 1, 16))
        found = weighed((2,), trace_of(rng.normal(size=(25, 16)) - 0.5, p))
        z.append(((found.means[0] - 0.5) / found.standard[0], found.log_z / found.log_z_error))
    assert (np.abs(np.mean(np.square(z), axis=0) - 1) < 0.35).all()


@pytest.mark.parametrize("settings", [{"particles": 1}, {"particles": 1, "temperatures": 1}], ids=str)
def test_populations_of_one_are_annealed_importance_sampling(settings):
    model = PairwiseModel.from_edges([0.5, -0.4, 0.3], [(0, 1), (1, 2)], [0.6, -0.5])
    found = spinbench.run(model, "smc", "numpy", 200, **settings)
    assert abs(found.log_z - log_z(model)) < 3 * found.log_z_se < 0.1
    np.testing.assert_array_less(abs(found.marginals - marginals(model)), 3 * found.marginals_se)


def test_runs_of_large_models_are_cut(monkeypatch):
    whole = Annealed().plan(glass())
    monkeypatch.setattr(smc, "UPDATES", 6 * 90)
    cut, asked = Annealed().plan(glass()), Annealed(temperatures=50).plan(glass())
    assert len(whole.particles) * (len(whole.betas) - 1) > 90
    assert (len(cut.particles), len(cut.betas) - 1) == (8, 11)
    assert (len(asked.particles), len(asked.betas) - 1) == (8, 50)


def test_what_it_does_not_take():
    for setting, value in (("moves", 0), ("particles", -1), ("temperatures", 2.5), ("resample", 1.5)):
        with pytest.raises(SpinbenchError, match=setting):
            Annealed(**{setting: value})
