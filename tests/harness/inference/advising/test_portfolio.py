"""Which candidates run: those that were accurate on models like the one that is asked about."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.inference.advising import portfolio
from spinbench.inference.advising.candidates import DEFAULT, Candidate, default
from spinbench.inference.advising.features import NAMES, features
from spinbench.inference.advising.portfolio import Table
from spinbench.models import FactorGraph, Model, PairwiseModel, generators

FRUSTRATED = generators.sherrington_kirkpatrick(10, 2.0)
CHAIN = FactorGraph.from_log_tables((3, 3, 3), [((0, 1), np.diag([1.0, 0.0, 2.0])), ((1, 2), np.zeros((3, 3)))])


def row(**log_errors: float) -> list[float]:
    """log10 of errors of gibbs, wmb, blocks and pt; 0 where none is given."""
    return [log_errors.get(name, 0.0) for name in ("gibbs", "wmb", "blocks", "pt")]


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Of two models."""
    errors = np.array([row(gibbs=-3, wmb=-2, blocks=-2.9), row(wmb=-5, pt=-4.5)])
    recorded = np.stack([features(FRUSTRATED), features(CHAIN)])
    if "shipped" not in request.node.name:
        methods = ["gibbs", "wmb", "blocks", "pt"]
        monkeypatch.setattr(portfolio, "read_table", lambda: Table(methods, recorded, {"log_z": errors}))


def names(model: Model, *methods: str) -> tuple[list[str], list[str]]:
    """Who runs and who stands by."""
    choice = portfolio.choose(model, [Candidate(name, "numpy") for name in methods], "log_z")
    return [candidate.method for candidate in choice.running], [candidate.method for candidate in choice.standing_by]


def test_the_most_accurate_runs_first_and_then_another_kind() -> None:
    assert names(FRUSTRATED, "pt", "blocks", "wmb", "gibbs")[0][:2] == ["gibbs", "wmb"]
    assert names(CHAIN, "gibbs", "pt", "wmb", "blocks") == (["wmb", "pt"], ["gibbs", "blocks"])


def test_who_is_alone_runs_and_who_is_not_in_the_table_runs_too() -> None:
    assert names(CHAIN, "gibbs") == (["gibbs"], [])
    assert names(CHAIN, "mine") == (["mine"], [])
    assert names(CHAIN, "mine", "gibbs", "wmb") == (["wmb", "mine"], ["gibbs"])


def test_features_tell_models_apart() -> None:
    values = dict(zip(NAMES, features(CHAIN), strict=True))
    assert values["log2_states"] == pytest.approx(np.log2(3))
    assert values["zeros"] == 0
    zeros = FactorGraph.from_tables((2, 2, 2), [((0, 1), [[0.0, 1.0], [1.0, 3.0]]), ((0, 1, 2), np.ones((2, 2, 2)))])
    assert dict(zip(NAMES, features(zeros), strict=True))["zeros"] > 0
    for model in (PairwiseModel.from_edges([0.1], [], []), generators.grid(40, 40)):
        assert np.isfinite(features(model)).all()


def test_the_shipped_table_knows_all_that_race_by_default() -> None:
    table = portfolio.read_table()
    assert {candidate.name_with_settings for candidate in default()} >= set(table.methods)
    assert len(table.methods) == len(DEFAULT)
    assert table.features.shape[1] == len(NAMES)
    for errors in table.log_errors.values():
        assert errors.shape == (len(table.features), len(table.methods))
        assert np.isfinite(errors).all()
