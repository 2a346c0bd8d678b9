"""`run`, `exact` and `compare` on small models, also with a Method that is not registered, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Method
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel, condition

RNG = np.random.default_rng(0)
UPPER = np.triu(RNG.normal(size=(6, 6)), 1)
SIX = PairwiseModel.from_dense(RNG.normal(size=6), UPPER + UPPER.T, name="six")
TRIPLE = FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")


@dataclass(frozen=True)
class Fresh(Gibbs):
    name = "fresh"


@dataclass(frozen=True)
class Likeness(Gibbs):
    level: int = 1


PLAIN = object.__new__(type("Plain", (Method,), {"name": "plain", "reductions": {}, "plan": 0, "estimate": 0}))
START = np.ones((6, 3), dtype=np.int8)


def run(**options: Any) -> Result:
    return spinbench.run(**{"model": SIX, "method": "gibbs", "backend": "numpy", "budget": 10} | options)


def test_exact_is_enumeration() -> None:
    states = (np.arange(64)[:, None] >> np.arange(6)) & 1
    weights = np.exp(SIX.log_weight(states))
    answer = spinbench.exact(SIX, cache=False)
    assert answer.log_z == pytest.approx(np.log(weights.sum()), rel=1e-12)
    np.testing.assert_allclose(answer.marginals, weights @ states / weights.sum(), rtol=1e-12)
    assert answer.log_z_kind == "exact"


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_exact_runs_as_a_method(backend: str) -> None:
    result = run(method="exact", backend=backend, budget="1 s")
    assert result.log_z == pytest.approx(spinbench.exact(SIX, cache=False).log_z, rel=1e-12)
    assert (result.tier, result.samples) == ("native", 1)


def test_k_ary_marginals_are_arrays_a_variable() -> None:
    graph = FactorGraph.from_tables((3, 2), [((0,), [1.0, 2.0, 5.0]), ((0, 1), [1.0, 1, 2, 1, 3, 1])])
    answer = spinbench.exact(graph, cache=False)
    assert answer.log_z == pytest.approx(np.log(2 + 6 + 20))
    np.testing.assert_allclose(answer.marginals[0], np.array([2, 6, 20]) / 28)


def test_a_run_reports_all_that_the_result_promises() -> None:
    result = run(budget=2000, chains=8, seed=3)
    exact = spinbench.exact(SIX, cache=False)
    assert (result.samples, result.burn_in, result.chains) == (2000, 400, 8)
    assert (np.abs(result.marginals - exact.marginals) < 5 * result.marginals_se).all()
    assert (result.ess > 100).all()
    assert (result.r_hat < 1.05).all()
    assert result.trajectory[-1].samples == 2000
    assert result.seconds.run > 0
    assert result.settings["scan"]


def test_same_seed_same_result() -> None:
    first, second, other = (run(budget=100, chains=4, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.marginals, second.marginals)
    assert (first.marginals != other.marginals).any()


def test_states_and_burn_in_are_used_as_they_are_given() -> None:
    assert run(start=START).chains == 3
    result = run(budget=Budget(samples=10), chains=2, burn_in=5)
    assert (result.samples, result.burn_in) == (10, 5)


def test_diagnostics_have_the_layout_of_marginals() -> None:
    """Evidence and 1-of-K coding: one entry where marginals have one, and none that hides the others' minimum."""
    rng = np.random.default_rng(5)
    graph = FactorGraph.from_tables((2, 3, 2), [((0, 1), rng.random((2, 3)) + 0.1), ((1, 2), rng.random((3, 2)) + 0.1)])
    for model in (graph, condition(graph, {2: 1})):
        result = run(model=model, budget=200, chains=8)
        for values in (result.marginals_se, result.ess, result.r_hat):
            assert [part.shape for part in values] == [part.shape for part in result.marginals]
        assert min(part.min() for part in result.ess) > 0
    assert (result.ess[2] == 1600).all()
    assert (result.r_hat[2] == 1).all()
    pairs = PairwiseModel.from_edges([0.2, 0.5, 30.0, 0.1], [(0, 1), (0, 3)], [0.3, 0.2])
    known = run(model=condition(pairs, {1: 0}), budget=200, chains=8)
    assert known.ess.shape == known.r_hat.shape == known.marginals.shape == (4,)
    assert known.ess[1] == 1600
    assert np.isfinite(known.ess).all()


def test_what_pairs_cannot_say_is_refused_with_advice_that_holds() -> None:
    with pytest.raises(
        UnsupportedError, match=r"dhmc takes pairwise models: triple: .*; gibbs, bp and mf take this one"
    ):
        run(model=TRIPLE, method="dhmc")
    for method in ("gibbs", "bp", "mf"):
        assert run(model=TRIPLE, method=method, budget=100).log_z is not None


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_program_of_a_method_that_is_not_registered_runs(backend: str) -> None:
    result = run(method=Fresh(scan="raster", log_z="none"), backend=backend, budget=50, chains=4)
    assert (result.method, result.tier, result.settings["scan"]) == ("fresh", "generic", "raster")
    known = run(backend=backend, budget=50, chains=4, scan="raster", tier="generic", log_z="none")
    assert result.marginals.tolist() == known.marginals.tolist()


