"""Gibbs sampling of pairs and of factor graphs: layouts, transition probabilities, settings, and log Z."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import small_graphs
from small_graphs import bound, exact_start, law, random_pairs

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs import rows, sweep_layouts
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import marginal_rows
from spinbench.methods.gibbs import gibbs
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.graph_plan import conditional_ranges
from spinbench.models import FactorGraph, PairwiseModel, generators

BACKENDS = ["numpy", "numba", "jax"]
HUB = [(0, i) for i in range(1, 11)] + [(i, i + 1) for i in range(1, 10)]
DENSE = {"DENSE_FACTOR": 0}
LISTS = {"DENSE_FACTOR": 0, "MAX_WINDOWS": 0}
# Small models get dense tables, unless constants say that lists of neighbours, windows or blocks are worth it.
MODELS: dict[str, tuple[PairwiseModel, dict[str, int]]] = {
    "dense": (random_pairs(6, 1.0, 1.0, 0), {}),
    "disconnected": (random_pairs(9, 0.3, 1.0, 1), {}),
    "many blocks": (random_pairs(9, 1.0, 0.5, 7), {"MAX_BLOCKS": 4}),
    "lists": (random_pairs(9, 0.3, 1.0, 1), LISTS),
    "lists with a hub": (
        PairwiseModel.from_edges(
            np.random.default_rng(3).normal(size=11), HUB, np.random.default_rng(4).normal(size=len(HUB))
        ),
        LISTS,
    ),
    "many blocks of lists": (random_pairs(10, 0.9, 0.4, 8), LISTS | {"MAX_BLOCKS": 4}),
    "windows": (generators.grid(3, 4, 0.5, 0.5, seed=1), DENSE),
}
SETTINGS = {
    "default": Gibbs(),
    "raster": Gibbs(scan="raster", log_z="chib"),
    "random update": Gibbs(scan="random", sample="update", marginals="empirical", log_z="chib"),
}


@cache
def engine(name: str, backend: str, method: Gibbs, precision: str = "float64") -> tuple[Any, Any]:
    """(tables, engine); compiled once for all tests of this file."""
    model, constants = MODELS[name]
    with pytest.MonkeyPatch.context() as patch:
        for constant, value in constants.items():
            patch.setattr(sweep_layouts if constant == "MAX_BLOCKS" else rows, constant, value)
        return bound(model, backend, method, precision)


def test_tables_have_all_layouts() -> None:
    """Else the tests below would see less than they say."""
    sweeps = {name: engine(name, "numpy", Gibbs())[0].sweep for name in MODELS}
    assert isinstance(sweeps["many blocks"], sweep_layouts.Scan)
    assert not isinstance(sweeps["disconnected"], sweep_layouts.Scan)
    assert sweeps["many blocks of lists"].columns is not None
    assert sweeps["lists with a hub"].first[0].neighbours is not None
    assert sweeps["windows"].first[0].windows is not None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_draws_and_log_z_of_each_layout(name: str, setting: str, backend: str) -> None:
    """From exact draws on; `log_t` of each state is that of its definition."""
    (model, _), method = MODELS[name], SETTINGS[setting]
    tables, bound_engine = engine(name, backend, method)
    states, p, log_z = law(model)
    start = exact_start(model, 1024)
    initial = bound_engine.init(3, start)
    initial_looks = bound_engine.look(initial)
    order = range(model.num_variables) if method.scan == "raster" else tables.order.tolist()
    expected = [log_transition(model, tables, order, s) for s in start.T[:16]]
    np.testing.assert_allclose(initial_looks["log_t"][:16], expected, rtol=1e-9)

    steps = 40
    state, statistics = bound_engine.advance(initial, steps)
    chains = np.empty((model.num_variables, 1024))
    chains[tables.order] = statistics["p" if method.marginals == "rao_blackwell" else "s"] / steps
    error = chains.std(axis=1) / np.sqrt(1024)
    assert (np.abs(chains.mean(axis=1) - states @ p) <= 4.5 * error).all()
    looks, mode_p = bound_engine.look(state), np.exp(float(tables.mode_log_weight) - log_z)
    forward, backward = np.exp(looks["log_t"]), np.exp(-looks["log_r"])  # means p(s*) and 1 / p(s*)
    assert abs(forward.mean() - mode_p) < 4.5 * forward.std() / 32
    assert abs(backward.mean() * mode_p - 1) < 4.5 * backward.std() * mode_p / 32


def log_transition(model: PairwiseModel, tables: Any, order: Any, s: np.ndarray) -> float:
    """log T(s* <- s) from the definition; s (N,) in the order of variables."""
    mode = np.empty(model.num_variables)
    mode[tables.order] = tables.mode
    s, total = s.astype(float), 0.0
    for i in order:
        options = np.repeat(s[None], 2, axis=0)
        options[:, i] = 0.0, 1.0
        s[i] = mode[i]
        total += model.log_weight(s) - np.logaddexp.reduce(model.log_weight(options))
    return total


def marginal_errors(**settings: Any) -> np.ndarray:
    model = MODELS["disconnected"][0]
    return spinbench.run(model, "gibbs", "numba", 9000, chains=16, log_z="none", **settings).marginals_se


def test_rao_blackwell_marginals_have_smaller_errors() -> None:
    assert (marginal_errors() < marginal_errors(marginals="empirical")).all()


def test_a_sample_of_one_update_says_less_than_a_ninth_of_a_sweep() -> None:
    """Of nine variables."""
    sweeps, updates = (
        marginal_errors(scan="random", sample=each, marginals="empirical") for each in ("sweep", "update")
    )
    assert (updates > 2 * sweeps).all()


def test_too_many_variables_for_a_random_scan_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "MAX_RANDOM_VARIABLES", 8)
    with pytest.raises(UnsupportedError, match=r"9 variables.*scan=chromatic"):
        Gibbs(scan="random").plan(MODELS["lists"][0])


CHAINS = 4096
OF_GRAPHS = {
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
    method, model = OF_GRAPHS[setting], small_graphs.MODELS[name]
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


@pytest.mark.parametrize("name", small_graphs.MODELS)
def test_ranges_hold_every_conditional(name: str) -> None:
    tables = factor_tables(small_graphs.MODELS[name])
    low, high = conditional_ranges(tables)
    joint = law(small_graphs.MODELS[name])[1].reshape(small_graphs.MODELS[name].cardinalities)
    for row, (v, k) in enumerate(zip(*marginal_rows(tables.cardinalities), strict=True)):
        weights = np.moveaxis(joint, v, 0).reshape(joint.shape[v], -1)
        conditionals = weights[k, weights.sum(axis=0) > 0] / weights.sum(axis=0)[weights.sum(axis=0) > 0]
        assert low[row] - 1e-12 <= conditionals.min() <= conditionals.max() <= high[row] + 1e-12
    assert name == "zeros" or ((low > 0) & (high < 1)).all()


def test_where_the_kernel_refuses_the_program_runs_and_says_why() -> None:
    result = spinbench.run(small_graphs.MODELS["zeros"], "gibbs", "numba", 20, chains=4, scan="random", log_z="chib")
    assert result.tier == "generic"
    assert any("takes sweeps of factor graphs in fixed order" in note for note in result.notes)


def test_threads_and_batches_change_nothing() -> None:
    runs = []
    for method, cuts in ((Gibbs(threads=2, log_z="none"), [7]), (Gibbs(log_z="none"), [3, 4])):
        engine = bound(small_graphs.MODELS["states"], "numba", method)[1]
        state, total = engine.init(9, exact_start(small_graphs.MODELS["states"], 100)), 0.0
        for steps in cuts:
            state, statistics = engine.advance(state, steps)
            total = total + statistics["p"]
        runs.append(total)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12)
