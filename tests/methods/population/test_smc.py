"""Annealed populations: Z without bias, and what their weights may be believed."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import bound, graph, law, random_pairs

from spinbench.api.trace import Trace
from spinbench.methods.population import smc
from spinbench.methods.population.estimates import summarise_runs
from spinbench.methods.population.smc import Annealed

CHAINS, STEPS = 64, 40
SCOPES = [[0, 1], [1, 0], [3, 2, 1], [4], [5, 4], [6, 0, 5], [3, 6]]
GLASS = random_pairs(6, 1.0, 1.5, 4)
MODELS = {
    "graph": graph([2, 3, 1, 2, 3, 2, 2], SCOPES, 3, 0.15, 1.5),
    "glass": GLASS,
    # of binary variables and factors of two of them: what some kernels take for pairwise, others for tables
    "glass as a graph": graph([2] * 6, [[i, (i + 1) % 6] for i in range(6)], 8, 0.0, 1.5),
}


@pytest.mark.parametrize("settings", [{"resample": 0.0}, {"resample": 0.5}, {"resample": 1.0, "moves": 2}], ids=str)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", MODELS)
def test_z_is_unbiased(name, backend, settings):
    """Over 2560 runs of so few particles and temperatures that a biased estimate would show."""
    method = Annealed(particles=4, temperatures=5, **settings)
    model = MODELS[name]
    tables, engine = bound(model, backend, method)
    state, log_z = engine.init(5, np.zeros((model.num_variables, CHAINS), dtype=np.int8)), []
    for _ in range(STEPS):
        state, batch = engine.advance(state, 1)
        log_z.append(batch["z"])
    ratios = np.exp(np.array(log_z) + float(tables.base) - law(model)[2]).ravel()
    assert 0.1 < ratios.std() < 3
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


def build_trace(weights, p):
    """Runs (B, C) with log weights and marginals (B, M, C)."""
    trace = Trace(Annealed().reductions)
    for z, run_p in zip(weights, p, strict=True):
        trace.add({"z": z, "square": 2 * z, "p": z + np.log(run_p)}, 1)
    return trace


def test_runs_that_carry_all_the_weight_are_doubted():
    rng = np.random.default_rng(6)
    p = rng.uniform(0.2, 0.8, size=(40, 3, 16))
    even = summarise_runs((2,), build_trace(0.3 * rng.normal(size=(40, 16)), p))
    assert even.supported
    assert even.effective_runs > 400
    few = 0.3 * rng.normal(size=(40, 16))
    few[:2, :3] += 50
    heavy = summarise_runs((2,), build_trace(few, p))
    assert heavy.effective_runs < 8
    assert not heavy.supported
    assert heavy.log_z.error_bound == np.inf


def test_weights_of_wide_laws_are_doubted_before_the_heavy_ones_are_seen():
    """Logarithms of sd 2.5, 64 runs: the mean is 23 times the median, and comes from runs 6 above it, one in 160."""
    rng, p = np.random.default_rng(9), np.full((4, 1, 16), 0.5)
    believed = [summarise_runs((2,), build_trace(2.5 * rng.normal(size=(4, 16)), p)).supported for _ in range(200)]
    narrow = [summarise_runs((2,), build_trace(0.7 * rng.normal(size=(4, 16)), p)).supported for _ in range(200)]
    assert np.mean(believed) < 0.05
    assert np.mean(narrow) > 0.95


@pytest.mark.parametrize(("spread", "fewest", "max_count"), [(0.5, 380, 400), (0.8, 200, 320), (1.3, 0, 20)])
def test_few_runs_that_happen_to_agree_are_not_believed_beyond_their_law(spread, fewest, max_count):
    """32 runs of a normal law: few of those that are believed, whom chance has chosen, are beyond their claims."""
    rng, p = np.random.default_rng(11), np.full((2, 1, 16), 0.5)
    summaries = [
        summarise_runs((2,), build_trace(spread * rng.normal(size=(2, 16)) - spread**2 / 2, p)) for _ in range(400)
    ]
    z = np.array([each.log_z.value / each.log_z.error_bound for each in summaries if each.supported])
    assert fewest <= len(z) <= max_count
    assert (np.abs(z) > 3).sum() <= 4


def test_errors_are_those_of_weighted_means():
    rng, z = np.random.default_rng(7), []
    for _ in range(200):
        p = rng.uniform(0.2, 0.8, size=(25, 1, 16))
        runs = summarise_runs((2,), build_trace(rng.normal(size=(25, 16)) - 0.5, p))
        z.append(((runs.means[0] - 0.5) / runs.se[0], runs.log_z.value / runs.log_z.se))
    assert (np.abs(np.mean(np.square(z), axis=0) - 1) < 0.35).all()


def test_runs_of_large_models_are_cut(monkeypatch):
    whole = Annealed().plan(GLASS)
    monkeypatch.setattr(smc, "MAX_UPDATES", 6 * 90)
    cut, with_temperatures = Annealed().plan(GLASS), Annealed(temperatures=50).plan(GLASS)
    assert len(whole.particles) * (len(whole.betas) - 1) > 90
    assert (len(cut.particles), len(cut.betas) - 1) == (8, 11)
    assert (len(with_temperatures.particles), len(with_temperatures.betas) - 1) == (8, 50)
