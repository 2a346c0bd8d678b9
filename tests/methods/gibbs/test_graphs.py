"""Gibbs sampling of factor graphs of any order, with any states and zeros: what it reports, and says of log Z."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, exact_start, law

import spinbench
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import marginal_rows
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.graph_plan import conditional_ranges
from spinbench.models import FactorGraph

CHAINS = 4096
SETTINGS = {
    "default": Gibbs(),
    "chib": Gibbs(scan="raster", log_z="chib", marginals="empirical"),
    "random": Gibbs(scan="random"),
    "random updates": Gibbs(scan="random", sample="update", marginals="empirical"),
}
CASES = [
    *(("zeros", "default", backend) for backend in ("numpy", "numba", "jax")),
    *((name, setting, b) for b in ("numpy", "numba") for name, setting in (("zeros", "chib"), ("bits", "default"))),
    *(("zeros", setting, b) for b in ("numpy", "numba", "jax") for setting in ("random updates", "random")),
]


def exact_probabilities(model: FactorGraph) -> np.ndarray:
    """The probabilities of what is reported, in order."""
    states, p, _ = law(model)
    variables, values = marginal_rows(np.array(model.cardinalities))
    return np.asarray((states[variables] == values[:, None]) @ p)


@pytest.mark.parametrize(("name", "setting", "backend"), CASES)
def test_exact_draws_have_the_marginals_and_transitions_of_their_law(name: str, setting: str, backend: str) -> None:
    method, model = SETTINGS[setting], MODELS[name]
    tables, engine = bound(model, backend, method)
    steps = 9 if method.sample == "update" else 3
    state, statistics = engine.advance(engine.init(2, exact_start(model, CHAINS)), steps)
    chains = statistics["p" if method.marginals == "rao_blackwell" else "s"] / steps
    error = chains.std(axis=1) / np.sqrt(CHAINS)
    np.testing.assert_array_less(abs(chains.mean(axis=1) - exact_probabilities(model)), 4.5 * error + 1e-9)
    looks = engine.look(state)
    assert np.isfinite(looks["log_r"]).all()
    target = float(np.exp(tables.mode_log_weight - law(model)[2]))  # Σ_s p(s) T(s* <- s) = p(s*)
    weights = [np.exp(looks["log_t"]), *([np.exp(statistics["log_t"]) / steps] if "log_t" in statistics else [])]
    for each in weights:
        assert abs(each.mean() - target) < 4.5 * each.std() / np.sqrt(CHAINS)


@pytest.mark.parametrize("name", MODELS)
def test_ranges_hold_every_conditional(name: str) -> None:
    tables = factor_tables(MODELS[name])
    low, high = conditional_ranges(tables)
    joint = law(MODELS[name])[1].reshape(MODELS[name].cardinalities)
    for row, (v, k) in enumerate(zip(*marginal_rows(tables.cardinalities), strict=True)):
        weights = np.moveaxis(joint, v, 0).reshape(joint.shape[v], -1)
        conditionals = weights[k, weights.sum(axis=0) > 0] / weights.sum(axis=0)[weights.sum(axis=0) > 0]
        assert low[row] - 1e-12 <= conditionals.min() <= conditionals.max() <= high[row] + 1e-12
    assert name == "zeros" or ((low > 0) & (high < 1)).all()


def test_where_the_kernel_refuses_the_program_runs_and_says_why() -> None:
    result = spinbench.run(MODELS["zeros"], "gibbs", "numba", 20, chains=4, scan="random", log_z="chib")
    assert result.tier == "generic"
    assert any("takes sweeps of factor graphs in fixed order" in note for note in result.notes)


def test_threads_and_batches_change_nothing() -> None:
    runs = []
    for method, cuts in ((Gibbs(threads=2, log_z="none"), [7]), (Gibbs(log_z="none"), [3, 4])):
        engine = bound(MODELS["states"], "numba", method)[1]
        state, total = engine.init(9, exact_start(MODELS["states"], 100)), 0.0
        for steps in cuts:
            state, statistics = engine.advance(state, steps)
            total = total + statistics["p"]
        runs.append(total)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12)
