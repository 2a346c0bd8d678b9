"""Pairs and draws that cannot be: one sentence each, before they become a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.errors import InvalidResultError
from spinbench.inference.checks import validity
from spinbench.inference.checks.joint_validity import with_pairs
from spinbench.inference.result import replace_pairs
from spinbench.inference.stored_states.source import RunSource
from spinbench.models import FactorGraph, PairwiseModel

EDGES = PairwiseModel.from_edges([0.0] * 3, [[0, 1], [1, 2]], [1.0, 1.0])
GRAPH = FactorGraph.from_tables([2, 3], [((1, 0), np.ones((3, 2))), ((0,), [1.0, 1.0])])
P = [np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])]
TABLES = [np.outer(P[1], P[0]).ravel(), P[0]]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pairs": [0.25]}, r"gave pairs of shape \(1,\); \(2,\) is needed"),
        ({"pairs": np.array([0.25, np.nan])}, "gave pairs: nan, where 0 to 1 is allowed"),
        ({"pairs": np.array([0.25, 1.1])}, "gave pairs: 1.1, where 0 to 1 is allowed"),
        ({"pairs": np.array([0.25, 0.25j])}, "gave pairs of type complex128; real numbers are needed"),
        ({"pairs": np.array([0.35, 0.25])}, "gave pairs: 0.35, where what its marginals leave room for"),
        ({"pairs": np.array([0.25, 0.2])}, "gave pairs: 0.2, where what its marginals leave room for"),
        ({"pairs": np.array([0.25, 0.5]), "pairs_se": np.array([0.1, -0.1])}, "gave errors of pairs: -0.1, where 0 or"),
        ({"draws": np.zeros((3, 4), dtype=int)}, r"gave draws of type ndarray; \(states, log weights\) are needed"),
        ({"draws": (np.zeros((3, 4)), None)}, r"gave draws of shape \(3, 4\) and type float64; \(3, S\) integers"),
        ({"draws": (np.zeros((4, 3), dtype=int), None)}, r"gave draws of shape \(4, 3\)"),
        ({"draws": (np.full((3, 4), 2), None)}, "gave draws: 2, where a state of its variable is allowed"),
        ({"draws": (np.zeros((3, 4), dtype=int), np.zeros(3))}, r"gave log weights of shape \(3,\); \(4,\) is needed"),
        ({"draws": (np.zeros((3, 4), dtype=int), np.full(4, np.nan))}, "gave log weights of draws: nan"),
    ],
)
def test_of_edges(fields: dict[str, Any], words: str) -> None:
    if "pairs" in fields:
        fields["pairs"] = np.asarray(fields["pairs"])
    with pytest.raises(InvalidResultError, match=f"^mine on numpy {words}"):
        validity.check(Estimate(marginals=np.array([0.3, 0.8, 0.6]), **fields), EDGES, "mine on numpy")


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (TABLES[:1], "gave pairs of 1 factors; the model has 2"),
        ([TABLES[0].reshape(3, 2), TABLES[1]], r"gave pairs of shape \(3, 2\); \(6,\) is needed"),
        ([TABLES[0] * 1.1, TABLES[1]], "gave pairs whose sums are not 1"),
        ([TABLES[0][::-1], TABLES[1]], "gave pairs whose sums are not its marginals"),
        ([TABLES[0], np.array([0.4, 0.6])], "gave pairs whose sums are not its marginals"),
    ],
)
def test_of_factors(pairs: list[np.ndarray], words: str) -> None:
    with pytest.raises(InvalidResultError, match=f"^mine on numpy {words}"):
        validity.check(Estimate(marginals=P, pairs=pairs), GRAPH, "mine on numpy")


def test_what_is_valid() -> None:
    for fields in (
        {"pairs": np.array([0.25, 0.5]), "draws": (np.ones((3, 2), dtype=np.int8), np.array([0.0, -np.inf]))},
        {"pairs": np.array([0.35, 0.25]), "pairs_se": np.array([0.1, 0.1])},
        {"pairs": np.array([0.35, 0.25]), "converged": False},
    ):
        validity.check(Estimate(marginals=np.array([0.3, 0.8, 0.6]), **fields), EDGES, "mine")
    validity.check(Estimate(marginals=P, pairs=TABLES), GRAPH, "mine")
    validity.check(Estimate(pairs=np.array([0.35, 0.25])), EDGES, "mine")


def test_pairs_are_found_once_and_checked_when_they_are_asked_for() -> None:
    calls = []

    def found(value: float) -> np.ndarray:
        calls.append(value)
        return np.array([value, 0.5])

    marginals, who = np.array([0.3, 0.8, 0.6]), "mine on numpy"
    estimate = Estimate(marginals=marginals, pairs=lambda: found(0.25))
    validity.check(estimate, EDGES, who)
    plain = spinbench.run(EDGES, "gibbs", "numpy", 5)
    pairs = lambda: (with_pairs(estimate, EDGES, who).pairs, None)  # noqa: E731
    result = replace(plain, source=RunSource(pairs=pairs))
    assert calls == []
    assert result.pairs.tolist() == result.pairs.tolist() == [0.25, 0.5]
    assert calls == [0.25]
    with pytest.raises(InvalidResultError, match=r"^mine on numpy gave pairs: 0\.9, where what its marginals"):
        with_pairs(Estimate(marginals=marginals, pairs=lambda: found(0.9)), EDGES, who)
    assert replace_pairs(plain, None).pairs is None
