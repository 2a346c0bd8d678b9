"""1-of-K groups are one variable to samplers, variables of one state count, and answers are in the user's terms."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_graphs import law, random_pairs

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.inference.origins import in_terms_of_origin, model_for_method
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel, condition, groups, to_pairwise
from spinbench.models.groups import merge_groups

RNG = np.random.default_rng(7)
MODELS = {
    "two states": random_pairs(6, 0.6, 1.0, 0, groups=((4, 1), (0, 5))),
    "three states, coupled": random_pairs(6, 0.6, 1.0, 1, groups=((0, 1, 2), (3, 4, 5))),
    "three states beside bits": random_pairs(9, 0.6, 1.0, 2, groups=((0, 4, 7), (2,), (5, 8))),
    "five states": random_pairs(8, 0.6, 1.0, 3, groups=((1, 3, 6, 2, 0),)),
    "strong": random_pairs(7, 0.6, 3.0, 5, groups=((0, 1, 2), (4, 3))),
    "one state": random_pairs(3, 0.6, 1.0, 6, groups=((0,), (2,), (1,))),
    "other origin": to_pairwise(
        FactorGraph.from_log_tables([3, 2, 4], [((0, 1), RNG.normal(size=(3, 2))), ((1, 2), RNG.normal(size=(2, 4)))])
    ),
}


def original(model: PairwiseModel) -> np.ndarray:
    """Marginals of the variables that the user gave, one after another."""
    states, p, _ = law(model)
    return np.hstack(model.original_marginals(states @ p))


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
    assert len(np.unique(lifted, axis=0)) == len(states) == (law(model)[1] > 0).sum()


@pytest.mark.parametrize("name", MODELS)
def test_origins_lead_back_to_where_the_model_came_from(name: str) -> None:
    graph, expected = merge_groups(MODELS[name]), original(MODELS[name])
    assert graph.origin is not None
    states, p, _ = law(graph)
    parts = [np.bincount(own, p, k) for own, k in zip(states, graph.cardinalities, strict=True)]
    given: Any = np.array([part[1] for part in parts]) if graph.all_binary else parts
    np.testing.assert_allclose(np.hstack(graph.origin.marginals(given)), expected, atol=1e-12)
    errors = np.hstack(graph.origin.diagnostics(given, 0.0))  # those of a member's state, or of the other one of two
    assert (np.isclose(errors, expected) | np.isclose(errors, 1 - expected)).all()


def test_the_same_chains_give_the_same_answer_in_both_codings() -> None:
    """A graph of variables of three states, and the pairwise model that it is coded as."""
    rng = np.random.default_rng(4)
    graph = FactorGraph.from_log_tables([3] * 4, [((v, (v + 1) % 4), rng.normal(size=(3, 3))) for v in range(4)])
    method = Gibbs(log_z="none")
    for model in (graph, to_pairwise(graph)):
        given = model_for_method(model, method)
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
    found = spinbench.run(model, "gibbs", "numba", 400, chains=3, seed=1, keep=50)
    assert found.states.shape == (3, 50, 9)
    assert np.isfinite(model.log_weight(found.states)).all()
    spinbench.run(model, "pt", "numba", 400, chains=3, seed=1, keep=50, keep_in=tmp_path / "kept.npz")
    kept = np.load(tmp_path / "kept.npz")["states"]
    assert np.isfinite(model.log_weight(kept.transpose(1, 0, 2) if kept.shape[-1] != 9 else kept)).all()


@pytest.mark.parametrize("method", ["gibbs", "pt", "blocks"])
@pytest.mark.parametrize("name", ["three states beside bits", "five states", "other origin"])
def test_the_heaviest_state_is_of_the_users_variables(name: str, method: str) -> None:
    model, (states, p, _) = MODELS[name], law(MODELS[name])
    found = spinbench.run(model, method, "numpy", 200, chains=8, target="map")
    mode = states[:, p.argmax()]
    assert found.best_log_weight == pytest.approx(float(model.log_weight(mode)), rel=1e-9)
    np.testing.assert_array_equal(found.best_state, mode if model.origin is None else model.origin.lift(mode))


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_starts_are_the_models_own_states(backend: str) -> None:
    model = MODELS["strong"]
    states, p, _ = law(model)
    start = states[:, np.flatnonzero(p > 0)[[0, 5, 9]]]
    with pytest.raises(SpinbenchError, match="start breaks a 1-of-K group of model"):
        spinbench.run(model, "gibbs", backend, 10, start=np.ones_like(start))
    with pytest.raises(SpinbenchError, match=r"an array \(7, chains\) of 0 and 1 is needed"):
        spinbench.run(model, "gibbs", backend, 10, start=start[:-1])
    frozen = PairwiseModel.from_edges([300.0, 0.0, 0.0, 0.0], [(0, 2), (1, 3)], [300.0, 900.0], groups=[(0, 1), (2, 3)])
    begun = np.array([[0, 1, 0, 1], [1, 0, 1, 0]]).T
    stay = spinbench.run(frozen, "gibbs", backend, 5, burn_in=0, start=begun, keep=5, log_z="none")
    np.testing.assert_array_equal(stay.states, np.repeat(begun.T[:, None], 5, axis=1))


def test_evidence_on_members_leaves_smaller_groups() -> None:
    model = condition(MODELS["five states"], {3: 0, 4: 1})
    states, p, _ = law(MODELS["five states"])
    p = p * (states[3] == 0) * (states[4] == 1)
    found = spinbench.run(model, "gibbs", "numba", 2000, chains=20, seed=1)
    assert (np.abs(found.marginals - states @ p / p.sum()) <= 5 * found.marginals_se + 1e-9).all()
    assert found.marginals[[3, 4]].tolist() == [0.0, 1.0]


def test_tables_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_ENTRIES", 8)
    with pytest.raises(UnsupportedError, match=r"its coupled 1-of-K groups would have 9 entries; .* at most 8"):
        merge_groups(MODELS["three states, coupled"])


MIXED = FactorGraph.from_log_tables(
    [2, 1, 2], [((0, 1), np.array([[0.2], [-0.4]])), ((0, 2), np.array([[0.3, -0.1], [0.6, 0.2]]))], name="mixed"
)
SINGLE = FactorGraph.from_log_tables([1, 1], [((0, 1), np.full((1, 1), 0.5))], name="single")


@pytest.mark.parametrize("model", [MIXED, SINGLE], ids=lambda model: model.name)
@pytest.mark.parametrize("method", ["forney_mf", "g_mf", "g_bp", "g_bp_multiple", "bp", "mf", "trw"])
def test_variables_of_one_state(method: str, model: FactorGraph) -> None:
    exact, found = spinbench.exact(model, cache=False), spinbench.run(model, method, "numpy", 2000, chains=1)
    assert found.log_z == pytest.approx(exact.log_z, abs=0.05)
    if found.marginals is not None:
        assert [len(p) for p in found.marginals] == list(model.cardinalities)
        for p, q in zip(found.marginals, exact.marginals, strict=True):
            assert p == pytest.approx(q, abs=0.1)


SAMPLERS = ("gibbs", "blocks", "pt", "smc", "metropolis", "zanella", "tempered_transitions", "multicanonical")


@pytest.mark.parametrize("method", [*SAMPLERS, "importance", "rejection"])
@pytest.mark.parametrize("sizes", [[1, 1], [3], [2, 1, 2]])
def test_models_that_are_given_as_they_are(method: str, sizes: list[int]) -> None:
    """Of one state each, without factors, or with a variable of one state between two others."""
    scopes = [(v, v + 1) for v in range(len(sizes) - 1)]
    tables = [(scope, np.zeros([sizes[v] for v in scope])) for scope in scopes]
    model = FactorGraph.from_log_tables(sizes, tables, name="bare")
    found = spinbench.run(model, method, "numpy", 40, chains=9, simplify=False)
    for p, size in zip(found.marginals, sizes, strict=True):
        assert p == pytest.approx(np.full(size, 1 / size), abs=0.2)


@pytest.mark.parametrize("method", ["importance", "smc"])
def test_runs_that_meet_no_possible_state_say_so(method: str) -> None:
    """Of three states each, of which nothing is known then."""
    alike = np.where(np.eye(3), 0.0, -np.inf)
    model = FactorGraph.from_log_tables([3] * 40, [((v, (v + 7) % 40), alike) for v in range(40)], name="alike")
    settings = {"proposal": "uniform"} if method == "importance" else {"particles": 1, "temperatures": 1}
    found = spinbench.run(model, method, "numpy", 8, chains=1, simplify=False, **settings)
    assert "marginals" in found.status
    assert np.concatenate(found.marginals) == pytest.approx(np.full(120, 1 / 3))
