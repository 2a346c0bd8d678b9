"""What numbers rest on: the strongest that bounds and checks support; what states weigh together is below log Z."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

import spinbench
from spinbench.api import Estimate
from spinbench.api.bounds import Bound
from spinbench.errors import ModelError
from spinbench.inference.checks import best_states as weighed
from spinbench.inference.checks.evidence import Evidence, log_z_evidence, marginals_evidence
from spinbench.mathematics.rounding import work_of
from spinbench.models import Model, PairwiseModel, condition, generators

NARROW = (Bound(0.98, "lower", "certified"), Bound(1.03, "upper", "certified"))
ABOVE = (Bound(1.1, "lower", "certified"),)
PROBABLE = (Bound(0.98, "lower", "certified"), Bound(1.04, "upper", "probable", 0.01))


@pytest.mark.parametrize(
    ("kind", "errors", "bounds", "status", "expected"),
    [
        pytest.param("exact", (None, None), (), "ok", ("exact", 0.0, ""), id="exact"),
        pytest.param("estimate", (0.01, 0.02), NARROW, "ok", ("certified", 0.03, ""), id="in a narrow bracket"),
        pytest.param(
            "estimate", (0.01, 0.02), NARROW, "log Z unresolved", ("certified", 0.03, ""), id="whatever mixes"
        ),
        pytest.param("estimate", (0.01, 0.02), PROBABLE, "ok", ("bounded", 0.04, ""), id="in a probable bracket"),
        pytest.param("lower", (None, None), NARROW, "ok", ("certified", 0.04, ""), id="a bound near the other"),
        pytest.param("estimate", (0.01, 0.02), NARROW[:1], "ok", ("converged", 0.02, ""), id="one side"),
        pytest.param("estimate", (0.5, 0.6), (), "ok", ("converged", 0.6, ""), id="a wide error that it knows"),
        pytest.param("estimate", (0.01, 0.2), (), "ok", ("doubtful", 0.2, "too wide"), id="a bound that says little"),
        pytest.param("estimate", (0.01, 0.02), (), "log Z unresolved", ("doubtful", None, "unresolved"), id="doubted"),
        pytest.param("estimate", (0.01, 0.02), (), "not converged", ("doubtful", None, "not conv"), id="not converged"),
        pytest.param("estimate", (0.01, 0.02), (), "marginals not mixed", ("converged", 0.02, ""), id="others doubted"),
        pytest.param("estimate", (None, None), (), "ok", ("doubtful", None, "nobody knows"), id="an approximation"),
        pytest.param("lower", (None, None), NARROW[:1], "ok", ("doubtful", None, "from below alone"), id="a bound"),
        pytest.param("estimate", (0.01, 0.02), ABOVE, "ok", ("doubtful", None, "outside"), id="outside a bound"),
        pytest.param("estimate", (0.1, 0.12), ABOVE, "ok", ("converged", 0.12, ""), id="within errors of a bound"),
    ],
)
def test_log_z(kind: Any, errors: Any, bounds: Any, status: str, expected: tuple[str, float | None, str]) -> None:
    found = log_z_evidence(0.99 if kind == "lower" else 1.0, kind, errors, bounds, status)
    assert (found.level, found.error_bound) == (expected[0], pytest.approx(expected[1]))
    assert expected[2] in found.reason


@pytest.mark.parametrize(
    ("kind", "se", "bounds", "status", "expected"),
    [
        pytest.param("exact", None, None, "ok", Evidence("exact", 0.0), id="exact"),
        pytest.param("exact", [0.0, 1e-16], [0.0, 1e-16], "ok", Evidence("exact", 0.0), id="exact but for rounding"),
        pytest.param("exact", [0.001, 0.002], [0.004, 0.009], "ok", Evidence("converged", 0.009), id="drawn"),
        pytest.param("estimate", [0.001, 0.002], [0.004, 0.009], "ok", Evidence("converged", 0.009), id="small"),
        pytest.param("estimate", [0.1, 0.002], [0.2, 0.003], "ok", Evidence("converged", 0.2), id="three errors"),
        pytest.param("estimate", [0.001, 0.002], [0.02, 0.002], "ok", "its error bound is too wide", id="too wide"),
        pytest.param("estimate", [0.1, 0.1], [0.1, 0.1], "marginals too short", "marginals too short", id="doubted"),
        pytest.param("estimate", None, None, "ok", "nobody knows its error", id="an approximation"),
    ],
)
def test_marginals(kind: Any, se: Any, bounds: Any, status: str, expected: Evidence | str) -> None:
    arrays = [None if values is None else np.array(values) for values in (se, bounds)]
    found = marginals_evidence(kind, *arrays, status)
    if isinstance(expected, str):
        assert (found.level, found.reason) == ("doubtful", expected)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("method", "level"), [("exact", "exact"), ("gibbs", "converged"), ("bp", "doubtful"), ("mf", "doubtful")]
)
def test_results_carry_the_weakest_level_of_their_numbers(method: str, level: str) -> None:
    """Of an answer, of a run whose checks pass, and of approximations that end well, whose error nobody knows."""
    found = spinbench.run(generators.grid(4, 4, c2=0.3, seed=1), method, "numpy", 2000, seed=1, simplify=False)
    assert (found.status, found.level) == ("ok", level)
    assert set(found.evidence) == {"marginals", "log_z"}


def test_states_alone_rest_on_nothing() -> None:
    model = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])
    assert spinbench.run(model, "gibbs", "numpy", 20, target="map").level == "doubtful"


GRAPHS = {**KINDS, "fields": factors(3, 1, 0.2), "quadruples with zeros": factors(2, 4, 0.15)}
MODELS = 8


def drawn(kind: str) -> list[Model]:
    """Every other one with evidence, as far as that is possible."""
    found = []
    for k in range(MODELS):
        rng = np.random.default_rng([k, 2])
        model = GRAPHS[kind](np.random.default_rng([k, 1]))(rng)
        for state in range(2 if k % 2 else 0):
            try:
                model = condition(model, {int(rng.integers(model.num_variables)): state})
            except ModelError:
                continue
        found.append(model)
    return found


@pytest.mark.parametrize("kind", GRAPHS)
def test_some_states_weigh_less_than_z_and_all_of_them_z(kind: str) -> None:
    for model in drawn(kind):
        (true, slack), room = log_z(model), work_of(model).allowance()
        every = np.array(list(itertools.product(*map(range, model.cardinalities)))).T
        some = every[:, np.random.default_rng(1).integers(every.shape[1], size=40)]
        values = [weighed.below(model, states).value for states in (some, np.hstack([some, some]), every)]
        assert values[0] == values[1] <= values[2] <= true + slack
        assert values[2] == pytest.approx(true, rel=0, abs=2 * room + slack)


@pytest.mark.parametrize("kind", ["pairwise", "triples with zeros", "K-ary with zeros", "quadruples with zeros"])
def test_a_result_has_what_its_draws_weigh(kind: str) -> None:
    """Of the model that was given, whatever fell away before they were drawn."""
    told = 0
    for model in drawn(kind)[:4]:
        found = spinbench.run(model, "wmb", "numpy", 32, chains=8, draws=True, ibound=1)
        bounds = [bound for bound in found.bounds if bound.by == weighed.BY]
        true, slack = log_z(model)
        assert [(bound.side, bound.grade) for bound in bounds] == [("lower", "certified")] * (
            found.log_z_kind != "exact"
        )
        for bound in bounds:
            assert (bound.side, bound.grade) == ("lower", "certified")
            assert bound.value <= true + slack
            told += 1
            if model.origin is None:  # else draws are of what the evidence is of, too
                assert bound.value > model.log_weight(found.draws[0].T).max() - 1e-6
    assert told


def test_exact_draws_bound_log_z_where_the_method_gives_none() -> None:
    model = PairwiseModel.from_edges(np.linspace(-1, 0.5, 6), [(k, k + 1) for k in range(5)], [0.6] * 5)
    found = spinbench.run(model, "cftp", "numpy", 50, chains=16)
    assert found.log_z is None
    assert [bound.by for bound in found.bounds] == [weighed.BY]
    true, slack = log_z(model)
    assert true - 3 < found.bounds[0].value <= true + slack


def test_dead_draws_say_nothing() -> None:
    pair = spinbench.FactorGraph.from_tables((2, 2), [((0, 1), [[0.0, 1.0], [1.0, 0.0]])])
    said = Estimate(draws=(np.zeros((2, 3), dtype=np.int8), None))
    assert weighed.by_draws(pair, said) == said
