"""What is known before a run counts: plans that take too long are refused before they begin."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import BudgetError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.inference import origins, preflight, registry, schedule
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import Model, PairwiseModel


def grid(side: int) -> PairwiseModel:
    sites = np.arange(side * side).reshape(side, side)
    pairs = [np.stack([sites[:, :-1], sites[:, 1:]], -1), np.stack([sites[:-1], sites[1:]], -1)]
    edges, rng = np.concatenate([p.reshape(-1, 2) for p in pairs]), np.random.default_rng(0)
    return PairwiseModel.from_spins(rng.normal(size=side * side), edges, rng.normal(size=len(edges)), name="grid")


@pytest.mark.parametrize("method", ["block_gibbs", "dhmc", "blocks", "forney_mf", "g_bp", "importance", "rejection"])
def test_plans_that_are_seen_to_take_too_long_are_refused(method: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{method}: planning takes about .* s for grid, and a budget of 0.3 s"):
        spinbench.run(grid(40), method, "numpy", "0.3 s")
    made = registry.make_method(method, {})
    with pytest.raises(deadline.OverdueError) as overdue, deadline.within(0.15):
        made.plan(origins.model_for_method(grid(40), made))
    assert 0.15 < overdue.value.args[0] < 50


def test_numpy_is_refused_steps_longer_than_the_budget_in_time() -> None:
    with pytest.raises(BudgetError, match="give more seconds"):
        spinbench.run(grid(30), "blocks", "numpy", "0.3 s", burn_in=0)


def test_plans_that_turn_out_to_take_too_long_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(self: Gibbs, model: Model) -> Any:
        since = time.thread_time()
        while time.thread_time() < since + 2:
            deadline.check()
        raise AssertionError("it was planned to the end")

    monkeypatch.setattr(Gibbs, "plan", endless)
    monkeypatch.setattr(preflight, "LOADING", 0.1)
    since = time.process_time()
    with pytest.raises(UnsupportedError, match=r"gibbs: planning takes more than 0\.5 s for grid, and a"):
        spinbench.run(grid(3), "gibbs", "numpy", "1 s")
    assert time.process_time() - since < 1
    with pytest.raises(AssertionError, match="to the end"):
        spinbench.run(grid(3), "gibbs", "numpy", 10)


@pytest.mark.parametrize("method", ["wmb", "wmb_lower", "nested"])
def test_numpy_gives_up_what_takes_seconds_before_a_first_sample(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (preflight, schedule):
        monkeypatch.setattr(module, "LOADING", 0.1)
    since = time.process_time()
    with pytest.raises((BudgetError, UnsupportedError), match="give more seconds"):
        spinbench.run(grid(50), method, "numpy", "0.1 s")
    assert time.process_time() - since < 3  # of up to 25


@pytest.mark.parametrize("method", ["smc", "zanella"])
def test_steps_of_very_many_updates_are_not_begun(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("it was begun")

    monkeypatch.setattr(ProgramEngine, "init", never)
    with pytest.raises(BudgetError, match=f"{method}: a budget of 1 s is too short: a sample of 500 chains"):
        spinbench.run(grid(30), method, "numpy", "1 s", chains=500)
    for options in ({"chains": 500, "budget": 4}, {"chains": 1, "budget": "1 s"}):
        with pytest.raises(AssertionError, match="it was begun"):
            spinbench.run(grid(30), method, "numpy", **options)
