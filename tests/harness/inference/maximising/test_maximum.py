"""The heaviest state as the target of a run, against enumeration and elimination."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
from random_models import many

import spinbench
from spinbench.errors import BudgetError, IntractableError, SpinbenchError, UnsupportedError
from spinbench.inference import registry
from spinbench.inference.maximising.annealing import RUNGS, hot_and_cold, scale_log_weights
from spinbench.models import FactorGraph, Model, condition, generators, to_pairwise

MODELS = many(10, 3)
GRID = generators.grid(8, 8, seed=2)


def heaviest(model: Model) -> float:
    return float(model.log_weight(np.array(list(itertools.product(*map(range, model.cardinalities))))).max())


def run(model: Model, method: str = "gibbs", backend: str = "numpy", budget: Any = 200, **how: Any) -> Any:
    return spinbench.run(model, method, backend, budget, target="map", **({"chains": 8} | how))


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
@pytest.mark.parametrize("method", ["exact", "gibbs", "blocks", "pt"])
def test_small_models_end_in_their_heaviest_state(model: Model, method: str) -> None:
    found = run(model, method)
    assert found.best_log_weight == pytest.approx(heaviest(model), rel=1e-9, abs=1e-9)
    assert float(model.log_weight(found.best_state)) == found.best_log_weight
    assert found.status == "ok"
    assert found.marginals is None
    assert found.log_z is None


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize(
    ("method", "budget", "of", "samples"), [("gibbs", 640, "annealings", 642), ("pt", 300, "chains", 360)]
)
def test_chains_reach_what_elimination_finds(method: str, budget: int, of: str, samples: int, backend: str) -> None:
    """Annealed ones and the last rungs of ladders; burn-in and what tells the time of a sweep are among the samples."""
    exact = spinbench.exact(GRID, cache=False).best_log_weight
    assert run(GRID, "exact").best_log_weight == exact
    result, again = (run(GRID, method, backend, budget) for _ in range(2))
    assert result.best_log_weight == pytest.approx(exact, rel=1e-12)
    assert 2 <= result.diagnostics["hits"] <= result.diagnostics[of] == 8
    assert result.diagnostics["beta_cold"] > 1
    assert result.samples == samples
    assert (again.best_state.tolist(), again.diagnostics) == (result.best_state.tolist(), result.diagnostics)


def test_hard_zeros_are_kept_by_ladders() -> None:
    for seed in range(3):
        model = FactorGraph.from_tables(
            (3, 2, 3, 2),
            [
                ((0, 1), [[0.0, 2], [3, 0.0], [1, 1]]),
                ((1, 2), np.random.default_rng(seed).uniform(0.2, 3, (2, 3))),
                ((2, 3), [[0.0, 1], [2, 0], [0, 1.5]]),
            ],
        )
        found = run(model, "pt")
        assert found.best_log_weight == pytest.approx(heaviest(model), rel=1e-9)


def test_methods_of_others_say_how_they_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metropolis stands for a plugin's: it has states, and says nothing of heaviest ones."""
    exact = spinbench.exact(GRID, cache=False).best_log_weight
    monkeypatch.setattr(registry.method_class("metropolis"), "heaviest", "cooled")
    found = run(GRID, "metropolis", budget=100, chains=64)
    assert found.best_log_weight <= exact + 1e-9
    assert found.best_log_weight == float(GRID.log_weight(found.best_state))
    monkeypatch.setattr(registry.method_class("mf"), "heaviest", "cooled")
    with pytest.raises(UnsupportedError, match="mf on numpy hands over no states"):
        run(GRID, "mf")


def test_a_cooled_model_is_its_power() -> None:
    for model in MODELS:
        states = np.array(list(itertools.product(*map(range, model.cardinalities))))
        np.testing.assert_allclose(
            scale_log_weights(model, 2.5).log_weight(states), 2.5 * model.log_weight(states), atol=1e-9
        )


def test_evidence_and_codes_are_told_in_the_users_variables() -> None:
    graph = FactorGraph.from_tables(
        (3, 2, 3), [((0, 1), [[1.0, 2], [3, 1], [1, 1]]), ((1, 2), [[1, 0.1, 2], [0.1, 5, 1]])]
    )
    for model, state in [(graph, [0, 1, 1]), (condition(graph, {2: 0}), [1, 0, 0]), (to_pairwise(graph), [0, 1, 1])]:
        ladders = ("pt",) if model is graph else ()
        for method in ("exact", "gibbs", *ladders):
            assert run(model, method).best_state.tolist() == state


def test_seconds_are_spent_on_runs_that_grow() -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run(GRID, budget="0.3 s", chains=2)
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)  # of a core, which others use, too
    assert share * found.seconds.run < 0.6
    assert found.samples > RUNGS
    assert found.diagnostics["annealings"] % 2 == 0
    assert found.diagnostics["annealings"] >= 4


def test_temperatures_are_those_of_the_model() -> None:
    """Scaling a model scales them; a constant one has none."""
    once, twice = (hot_and_cold(spinbench.load((s * np.ones(2), s * np.array([[0, 1.0], [1, 0]])))) for s in (1, 2))
    assert once == pytest.approx((np.log(2) / 2, np.log(100)))
    assert np.array(once) == pytest.approx(2 * np.array(twice))
    as_tables = FactorGraph.from_log_tables((2, 2), [((0,), [0.0, 1]), ((1,), [0.0, 1]), ((0, 1), [[0.0, 0], [0, 1]])])
    assert hot_and_cold(as_tables) == pytest.approx(once)
    assert hot_and_cold(spinbench.load((np.zeros(2), np.zeros((2, 2))))) == (1.0, 1.0)
    zeros = FactorGraph.from_log_tables((2, 2), [((0, 1), [[0.0, -np.inf], [-np.inf, 100]])])
    assert hot_and_cold(zeros)[1] == 1.0


def test_what_is_found_once_is_no_verdict() -> None:
    found = run(generators.random_regular(60, 3, seed=1), budget=64, chains=1)
    assert found.status == "heaviest state found once"
    assert found.best_log_weight is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "mode"}, SpinbenchError, "target='mode' was given; 'map' is allowed"),
        ({"method": "bp"}, UnsupportedError, r"blocks, .*exact, .*gibbs, .*pt.* find it, and bp does not"),
        ({"method": "metropolis"}, UnsupportedError, "metropolis does not"),
        ({"keep": 5}, SpinbenchError, "keep was given with target='map'"),
        ({"model": generators.complete(60, seed=1), "method": "exact"}, IntractableError, "meet width"),
        ({"budget": "0.000001 s"}, BudgetError, "a budget of 1e-06 s is too short: a sweep takes .* at least 8"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], error: type[SpinbenchError], message: str) -> None:
    with pytest.raises(error, match=message):
        spinbench.run(**{"model": GRID, "method": "gibbs", "backend": "numpy", "budget": 9, "target": "map"} | options)
