"""How a race opens, and that whatever a candidate does costs itself alone, and no more than its seconds."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import pytest

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference.advising import race
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.entrant import Entrant, Work
from spinbench.models import PairwiseModel

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
