"""Pairwise models with 1-of-K groups, by every sampler of discrete states, against enumeration."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding, registry
from spinbench.inference.origins import as_taken, in_terms_of_origin
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel, condition, convert, to_pairwise
from spinbench.models.convert import merge_groups

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def random_model(n: int, members: Any, seed: int, scale: float = 1.0, density: float = 0.6) -> PairwiseModel:
    """Couplings within groups, too, which no state feels."""
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]
    biases, couplings = scale * rng.normal(size=n), scale * rng.normal(size=len(edges))
    labels = [f"v{i}" for i in range(n)]
    return PairwiseModel.from_edges(biases, edges, couplings, log_constant=0.7, groups=members, labels=labels)


RNG = np.random.default_rng(7)
MODELS = {
    "two states": random_model(6, ((4, 1), (0, 5)), 0),
    "three states, coupled": random_model(6, ((0, 1, 2), (3, 4, 5)), 1),
    "three states beside bits": random_model(9, ((0, 4, 7), (2,), (5, 8)), 2),
    "five states": random_model(8, ((1, 3, 6, 2, 0),), 3),
    "strong": random_model(7, ((0, 1, 2), (4, 3)), 5, scale=3.0),
    "one state": random_model(3, ((0,), (2,), (1,)), 6),
    "other origin": to_pairwise(
        FactorGraph.from_log_tables([3, 2, 4], [((0, 1), RNG.normal(size=(3, 2))), ((1, 2), RNG.normal(size=(2, 4)))])
    ),
}


@cache
def law(name: str) -> tuple[np.ndarray, FloatArray, float]:
    """All states (2^N, N) of a model's own variables, their probabilities, and log Z."""
    model = MODELS[name]
    states = np.array(list(itertools.product((0, 1), repeat=model.num_variables)))
    logs = model.log_weight(states)
    log_z = float(np.logaddexp.reduce(logs))
    return states, np.exp(logs - log_z), log_z


def original(name: str) -> FloatArray:
    """Marginals of the variables that the user gave, one after another."""
    states, p, _ = law(name)
    return np.hstack(MODELS[name].original_marginals(p @ states))


@pytest.mark.parametrize("name", MODELS)
def test_merging_keeps_the_law(name: str) -> None:
    model = MODELS[name]
    graph = merge_groups(model)
    plain = merge_groups(PairwiseModel(model.biases, model.edges, model.couplings, model.log_constant, model.groups))
    assert plain.origin is not None
    assert graph.content_hash == plain.content_hash
    states = np.array(list(itertools.product(*map(range, graph.cardinalities))))
    lifted = plain.origin.lift(states)
    np.testing.assert_allclose(model.log_weight(lifted), graph.log_weight(states), atol=1e-12)
    np.testing.assert_array_equal(plain.origin.lower(lifted), states)
    assert len(np.unique(lifted, axis=0)) == len(states) == (law(name)[1] > 0).sum()


@pytest.mark.parametrize("name", MODELS)
def test_origins_lead_back_to_where_the_model_came_from(name: str) -> None:
    graph = merge_groups(MODELS[name])
    assert graph.origin is not None
    states = np.array(list(itertools.product(*map(range, graph.cardinalities))))
    p = np.exp(graph.log_weight(states) - law(name)[2])
    parts = [np.bincount(states[:, v], p, k) for v, k in enumerate(graph.cardinalities)]
    given: Any = np.array([part[1] for part in parts]) if graph.all_binary else parts
    np.testing.assert_allclose(np.hstack(graph.origin.marginals(given)), original(name), atol=1e-12)
    errors = np.hstack(graph.origin.diagnostics(given, 0.0))
    assert errors.shape == original(name).shape  # those of a member's state, or of the other one of two
    assert (np.isclose(errors, original(name)) | np.isclose(errors, 1 - original(name))).all()


SAMPLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gibbs": ("gibbs", {}),
    "random scan": ("gibbs", {"scan": "random"}),
    "updates": ("gibbs", {"sample": "update", "scan": "random", "marginals": "empirical", "log_z": "none"}),
    "raster": ("gibbs", {"scan": "raster", "log_z": "stones"}),
    "chib": ("gibbs", {"log_z": "chib"}),
    **{
        name: (name, {})
        for name in (
            *("pt", "smc", "metropolis", "tempered_transitions", "importance", "rejection", "multicanonical"),
            *("zanella", "nested", "blocks"),
        )
    },
}
CASES = [
    (backend, name, sampler)
    for backend in ("numba", "numpy", "jax")
    for name in MODELS
    for sampler in SAMPLERS
    if backend == "numba" or name in ("three states beside bits", "other origin")
    if backend != "jax" or (name == "other origin" and sampler in ("gibbs", "random scan", "pt", "smc", "metropolis"))
]


