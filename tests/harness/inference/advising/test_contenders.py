"""Whatever a candidate does costs itself alone, and no more than its seconds."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
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
    """One sleeps, one kills its process, one begins to sleep in its second run; what is left wins in time."""
    genuine = race.racing
    work = {"pt": wait, "smc": die}

    def racing(model: PairwiseModel, candidate: Candidate, chains: int, seed: int) -> Work:
        inner, runs = genuine(model, candidate, chains, seed), []

        def twice(request: Any) -> Any:
            runs.append(request)
            return inner(request) if len(runs) < 2 else wait(request)

        return work.get(candidate.method, twice if candidate.method == "block_gibbs" else inner)

    monkeypatch.setattr(race, "racing", racing)
    names = ["pt.numpy", "smc.numpy", "block_gibbs.numpy", "gibbs.numpy"]
    found = spinbench.advise(MODEL, "4 s", candidates=names)
    assert found.seconds < 2 * found.budget  # 1.2 where no other programs run
    fates = {entry.candidate: entry for entry in found.race}
    assert found.answer.method == "gibbs"
    assert "not ready" in fates["pt.numpy"].fate
    assert "status 7" in fates["smc.numpy"].fate
    assert fates["block_gibbs.numpy"].runs == 1
    assert not found.resolved
    assert np.allclose(found.answer.marginals, spinbench.exact(MODEL, cache=False).marginals, atol=0.1)
