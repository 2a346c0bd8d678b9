"""`compare`: every pair that runs, and why the others do not."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError, UnknownNameError
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel


@pytest.fixture(scope="module")
def model() -> PairwiseModel:
    return PairwiseModel.from_edges([0.1, -0.4, 0.3], [(0, 1), (1, 2)], [0.5, -0.8], name="three")


def test_compare_runs_the_pairs_that_exist(model: PairwiseModel) -> None:
    results = spinbench.compare(model, ["gibbs", "wmb"], ["numpy", "jax"], budget=50, chains=2)
    ran = {(result.method, result.backend) for result in results}
    assert ran == {("gibbs", "numpy"), ("gibbs", "jax"), ("wmb", "numpy")}
    assert list(results.refused) == [("wmb", "jax")]
    assert "wmb has no kernel for jax" in results.refused["wmb", "jax"]
    assert "wmb on jax did not run: wmb has no kernel for jax" in repr(results)


def test_a_model_that_a_method_refuses_costs_that_method_alone() -> None:
    triple = FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    results = spinbench.compare(triple, ["block_gibbs", "bp", "dhmc", "wmb"], ["numpy"], budget=50)
    assert [result.method for result in results] == ["bp", "wmb"]
    assert set(results.refused) == {("block_gibbs", "numpy"), ("dhmc", "numpy")}


def test_a_defect_of_a_method_costs_that_method_alone(model: PairwiseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no such\nplace")

    monkeypatch.setattr(Gibbs, "estimate", broken)
    results = spinbench.compare(model, ["wmb", "gibbs"], ["numpy"], budget=50)
    assert [result.method for result in results] == ["wmb"]
    assert results.refused == {("gibbs", "numpy"): "ValueError: no such place"}


def test_nothing_that_runs_is_an_error(model: PairwiseModel) -> None:
    with pytest.raises(SpinbenchError, match="none of 1 pairs ran: wmb has no kernel for jax"):
        spinbench.compare(model, ["wmb"], ["jax"])


def test_names_are_checked_before_anything_runs(model: PairwiseModel) -> None:
    with pytest.raises(UnknownNameError, match="did you mean gibbs"):
        spinbench.compare(model, ["exact", "gibs"], ["numpy"])


@pytest.mark.parametrize("given", ["gibbs", []])
def test_a_comparison_needs_lists_of_names(model: PairwiseModel, given: object) -> None:
    for what in ("methods", "backends"):
        with pytest.raises(SpinbenchError, match=f"{what}=.* a list of names is needed, or None for all"):
            spinbench.compare(model, **{what: given})  # type: ignore[arg-type]