@pytest.mark.parametrize(("backend", "name", "sampler"), CASES)
def test_samplers_agree_with_enumeration(backend: str, name: str, sampler: str) -> None:
    model, (method, settings) = MODELS[name], SAMPLERS[sampler]
    samples = 400 * (model.num_variables if settings.get("sample") == "update" else 1)
    if not registry.support(method, backend).runs:
        pytest.skip(f"{method} does not run on {backend}")
    found = spinbench.run(model, method, backend, samples, chains=20, seed=3, **settings)
    marginals, errors = np.hstack(found.marginals), np.hstack(found.marginals_se)
    expected, unseen = original(name), 12 / (20 * samples) if settings.get("marginals") == "empirical" else 0.0
    assert marginals.shape == expected.shape
    for parts in (found.ess, found.r_hat):
        assert parts is None or np.hstack(parts).shape == expected.shape
    assert (np.abs(marginals - expected) <= 5 * errors + unseen + 1e-9).all()
    assert errors.max() < 0.1
    if found.log_z is not None and not found.status.endswith("log Z unresolved"):
        assert abs(found.log_z - law(name)[2]) <= 5 * (found.log_z_se or 0.0) + 1e-9


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("sampler", ["gibbs", "random scan", "updates"])
@pytest.mark.parametrize("name", ["three states beside bits", "five states"])
def test_one_chain_agrees_with_enumeration(name: str, sampler: str, precision: Any) -> None:
    samples = 20_000 * (10 if sampler == "updates" else 1)
    method, settings = SAMPLERS[sampler]
    found = spinbench.run(
        MODELS[name], method, "numba", samples, chains=1, seed=3, precision=precision, **settings | {"log_z": "none"}
    )
    assert np.abs(found.marginals - original(name)).max() < 0.02


STATIONARY = {
    "sweeps": Gibbs(marginals="empirical"),
    "raster": Gibbs(scan="raster", marginals="empirical"),
    "random": Gibbs(scan="random", marginals="empirical"),
    "updates": Gibbs(scan="raster", sample="update", marginals="empirical", log_z="none"),
    "random updates": Gibbs(scan="random", sample="update", marginals="empirical", log_z="none"),
}


@pytest.mark.parametrize("setting", STATIONARY)
@pytest.mark.parametrize("backend", ["numba", "numpy", "jax"])
@pytest.mark.parametrize("name", ["two states", "three states beside bits", "strong"])
def test_exact_draws_stay_exact(name: str, backend: str, setting: str) -> None:
    if backend == "jax" and (name != "strong" or setting not in ("sweeps", "random")):
        pytest.skip("compiling takes seconds")
    chains, method, model = 20_000, STATIONARY[setting], MODELS[name]
    states, p, log_z = law(name)
    given = as_taken(model, method)
    assert given.origin is not None
    draws = states[np.random.default_rng(8).choice(len(p), size=chains, p=p)]
    tables = method.plan(given)
    bound = binding.bind(method, backend, given, tables, precision="float64").engine
    state = bound.init(3, given.origin.lower(draws).T.astype(np.int8))
    for _ in range(3):
        state, _ = bound.advance(state, 1)
    lifted = given.origin.lift(np.asarray(bound.states(state)).T)
    counts = np.bincount(lifted @ 2 ** np.arange(model.num_variables)[::-1], minlength=len(p))
    assert counts[p == 0].sum() == 0
    rare = p * chains < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(p[~rare], p[rare].sum()) * chains
    kept = expected > 0
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-3
    if method.log_z != "none":  # Chib: the mean of T(s* <- s) over exact draws of s is p(s*)
        weights = np.exp(bound.look(state)["log_t"])
        mode = np.exp(float(tables.mode_log_weight) - log_z)
        assert abs(weights.mean() - mode) < 4.5 * weights.std() / np.sqrt(chains) + 1e-9


def test_the_same_chains_give_the_same_answer_in_both_codings() -> None:
    """A graph of variables of three states, and the pairwise model that it is coded as."""
    rng = np.random.default_rng(4)
    graph = FactorGraph.from_log_tables([3] * 4, [((v, (v + 1) % 4), rng.normal(size=(3, 3))) for v in range(4)])
    method = Gibbs(log_z="none")
    for model in (graph, to_pairwise(graph)):
        given = as_taken(model, method)
        tables = method.plan(given)
        bound = binding.bind(method, "numba", given, tables, precision="float64").engine
        _, seen = bound.advance(bound.init(1, np.zeros((4, 16), dtype=np.int8)), 50)
        trace = Trace(method.reductions)
        trace.add(seen, 50)
        estimate = in_terms_of_origin(given, method.estimate(given, tables, trace), 800)
        if model is graph:
            expected = np.hstack(estimate.marginals)
    np.testing.assert_allclose(np.hstack(estimate.marginals), expected, atol=1e-9)


