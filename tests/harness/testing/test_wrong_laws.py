"""Causes that wrong marginals are told by: those of planted mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.models import Factor, FactorGraph, generators
from spinbench.testing.laws.cases import FloatArray, Law, enumerate_law
from spinbench.testing.laws.wrong_laws import describe_cause

CHANCE = 1e-3


def cause(law: Law, wrong: FloatArray) -> str:
    return describe_cause(law.model, law.states, wrong, law.marginals, np.full(len(wrong), CHANCE))


def test_couplings_in_one_direction_are_told_from_others() -> None:
    model = generators.sherrington_kirkpatrick(5, 1.0, seed=3)
    law, rng = enumerate_law(model), np.random.default_rng(0)
    upper = np.triu(model.dense())
    s, total, sweeps, chains = np.zeros((5, 20_000)), np.zeros(5), 200, 20_000
    for sweep in range(sweeps):
        for v in range(5):
            s[v] = rng.random(chains) < 1 / (1 + np.exp(-model.biases[v] - upper[v] @ s))
        total += (sweep >= 50) * s.mean(axis=1)
    wrong = total / (sweeps - 50)  # good to 3e-4: 3 million draws
    assert cause(law, wrong).endswith("a law in which couplings count for the first variable of a pair alone")


def test_transposed_tables_are_told() -> None:
    rng = np.random.default_rng(1)
    tables = [((v, v + 1), rng.normal(size=(3, 3))) for v in range(3)]
    right, wrong = (
        enumerate_law(FactorGraph([3] * 4, [Factor(scope, table) for scope, table in each]))
        for each in (tables, [(scope, table.T.copy()) for scope, table in tables])
    )
    assert cause(right, wrong.marginals).endswith("a law in which the tables of pairs are transposed")


@pytest.mark.parametrize("seed", range(3))
def test_clipped_and_halved_marginals_are_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    equal = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)
    tables = [((v, v + 1), 2 * rng.normal(size=(2, 2))) for v in range(3)]
    known = [((0,), np.array([0.0, -np.inf])), ((3, 4), equal)]
    law = enumerate_law(FactorGraph([2] * 5, [Factor(scope, table) for scope, table in [*tables, *known]]))
    assert "the right ones, but none below 0.2 or above" in cause(law, np.clip(law.marginals, 0.2, 0.8))
    halved = np.where(law.marginals == 0, 0.5, law.marginals)
    assert cause(law, halved) == "; they are the right ones, but uniform where a state is certain"
    assert cause(law, law.marginals[::-1].copy() / 2 + 0.2) == ""
