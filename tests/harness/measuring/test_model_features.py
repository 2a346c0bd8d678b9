"""What records say of their models, against sums over the tables."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.measuring.in_process import measure_here
from spinbench.measuring.model_features import describe_model
from spinbench.models import FactorGraph, PairwiseModel, generators

RNG = np.random.default_rng(5)
TABLES = [((0, 1, 2), RNG.uniform(0.1, 2, (2, 3, 2))), ((2,), [0.5, 3.0]), ((1, 3), RNG.uniform(0.1, 2, (3, 2)))]


def test_the_trivial_answer_has_the_mean_of_each_table() -> None:
    model = FactorGraph.from_tables([2, 3, 2, 2], TABLES)
    exact = spinbench.exact(model, cache=False)
    trivial = sum(np.log(np.mean(table)) for _, table in TABLES) + np.log(24)
    uniform = [np.full(k, 1 / k) for k in (2, 3, 2, 2)]
    distances = [np.sqrt(1 - np.sqrt(np.asarray(p) * q).sum()) for p, q in zip(exact.marginals, uniform, strict=True)]
    assert describe_model(model, exact) == {
        **{"variables": 4, "factors": 3, "states": 3, "order": 3, "zeros": 0.0},
        "trivial_log_z_error": pytest.approx(abs(trivial - exact.log_z)),
        "trivial_hellinger": pytest.approx(np.mean(distances)),
    }


def test_couplings_are_tables_too() -> None:
    model = generators.grid(3, 3, seed=1)
    exact = spinbench.exact(model)
    means = [*(1 + np.exp(model.biases)) / 2, *(3 + np.exp(model.couplings)) / 4]
    found = describe_model(model, exact)
    assert found["trivial_log_z_error"] == pytest.approx(abs(np.log(means).sum() + 9 * np.log(2) - exact.log_z))
    assert (found["variables"], found["order"], found["states"]) == (9, 2, 2)


def test_zeros_are_counted_and_impossible_states_are_not() -> None:
    xor = np.eye(3)
    model = FactorGraph.from_tables([3, 3], [((0, 1), xor), ((0,), [1.0, 1.0, 0.0])])
    found = describe_model(model, spinbench.exact(model, cache=False))
    assert (found["states"], found["zeros"]) == (2, pytest.approx(2 / 6))
    assert "trivial_hellinger" not in describe_model(model, None)


def test_a_model_without_factors_has_a_right_trivial_answer() -> None:
    model = PairwiseModel.from_edges(np.zeros(3), np.zeros((0, 2), dtype=int), np.zeros(0))
    found = describe_model(model, spinbench.exact(model))
    assert found["trivial_log_z_error"] == pytest.approx(0.0, abs=1e-12)
    assert found["trivial_hellinger"] == pytest.approx(0.0, abs=1e-12)


def test_each_record_has_them() -> None:
    cell = {
        "model": {"name": "grid", "rows": 2, "cols": 2},
        "method": {"name": "mf"},
        "backend": {"name": "numpy"},
        "budget": {"samples": 10},
        "chains": 1,
        "seed": 0,
    }
    assert measure_here(cell)["features"]["variables"] == 4
