"""Races: which candidates run, and that whatever one does costs itself alone, and no more than its seconds."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.inference.advising import portfolio, race
from spinbench.inference.advising.candidates import Candidate, default
from spinbench.inference.advising.entrant import Entrant, Work
from spinbench.inference.advising.features import NAMES, features
from spinbench.inference.advising.portfolio import Table
from spinbench.models import FactorGraph, Model, PairwiseModel, generators

FRUSTRATED = generators.sherrington_kirkpatrick(10, 2.0)
CHAIN = FactorGraph.from_log_tables((3, 3, 3), [((0, 1), np.diag([1.0, 0.0, 2.0])), ((1, 2), np.zeros((3, 3)))])


def row(**log_errors: float) -> list[float]:
    """log10 of errors of gibbs, wmb, blocks and pt; 0 where none is given."""
    return [log_errors.get(name, 0.0) for name in ("gibbs", "wmb", "blocks", "pt")]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two models."""
    errors = np.array([row(gibbs=-3, wmb=-2, blocks=-2.9), row(wmb=-5, pt=-4.5)])
    recorded = Table(
        ["gibbs", "wmb", "blocks", "pt"], np.stack([features(FRUSTRATED), features(CHAIN)]), {"log_z": errors}
    )
    monkeypatch.setattr(portfolio, "read_table", lambda: recorded)


def names(model: Model, *methods: str) -> tuple[list[str], list[str]]:
    """Who runs and who stands by."""
    choice = portfolio.choose(model, [Candidate(name, "numpy") for name in methods], "log_z")
    return [candidate.method for candidate in choice.running], [candidate.method for candidate in choice.standing_by]


@pytest.mark.usefixtures("table")
def test_the_most_accurate_runs_first_and_then_another_kind() -> None:
    assert names(FRUSTRATED, "pt", "blocks", "wmb", "gibbs")[0][:2] == ["gibbs", "wmb"]
    assert names(CHAIN, "gibbs", "pt", "wmb", "blocks") == (["wmb", "pt"], ["gibbs", "blocks"])


@pytest.mark.usefixtures("table")
def test_who_is_alone_runs_and_who_is_not_in_the_table_runs_too() -> None:
    assert names(CHAIN, "gibbs") == (["gibbs"], [])
    assert names(CHAIN, "mine") == (["mine"], [])
    assert names(CHAIN, "mine", "gibbs", "wmb") == (["wmb", "mine"], ["gibbs"])


def test_a_fixed_point_is_tried_where_no_field_breaks_the_symmetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """There it gives every state the same probability, as is right, which draws do to their errors alone."""
    field = generators.sherrington_kirkpatrick(10, 2.0, 0.5)
    errors = {"marginals": np.array([[-1.0, -3.0, -2.9]] * 2)}
    recorded = Table(["bp", "gibbs", "pt"], np.stack([features(FRUSTRATED), features(field)]), errors)
    monkeypatch.setattr(portfolio, "read_table", lambda: recorded)
    candidates = [Candidate(name, "numpy") for name in ("bp", "gibbs", "pt")]
    running = [portfolio.choose(model, candidates, "marginals").running for model in (FRUSTRATED, field)]
    assert [each[0].method for each in running] == ["bp", "gibbs"]


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
    assert [candidate.name_with_settings for candidate in default(table.methods)][: len(table.methods)] == table.methods
    assert table.features.shape[1] == len(NAMES)
    for errors in table.log_errors.values():
        assert errors.shape == (len(table.features), len(table.methods))
        assert np.isfinite(errors).all()


THREE = PairwiseModel.from_edges([0.1, -0.4, 0.3], [(0, 1), (1, 2)], [0.5, -0.8], name="three")
MODEL = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])


RESULT = spinbench.run(MODEL, "gibbs", "numpy", 8)


def wait(request: Any) -> Any:
    time.sleep(60)


def die(request: Any) -> Any:
    os._exit(7)


def refuse(request: Any) -> Any:
    raise UnsupportedError("not this\nmodel")


def fall(request: Any) -> Any:
    print("no output of it is seen")
    return {}["nothing"]


@pytest.mark.parametrize(
    ("work", "word", "why"),
    [
        (wait, "late", "had not answered after"),
        (die, "failed", "status 7"),
        (refuse, "refused", "not this model"),
        (fall, "failed", "KeyError: 'nothing'"),
    ],
)
def test_what_goes_wrong_is_told(work: Work, word: str, why: str, capfd: pytest.CaptureFixture[str]) -> None:
    entrant = Entrant(Candidate("gibbs", "numpy"))
    entrant.start(work, 3)
    outcome = entrant.take(0.4 if word == "late" else 20.0)
    assert (outcome.result, outcome.late, entrant.failed) == (None, word == "late", word == "failed")
    assert why in entrant.fate
    assert not entrant.racing
    assert capfd.readouterr().out == ""


