"""How a race opens: who has a turn, who is given up, and when it ends."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import spinbench
from spinbench.inference.advising import race
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.contenders import Outcome
from spinbench.inference.advising.race import Race
from spinbench.inference.advising.running import Runner
from spinbench.models import PairwiseModel

MODEL = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])


class Fake:
    """A process that answers when it is waited for, or never."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.alive, self.waited = silent, True, 0.0

    def answer(self, limit: float) -> Outcome:
        return Outcome("late", None, "late", 0.1) if self.silent else Outcome("ok", RESULT, "", 0.1)

    def ask(self, request: Any) -> None:
        pass

    def close(self) -> None:
        self.alive = False


RESULT = spinbench.run(MODEL, "gibbs", "numpy", 8)


def opened(monkeypatch: pytest.MonkeyPatch, methods: dict[str, bool], opening: float) -> list[Runner]:
    """Of methods on numba, which are silent or not; every look at the clock takes 10 ms."""
    ticks = count()
    monkeypatch.setattr(race, "time", SimpleNamespace(perf_counter=lambda: 0.01 * next(ticks)))
    monkeypatch.setattr(race, "OPENING", opening)
    monkeypatch.setattr(race, "available_cores", lambda: 1)
    monkeypatch.setattr(race, "ready", lambda contenders, limit: [one for one in contenders if not one.silent])

    def started(self: Race, runner: Runner) -> Runner:
        runner.sampler = runner.candidate.made.stochastic
        runner.contender = Fake(methods.get(runner.candidate.method, False) and runner.candidate.backend == "numba")  # type: ignore[assignment]
        runner.begin(2)
        return runner

    monkeypatch.setattr(Race, "_started", started)
    runners = [Runner(Candidate(method, "numba")) for method in methods]
    Race(MODEL, runners, "marginals", 1.0, 1.0, 16, lambda runners, now: None)._open()
    return runners


def test_an_opening_may_end_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [
        sum(runner.rounds for runner in opened(monkeypatch, {"gibbs": False, "pt": False, "smc": False}, 0.01 * k))
        for k in range(60)
    ]
    assert ran[0] == 1
    assert ran[-1] == 3
    assert sorted(ran) == ran


def test_an_opening_waits_for_somebody_who_claims_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of messages alone can be judged by nobody."""
    runners = opened(monkeypatch, {"bp": False, "gibbs": False, "pt": False}, 0.03)
    assert [runner.rounds for runner in runners] == [1, 1, 0]


def test_nobody_shares_starts_with_his_witnesses() -> None:
    runners = race.entrants([Candidate(name, "numpy") for name in ("gibbs", "pt", "smc")], 7)
    assert [runner.seed for runner in runners] == [7, 8, 9]


def test_who_compiles_for_too_long_is_replaced_as_long_as_few_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    runners = opened(monkeypatch, {"gibbs": True, "pt": False, "smc": False, "blocks": True}, 0.9)
    assert [runner.candidate.label for runner in runners] == [
        "gibbs.numba",
        "pt.numba",
        "smc.numba",
        "blocks.numba",
        "gibbs.numpy",
    ]
    assert [runner.rounds for runner in runners] == [0, 1, 1, 0, 1]
    assert "not ready after" in runners[0].fate
