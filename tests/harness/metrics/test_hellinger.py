"""The Hellinger distance of marginals, against sums over states by other means."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import spinbench
from spinbench.inference.result import Result
from spinbench.metrics.marginals import HellingerDistance
from spinbench.models import FactorGraph, Model, generators


def with_marginals(result: Result, marginals: object) -> Result:
    return dataclasses.replace(result, marginals=marginals)


def test_the_mean_over_binary_variables() -> None:
    model = generators.grid(2, 2, seed=1)
    exact = spinbench.exact(model)
    wrong = with_marginals(exact, np.array([0.0, 0.2, 0.5, 1.0]))
    distances = [
        math.sqrt(max(0.0, 1 - math.sqrt(p * q) - math.sqrt((1 - p) * (1 - q))))
        for p, q in zip(wrong.marginals, exact.marginals, strict=True)
    ]
    assert HellingerDistance().measure(model, wrong, exact) == (pytest.approx(np.mean(distances)), None)
    assert HellingerDistance().measure(model, exact, exact) == (0.0, None)


def test_many_states_and_marginals_that_nobody_knows() -> None:
    model: Model = FactorGraph.from_tables([3, 2, 2], [((0,), [1.0, 1.0, 2.0]), ((1, 2), np.ones((2, 2)))])
    exact = spinbench.exact(model, cache=False)
    partly = with_marginals(exact, [exact.marginals[0], np.full(2, np.nan), exact.marginals[2]])
    wrong = with_marginals(exact, [np.array([1.0, 0.0, 0.0]), np.array([0.9, 0.1]), np.array([0.5, 0.5])])
    # 1 - sqrt(1/4) of the first variable, none of the last.
    assert HellingerDistance().measure(model, wrong, partly) == (pytest.approx(math.sqrt(0.5) / 2), None)


def test_distances_below_the_root_of_the_precision() -> None:
    model = generators.grid(1, 1, seed=1)
    exact = with_marginals(spinbench.exact(model), np.array([0.5]))
    near = with_marginals(exact, np.array([0.5 + 1e-10]))
    # sqrt(dp² / (8 p (1 - p))) to first order
    assert HellingerDistance().measure(model, near, exact)[0] == pytest.approx(1e-10 / math.sqrt(2), rel=1e-6)


def test_why_there_is_none() -> None:
    model = generators.grid(2, 2, seed=1)
    exact = spinbench.exact(model)
    nothing = with_marginals(exact, None)
    unknown = with_marginals(exact, np.full(4, np.nan))
    assert HellingerDistance().measure(model, nothing, exact) == "exact gives no marginals"
    for reference in (None, nothing, unknown):
        assert HellingerDistance().measure(model, exact, reference) == "the exact marginals are out of reach"
