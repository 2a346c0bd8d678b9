"""Gibbs sampling of pairs on every backend: each layout of the couplings, transition probabilities, and settings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from small_graphs import bound, exact_start, law, random_pairs

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs import rows, sweep_layouts
from spinbench.methods.gibbs import gibbs
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel, generators

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