def test_what_a_run_keeps_is_of_the_models_variables(tmp_path: Path) -> None:
    model = MODELS["three states beside bits"]
    states = law("three states beside bits")[0]
    found = spinbench.run(model, "gibbs", "numba", 400, chains=3, seed=1, keep=50)
    assert found.states.shape == (3, 50, 9)
    assert np.isfinite(model.log_weight(found.states)).all()
    assert model.log_weight(found.best_state) == found.best_log_weight == model.log_weight(states).max()
    spinbench.run(model, "pt", "numba", 400, chains=3, seed=1, keep=50, keep_in=tmp_path / "kept.npz")
    kept = np.load(tmp_path / "kept.npz")["states"]
    assert np.isfinite(model.log_weight(kept.transpose(1, 0, 2) if kept.shape[-1] != 9 else kept)).all()
    drawn = spinbench.run(model, "importance", "numba", 400, chains=20, seed=1)
    if drawn.draws is not None:
        assert np.isfinite(model.log_weight(np.asarray(drawn.draws[0]).T)).all()
    assert found.pairs is None


@pytest.mark.parametrize("method", ["gibbs", "pt", "blocks"])
@pytest.mark.parametrize("name", ["three states beside bits", "five states", "other origin"])
def test_the_heaviest_state_is_of_the_users_variables(name: str, method: str) -> None:
    model, states = MODELS[name], law(name)[0]
    found = spinbench.run(model, method, "numpy", 200, chains=8, target="map")
    assert found.best_log_weight == pytest.approx(model.log_weight(states).max(), rel=1e-9)
    mode = states[model.log_weight(states).argmax()]
    np.testing.assert_array_equal(found.best_state, mode if model.origin is None else model.origin.lift(mode))


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_starts_are_the_models_own_states(backend: str) -> None:
    model = MODELS["strong"]
    states, p, _ = law("strong")
    start = states[np.flatnonzero(p > 0)[[0, 5, 9]]].T
    found = spinbench.run(model, "gibbs", backend, 1, burn_in=0, start=start, marginals="empirical", log_z="none")
    assert found.chains == 3
    with pytest.raises(SpinbenchError, match="start breaks a 1-of-K group of model"):
        spinbench.run(model, "gibbs", backend, 10, start=np.ones_like(start))
    with pytest.raises(SpinbenchError, match=r"an array \(7, chains\) of 0 and 1 is needed"):
        spinbench.run(model, "gibbs", backend, 10, start=start[:-1])
    frozen = PairwiseModel.from_edges([300.0, 0.0, 0.0, 0.0], [(0, 2), (1, 3)], [300.0, 900.0], groups=[(0, 1), (2, 3)])
    begun = np.array([[0, 1, 0, 1], [1, 0, 1, 0]]).T
    stay = spinbench.run(frozen, "gibbs", backend, 5, burn_in=0, start=begun, keep=5, log_z="none")
    np.testing.assert_array_equal(stay.states, np.repeat(begun.T[:, None], 5, axis=1))


def test_draws_of_another_method_may_be_starts() -> None:
    found = spinbench.run(MODELS["five states"], "gibbs", "numba", 400, chains=20, start="wmb")
    assert (np.abs(found.marginals - original("five states")) <= 5 * found.marginals_se).all()


def test_evidence_on_members_leaves_smaller_groups() -> None:
    model = condition(MODELS["five states"], {"v3": 0, "v4": 1})
    states, p, _ = law("five states")
    p = p * (states[:, 3] == 0) * (states[:, 4] == 1)
    found = spinbench.run(model, "gibbs", "numba", 2000, chains=20, seed=1)
    assert (np.abs(found.marginals - p @ states / p.sum()) <= 5 * found.marginals_se + 1e-9).all()
    assert found.marginals[3] == 0.0
    assert found.marginals[4] == 1.0


def test_tables_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "MAX_ENTRIES", 8)
    with pytest.raises(UnsupportedError, match=r"its coupled 1-of-K groups would have 9 entries; .* at most 8"):
        merge_groups(MODELS["three states, coupled"])


def test_mixing_takes_groups_as_variables() -> None:
    found = spinbench.mixing(MODELS["three states, coupled"], budget="2 s")
    assert found.status != "" if hasattr(found, "status") else found is not None


@pytest.mark.parametrize("method", ["swendsen_wang", "cftp"])
def test_cluster_methods_need_two_states(method: str) -> None:
    with pytest.raises(UnsupportedError, match="1-of-K groups"):
        spinbench.run(MODELS["five states"], method, "numba", 10)
