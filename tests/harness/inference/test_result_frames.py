"""Marginals as a frame: a line for each state, of binary and K-ary models alike."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.models import FactorGraph

pytest.importorskip("pandas")


def model(states: int) -> FactorGraph:
    rng = np.random.default_rng(3)
    return FactorGraph.from_log_tables([2, states, 2], [([0, 1], rng.normal(size=(2, states))), ([2], [0.0, 1.0])])


@pytest.mark.parametrize("states", [2, 3])
def test_each_state_is_a_line_and_variables_sum_to_one(states: int) -> None:
    exact = spinbench.exact(model(states), cache=False)
    found: Any = exact.to_dataframe()
    assert list(found.columns) == ["variable", "state", "marginal"]
    assert list(zip(found["variable"], found["state"], strict=True)) == [
        (v, k) for v, size in enumerate((2, states, 2)) for k in range(size)
    ]
    assert found.groupby("variable")["marginal"].sum().to_numpy() == pytest.approx(1.0)
    p = found.set_index(["variable", "state"])["marginal"]
    assert p[2, 1] == pytest.approx(1 / (1 + np.exp(-1)))
    assert p[1, 1] == pytest.approx(float(exact.marginals[1] if states == 2 else exact.marginals[1][1]))


@pytest.mark.parametrize("states", [2, 3])
def test_errors_stand_beside_them(states: int) -> None:
    result = spinbench.run(model(states), "gibbs", "numpy", 20, chains=8, simplify=False)
    found: Any = result.to_dataframe()
    assert list(found.columns)[3:] == ["standard_error", "ess", "r_hat"]
    assert len(found) == 4 + states
    flat = result.marginals_se if states == 2 else np.concatenate(result.marginals_se)
    assert set(found["standard_error"]) == set(np.asarray(flat).tolist())


def test_without_marginals_there_is_a_sentence() -> None:
    result = dataclasses.replace(spinbench.exact(model(2), cache=False), marginals=None)
    with pytest.raises(SpinbenchError, match="exact gives no marginals"):
        result.to_dataframe()
