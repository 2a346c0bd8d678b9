"""Gibbs sampling of factor graphs of any order, with any states and zeros, on every backend, against enumeration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_graphs import SCOPES, graph

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference import binding
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import reported_rows
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.graph_plan import graph_ranges
from spinbench.models import FactorGraph

BACKENDS = ["numpy", "numba", "jax"]

MODELS = {
    "zeros": graph([3, 2, 1, 3, 2, 3], SCOPES, 1, 0.5),
    "states": graph([3, 2, 2, 4, 2], [[1, 0], [3], [4, 3], [2, 1, 4], [0, 2]], 2, 0.0),
    "bits": graph([2] * 6, [[2, 0, 1], [1, 3], [3, 5, 4], [4], [5, 0]], 3, 0.0),
}


@cache
def law(name: str) -> tuple[np.ndarray, np.ndarray, float]:
    """States (N, S), in C order, their probabilities, and log Z."""
    states = np.indices(MODELS[name].cardinalities).reshape(len(MODELS[name].cardinalities), -1)
    weights = MODELS[name].log_weight(states.T)
    log_z = float(np.logaddexp.reduce(weights))
    return states, np.exp(weights - log_z), log_z


def marginals(name: str) -> np.ndarray:
    """The probabilities of what is reported, in order."""
    states, p, _ = law(name)
    variables, values = reported_rows(np.array(MODELS[name].cardinalities))
    return np.asarray((states[variables] == values[:, None]) @ p)


@cache
def bound(name: str, backend: str, method: Gibbs, precision: Any = "float64") -> tuple[Any, Any]:
    tables = method.plan(MODELS[name])
    return tables, binding.bind(method, backend, MODELS[name], tables, precision=precision).engine


CHAINS = 4096
SETTINGS = {
    "default": Gibbs(),
    "chib": Gibbs(scan="raster", log_z="chib", marginals="empirical"),
    "random": Gibbs(scan="random"),
    "updates": Gibbs(scan="raster", sample="update", log_z="none"),
    "random updates": Gibbs(scan="random", sample="update", marginals="empirical"),
}
CASES = [
    (backend, name, setting)
    for backend in BACKENDS
    for name, setting in [
        ("zeros", "default"),
        ("zeros", "chib"),
        ("bits", "default"),
        ("states", "random"),
        ("zeros", "updates"),
        ("zeros", "random updates"),
    ]
    if backend != "jax" or (name, setting) not in [("bits", "default"), ("zeros", "chib")]
]


@pytest.mark.parametrize(("backend", "name", "setting"), CASES)
def test_exact_draws_stay_exact(backend: str, name: str, setting: str) -> None:
    """Their states, the marginals that they report, and what they say of log Z."""
    method, (states, p, log_z) = SETTINGS[setting], law(name)
    tables, engine = bound(name, backend, method)
    drawn = np.random.default_rng(6).choice(len(p), size=CHAINS, p=p)
    steps = 9 if method.sample == "update" else 3
    state, seen = engine.advance(engine.init(2, states[:, drawn].astype(np.int8)), steps)
    x = tables.mode  # for its length alone
    assert len(x) == len(states)
    chains = seen["p" if method.marginals == "rao_blackwell" else "s"] / steps
    exact = marginals(name)
    error = chains.std(axis=1) / np.sqrt(CHAINS)
    np.testing.assert_array_less(abs(chains.mean(axis=1) - exact), 4.5 * error + 1e-9)
    if method.log_z == "none":
        return
    looked = engine.look(state)
    weights = np.exp(looked["log_t"])  # Σ_s p(s) T(s* <- s) = p(s*)
    target = float(np.exp(tables.mode_log_weight - log_z))
    assert abs(weights.mean() - target) < 4.5 * weights.std() / np.sqrt(CHAINS)
    assert np.isfinite(looked["log_r"]).all()
    if "log_t" in seen:
        mean = np.exp(seen["log_t"]) / steps
        assert abs(mean.mean() - target) < 4.5 * mean.std() / np.sqrt(CHAINS)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_states_keep_the_law(backend: str) -> None:
    """A χ² test of whole states, drawn by a run that ends far from its start."""
    states, p, _ = law("zeros")
    method = Gibbs(marginals="empirical", log_z="none")
    engine = bound("zeros", backend, method)[1]
    state = engine.warm(engine.init(4, np.repeat(states[:, [int(p.argmax())]], CHAINS, axis=1)), 60)
    _, seen = engine.advance(state, 1)
    variables, values = reported_rows(np.array(MODELS["zeros"].cardinalities))
    x = np.zeros((6, CHAINS), dtype=np.int64)
    for v, k, own in zip(variables, values, seen["s"], strict=True):
        x[v] += k * own.astype(np.int64)
    counts = np.bincount(np.ravel_multi_index(tuple(x), MODELS["zeros"].cardinalities), minlength=len(p))
    assert not counts[p == 0].any()
    expected = CHAINS * p
    kept = expected >= 8
    counts, expected = (np.append(a[kept], a[~kept].sum()) for a in (counts, expected))
    assert stats.chisquare(counts, expected).pvalue > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "log_z"), [("zeros", "auto"), ("states", "stones"), ("bits", "auto")])
def test_runs_are_right_within_what_they_claim(backend: str, name: str, log_z: Any) -> None:
    if backend == "jax" and log_z == "auto":
        pytest.skip("what it would compile is compiled for stones, too")
    samples = 400 if backend == "numpy" else 2000
    found = spinbench.run(MODELS[name], "gibbs", backend, samples, chains=32, seed=3, log_z=log_z)
    _, _, exact = law(name)
    assert found.status == "ok"
    assert abs(found.log_z - exact) < 3 * found.log_z_se < 0.3
    assert ("stones" if log_z == "stones" else "chib_bar") in found.log_z_estimates
    p, se = (
        np.concatenate([np.atleast_1d(part)[-1 if len(part) == 2 else 0 :] for part in values])
        if isinstance(values, list)
        else values
        for values in (found.marginals, found.marginals_se)
    )
    if name != "bits":
        several = [k != 1 for k in MODELS[name].cardinalities for _ in range(1 if k == 2 else k)]
        p, se = p[several], se[several]
    np.testing.assert_array_less(abs(p - marginals(name)), 3 * se + 1e-12)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_sets_of_states_that_single_updates_do_not_leave_are_noticed(backend: str) -> None:
    """Of x_0 = x_1 = x_2 a chain stays in the one of two states in which it starts."""
    equal = np.full((2, 2, 2), -np.inf)
    equal[0, 0, 0], equal[1, 1, 1] = 0.0, 1.0
    model = FactorGraph.from_log_tables([2, 2, 2, 2], [([0, 1, 2], equal), ([2, 3], np.eye(2))])
    for seed in range(6):
        found = spinbench.run(model, "gibbs", backend, 200, chains=16, seed=seed)
        assert "marginals not mixed" in found.status


def test_ranges_hold_every_conditional() -> None:
    for name in MODELS:
        tables = factor_tables(MODELS[name])
        low, high = graph_ranges(tables)
        joint = law(name)[1].reshape(MODELS[name].cardinalities)
        for row, (v, k) in enumerate(zip(*reported_rows(tables.cardinalities), strict=True)):
            own = np.moveaxis(joint, v, 0).reshape(joint.shape[v], -1)
            seen = own[k, own.sum(axis=0) > 0] / own.sum(axis=0)[own.sum(axis=0) > 0]
            assert low[row] - 1e-12 <= seen.min() <= seen.max() <= high[row] + 1e-12
        if name != "zeros":
            assert ((low > 0) & (high < 1)).all()


def test_what_does_not_apply_is_refused_in_a_sentence() -> None:
    with pytest.raises(UnsupportedError, match="hard zeros, over which log_z=stones has no way up"):
        spinbench.run(MODELS["zeros"], "gibbs", "numba", 10, log_z="stones")


def test_where_the_kernel_refuses_the_program_runs_and_says_why() -> None:
    found = spinbench.run(MODELS["zeros"], "gibbs", "numba", 400, chains=16, scan="random", log_z="chib")
    assert found.tier == "generic"
    assert any("takes sweeps of factor graphs in fixed order" in note for note in found.notes)
    true = spinbench.exact(MODELS["zeros"]).log_z
    assert abs(found.log_z - true) < 4 * found.log_z_se


def test_threads_and_batches_change_nothing() -> None:
    method = Gibbs(threads=2, log_z="none")
    states, p, _ = law("states")
    start = states[:, np.random.default_rng(1).choice(len(p), size=100, p=p)]
    runs = []
    for own, cuts in ((method, [7]), (Gibbs(log_z="none"), [3, 4])):
        engine = bound("states", "numba", own)[1]
        state, total = engine.init(9, start), 0.0
        for steps in cuts:
            state, seen = engine.advance(state, steps)
            total = total + seen["p"]
        runs.append(total)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12)
