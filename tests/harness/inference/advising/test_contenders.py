"""Whatever a candidate does costs itself alone, and no more than its seconds."""

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
from spinbench.inference.advising.contenders import Contender, Work
from spinbench.models import PairwiseModel

MODEL = PairwiseModel.from_edges([0.1, -0.4, 0.3], [(0, 1), (1, 2)], [0.5, -0.8], name="three")


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
    contender = Contender(work)
    contender.ask(None)
    outcome = contender.answer(0.4 if word == "late" else 20.0)
    assert (outcome.word, outcome.result) == (word, None)
    assert why in outcome.why
    if contender.alive:
        contender.close()
    assert capfd.readouterr().out == ""


def test_a_race_outlives_what_its_candidates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sleeps, one kills its process, one sleeps in its second run; what is left wins, and in time.

    Nothing is computed but before the race, so that a busy machine makes no difference.
    """
    known = spinbench.run(MODEL, "gibbs", "numpy", 64)
    long, short = (replace(known, seconds=replace(known.seconds, run=seconds)) for seconds in (100.0, 1e-3))

    def racing(model: PairwiseModel, candidate: Candidate, chains: int, seed: int) -> Work:
        runs: list[Any] = []

        def twice(request: Any) -> Any:
            runs.append(request)
            return short if len(runs) < 2 else wait(request)

        return {"pt": wait, "smc": die, "block_gibbs": twice, "gibbs": lambda request: long}[candidate.method]

    monkeypatch.setattr(race, "racing", racing)
    found = spinbench.advise(MODEL, "12 s", candidates=["pt.numpy", "smc.numpy", "block_gibbs.numpy", "gibbs.numpy"])
    assert found.seconds < 1.2 * 12 + 0.5
    fates = {entry.candidate: entry for entry in found.race}
    assert "not ready" in fates["pt.numpy"].fate
    assert "status 7" in fates["smc.numpy"].fate
    assert fates["block_gibbs.numpy"].runs == 1
    assert fates["gibbs.numpy"].runs == 1
    assert {entry.fate for entry in found.race} >= {"won"}
    assert not found.resolved
