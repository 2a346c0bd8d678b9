"""`run` and `exact` on small models, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError, UnknownNameError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result
from spinbench.models import FactorGraph, PairwiseModel, condition


@pytest.fixture(scope="module")
def model() -> PairwiseModel:
    rng = np.random.default_rng(0)
    W = np.triu(rng.normal(size=(6, 6)), 1)
    return PairwiseModel.from_dense(rng.normal(size=6), W + W.T, name="six")


def test_exact_is_enumeration(model: PairwiseModel) -> None:
    states = (np.arange(64)[:, None] >> np.arange(6)) & 1
    weights = np.exp(model.log_weight(states))
    answer = spinbench.exact(model, cache=False)
    assert answer.log_z == pytest.approx(np.log(weights.sum()), rel=1e-12)
    np.testing.assert_allclose(answer.marginals, weights @ states / weights.sum(), rtol=1e-12)
    assert answer.log_z_kind == "exact"


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_exact_runs_as_a_method(model: PairwiseModel, backend: str) -> None:
    result = spinbench.run(model, method="exact", backend=backend, budget="1 s")
    assert result.log_z == pytest.approx(spinbench.exact(model, cache=False).log_z, rel=1e-12)
    assert result.tier == "native"
    assert result.samples == 1


def test_k_ary_marginals_are_arrays_a_variable() -> None:
    graph = FactorGraph.from_tables((3, 2), [((0,), [1.0, 2.0, 5.0]), ((0, 1), [1.0, 1, 2, 1, 3, 1])])
    answer = spinbench.exact(graph, cache=False)
    assert answer.log_z == pytest.approx(np.log(2 + 6 + 20))
    np.testing.assert_allclose(answer.marginals[0], np.array([2, 6, 20]) / 28)


def test_a_run_reports_all_that_the_result_promises(model: PairwiseModel) -> None:
    result = spinbench.run(model, method="gibbs", backend="numpy", budget=2000, chains=8, seed=3)
    exact = spinbench.exact(model, cache=False)
    assert isinstance(result, Result)
    assert result.samples == 2000
    assert result.burn_in == 400
    assert result.chains == 8
    assert (np.abs(result.marginals - exact.marginals) < 5 * result.marginals_se).all()
    assert result.ess is not None
    assert (result.ess > 100).all()
    assert result.r_hat is not None
    assert (result.r_hat < 1.05).all()
    assert result.trajectory[-1].samples == 2000
    assert result.seconds.run > 0
    assert result.settings["scan"]


def test_same_seed_same_result(model: PairwiseModel) -> None:
    first, second, other = (
        spinbench.run(model, method="gibbs", backend="numpy", budget=100, chains=4, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.marginals, second.marginals)
    assert (first.marginals != other.marginals).any()


def test_start_states_are_used_and_checked(model: PairwiseModel) -> None:
    start = np.ones((6, 3), dtype=np.int8)
    assert spinbench.run(model, backend="numpy", budget=4, start=start).chains == 3
    with pytest.raises(SpinbenchError, match=r"start has shape \(5, 3\)"):
        spinbench.run(model, backend="numpy", budget=4, start=start[:5])
    with pytest.raises(SpinbenchError, match="0 and 1"):
        spinbench.run(model, backend="numpy", budget=4, start=2 * start)
    with pytest.raises(SpinbenchError, match=r"start has shape \(6, 0\); an array \(6, chains\)"):
        spinbench.run(model, backend="numpy", budget=4, start=start[:, :0])


def test_diagnostics_have_the_layout_of_marginals() -> None:
    """Evidence and 1-of-K coding: one entry where marginals have one, and none that hides the others' minimum."""
    rng = np.random.default_rng(5)
    graph = FactorGraph.from_tables((2, 3, 2), [((0, 1), rng.random((2, 3)) + 0.1), ((1, 2), rng.random((3, 2)) + 0.1)])
    for model in (graph, condition(graph, {2: 1})):
        result = spinbench.run(model, "gibbs", "numpy", 200, chains=8)
        for values in (result.marginals_se, result.ess, result.r_hat):
            assert [part.shape for part in values] == [part.shape for part in result.marginals]
        assert min(part.min() for part in result.ess) > 0
    assert (result.ess[2] == 1600).all()
    assert (result.r_hat[2] == 1).all()
    pairs = PairwiseModel.from_edges([0.2, 0.5, 30.0], [(0, 1)], [0.3])
    known = spinbench.run(condition(pairs, {1: 0}), "gibbs", "numpy", 200, chains=8)
    assert known.ess.shape == known.r_hat.shape == known.marginals.shape == (3,)
    assert known.ess[1] == 1600
    assert np.isfinite(known.ess).all()


def test_what_pairs_cannot_say_is_refused_with_advice_that_holds() -> None:
    triple = FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    with pytest.raises(
        UnsupportedError, match=r"dhmc takes pairwise models: triple: .*; gibbs, bp and mf take this one"
    ):
        spinbench.run(triple, "dhmc", "numpy", 10)
    for method in ("gibbs", "bp", "mf"):
        assert spinbench.run(triple, method, "numpy", 100).log_z is not None
    with pytest.raises(
        UnsupportedError,
        match=r"precision_bits=8 takes pairwise models: .*; with its defaults it takes this one",
    ):
        spinbench.run(triple, "gibbs", "numba", 10, log_z="none", marginals="empirical", precision_bits=8)


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
    ],
)
def test_bad_arguments_are_one_sentence(model: PairwiseModel, options: dict[str, object], message: str) -> None:
    arguments = {"method": "gibbs", "backend": "numpy", "budget": 10} | options
    with pytest.raises((SpinbenchError, UnknownNameError), match=message) as caught:
        spinbench.run(model, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [spinbench.run, spinbench.exact])
def test_what_is_no_model_is_refused_and_a_path_gets_a_hint(call: Callable[[Any], object]) -> None:
    with pytest.raises(SpinbenchError, match=r"model=None was given; a PairwiseModel or a FactorGraph is needed$"):
        call(None)
    with pytest.raises(SpinbenchError, match=r"spinbench.load\('good.uai'\) reads one"):
        call("good.uai")


def test_burn_in_beside_a_budget_counts(model: PairwiseModel) -> None:
    result = spinbench.run(model, "gibbs", "numpy", Budget(samples=10), chains=2, burn_in=5)
    assert (result.samples, result.burn_in) == (10, 5)