def test_a_race_outlives_what_its_candidates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sleeps, one kills its process, one sleeps in its second run; what is left wins, and in time.

    Nothing is computed but before the race, so that a busy machine makes no difference.
    """
    known = spinbench.run(THREE, "gibbs", "numpy", 64)
    long, short = (replace(known, seconds=replace(known.seconds, run=seconds)) for seconds in (100.0, 1e-3))

    def work_of(model: PairwiseModel, candidate: Candidate, chains: int, seed: int) -> Work:
        runs: list[Any] = []

        def twice(request: Any) -> Any:
            runs.append(request)
            return short if len(runs) < 2 else wait(request)

        return {"pt": wait, "smc": die, "block_gibbs": twice, "gibbs": lambda request: long}[candidate.method]

    monkeypatch.setattr(race, "work_of", work_of)
    found = spinbench.advise(THREE, "12 s", candidates=["pt.numpy", "smc.numpy", "block_gibbs.numpy", "gibbs.numpy"])
    assert found.seconds < 1.2 * 12 + 0.5
    fates = {entry.candidate: entry for entry in found.race}
    assert "not ready" in fates["pt.numpy"].fate
    assert "status 7" in fates["smc.numpy"].fate
    assert fates["block_gibbs.numpy"].runs == 1
    assert fates["gibbs.numpy"].runs >= 1
    assert {entry.fate for entry in found.race} >= {"won"}
    assert not found.resolved


def test_who_has_only_a_bound_yet_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `wmb` does whose first draws tell no more; without others it gets all that is left."""
    short, long = (replace(RESULT, seconds=replace(RESULT.seconds, run=seconds)) for seconds in (1e-3, 100.0))
    bound = replace(short, log_z_kind="upper", log_z_se=None, log_z_error_bound=None)

    def work_of(model: PairwiseModel, candidate: Candidate, chains: int, seed: int) -> Work:
        runs: list[Any] = []

        def grow(request: Any) -> Any:
            runs.append(request)
            return long if len(runs) > 1 else bound

        return grow

    monkeypatch.setattr(race, "work_of", work_of)
    for candidates in (["gibbs.numpy"], ["gibbs.numpy", "block_gibbs.numpy"]):
        found = spinbench.advise(THREE, "12 s", "log_z", candidates=candidates)
        assert found.answer.log_z_kind == "estimate"
        assert {entry.candidate for entry in found.race if entry.runs > 1} >= {"gibbs.numpy"}


def test_a_bound_is_an_answer_where_nobody_says_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle of what is known to hold log Z, which nobody needs to believe."""
    bound = replace(RESULT, log_z=3.0, log_z_kind="upper", log_z_se=None, log_z_error_bound=None, status="ok")
    monkeypatch.setattr(race, "work_of", lambda *_: lambda request: bound)
    found = spinbench.advise(THREE, "12 s", "log_z", candidates=["gibbs.numpy"])
    low, high = (each.value for each in sorted(found.answer.bounds, key=lambda each: each.value))
    assert found.answer.log_z_kind == "estimate"
    assert found.answer.log_z == pytest.approx((low + high) / 2)
    assert found.resolved == (high - low <= 1.0)
    assert found.error >= (high - low) / 2 - 1e-9


def test_who_plans_by_its_seconds_runs_once_with_all_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "work_of", lambda *_: lambda request: RESULT)
    found = spinbench.advise(THREE, "12 s", candidates=["gibbs.numpy", "wmb.numpy"])
    asked = {entry.method: entry.asked for entry in found.race}
    assert asked["wmb"] is not None
    assert (asked["wmb"].seconds or 0.0) > 6
    assert {entry.method: entry.runs for entry in found.race}["wmb"] == 1


def test_who_is_late_compiles_to_the_end(tmp_path: Path) -> None:
    """So that the next call finds what it has compiled."""

    def compile_long(request: Any) -> Any:
        deadline.compilers += 1
        time.sleep(1.0)
        (tmp_path / "compiled").touch()
        return RESULT

    entrant = Entrant(Candidate("gibbs", "numpy"))
    entrant.start(compile_long, 3)
    assert entrant.take(0.2).late
    until = time.monotonic() + 60
    while not (tmp_path / "compiled").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert (tmp_path / "compiled").exists()