def test_a_method_has_no_part_in_the_kernels_of_what_it_derives_from() -> None:
    assert run(method=Fresh(log_z="none"), backend="numba", budget=50).tier == "generic"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "gibs"}, "did you mean gibbs"),
        ({"backend": "numpi"}, "did you mean numpy"),
        ({"chains": 0}, "chains=0"),
        ({"chains": 1.5}, "chains=1.5 was given; a whole number, 1 or more"),
        ({"chains": "4"}, "chains='4' was given; a whole number"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": None}, "seed=None was given; a whole number, 0 or more"),
        ({"checkpoints": 0}, "checkpoints=0 was given; a whole number, 1 or more"),
        ({"method": 3}, "method=3 was given; a name such as 'gibbs'"),
        ({"chains": 2**50}, "out of memory: .*; fewer chains"),
        ({"simplify": "no"}, "simplify='no' was given; true or false is needed"),
        ({"precision": "float16"}, "float32 and float64 are allowed"),
        ({"budget": "3 weeks"}, "examples"),
        ({"scam": "raster"}, "did you mean scan"),
        ({"start": START[:5]}, r"start has shape \(5, 3\)"),
        ({"start": 2 * START}, "0 and 1"),
        ({"start": START[:, :0]}, r"start has shape \(6, 0\); an array \(6, chains\)"),
        ({"start": np.full((6, 4), "a")}, r"an array \(6, chains\) of 0 and 1 is needed"),
        ({"start": "bp"}, "start='bp' was given; 'wmb', or an array of states, is needed"),
        ({"method": "exact", "start": "wmb"}, "exact starts from no states"),
        ({"method": "wmb", "start": "wmb"}, "wmb starts from no states"),
        ({"method": "mf", "until": "se<0.01"}, "mf makes no draws whose errors could fall"),
        ({"method": "exact", "until": "se<0.01"}, "exact makes no draws whose errors could fall"),
        ({"method": Fresh(), "backend": "numba", "tier": "native"}, "fresh has no kernel for numba"),
        ({"method": Likeness()}, r"Likeness was given, whose name gibbs is that of .*\.Gibbs; rename it$"),
        ({"method": PLAIN}, "Plain was given, which lacks the class attribute summary$"),
        ({"method": Gibbs(), "scan": "raster"}, "scan was given beside a Method, which has its settings"),
        (
            {"model": TRIPLE, "backend": "numba", "log_z": "none", "marginals": "empirical", "precision_bits": 8},
            "precision_bits=8 takes pairwise models: .*; with its defaults it takes this one",
        ),
        ({"model": None}, "model=None was given; a PairwiseModel or a FactorGraph is needed$"),
        ({"model": "good.uai"}, r"spinbench.load\('good.uai'\) reads one"),
    ],
)
def test_bad_arguments_are_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpinbenchError, match=message) as caught:
        run(**options)
    assert "\n" not in str(caught.value)


def test_exact_needs_a_model() -> None:
    with pytest.raises(SpinbenchError, match=r"spinbench.load\('good.uai'\) reads one"):
        spinbench.exact("good.uai")  # type: ignore[arg-type]


def test_compare_runs_the_pairs_that_exist() -> None:
    results = spinbench.compare(SIX, ["gibbs", "wmb"], ["numpy", "jax"], budget=50, chains=2)
    ran = {(result.method, result.backend) for result in results}
    assert ran == {("gibbs", "numpy"), ("gibbs", "jax"), ("wmb", "numpy")}
    assert list(results.refused) == [("wmb", "jax")]
    assert "wmb has no kernel for jax" in results.refused["wmb", "jax"]
    assert "wmb on jax did not run: wmb has no kernel for jax" in repr(results)


def test_a_model_that_a_method_refuses_costs_that_method_alone() -> None:
    results = spinbench.compare(TRIPLE, ["block_gibbs", "bp", "dhmc", "wmb"], ["numpy"], budget=50)
    assert [result.method for result in results] == ["bp", "wmb"]
    assert set(results.refused) == {("block_gibbs", "numpy"), ("dhmc", "numpy")}


def test_a_defect_of_a_method_costs_that_method_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no such\nplace")

    monkeypatch.setattr(Gibbs, "estimate", broken)
    results = spinbench.compare(SIX, ["wmb", "gibbs"], ["numpy"], budget=50)
    assert [result.method for result in results] == ["wmb"]
    assert results.refused == {("gibbs", "numpy"): "ValueError: no such place"}


@pytest.mark.parametrize(
    ("methods", "backends", "message"),
    [
        (["wmb"], ["jax"], "none of 1 pairs ran: wmb has no kernel for jax"),
        (["exact", "gibs"], ["numpy"], "did you mean gibbs"),  # before anything runs
        ("gibbs", ["numpy"], "methods=.* a list of names is needed, or None for all"),
        ([], ["numpy"], "methods=.* a list of names is needed, or None for all"),
        (["gibbs"], "numpy", "backends=.* a list of names is needed, or None for all"),
        (["gibbs"], [], "backends=.* a list of names is needed, or None for all"),
    ],
)
def test_what_cannot_be_compared_is_refused(methods: Any, backends: Any, message: str) -> None:
    with pytest.raises(SpinbenchError, match=message):
        spinbench.compare(SIX, methods, backends)


def test_models_without_variables_have_a_log_z_and_nothing_to_run() -> None:
    model = PairwiseModel(np.zeros(0), np.zeros((0, 2), np.int64), np.zeros(0), log_constant=2.0)
    for empty, log_z in [(model, 2.0), (FactorGraph((), [], log_constant=1.5), 1.5)]:
        assert spinbench.exact(empty).log_z == pytest.approx(log_z)
        with pytest.raises(SpinbenchError, match=r"has no variables; spinbench\.exact gives its log Z$"):
            spinbench.run(empty, "gibbs")
