"""The heaviest state that a result knows, against enumeration."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import IntractableError
from spinbench.inference.stored_states.exports import log_weights
from spinbench.inference.stored_states.source import RunSource
from spinbench.models import FactorGraph, Model, PairwiseModel, condition, generators, to_pairwise
from spinbench.reference.heaviest import heaviest as heaviest_state

K_ARY = FactorGraph.from_tables(
    (3, 2, 2, 3), [((0, 1), [[1.0, 2], [3, 1], [1, 1]]), ((1, 2), [[1.0, 2], [2, 3]]), ((2, 3), [[1, 0, 2], [0, 5, 1]])]
)
GRID = generators.grid(3, 3, seed=3)
MODELS = [GRID, K_ARY, condition(K_ARY, {3: 0}), to_pairwise(GRID), condition(GRID, {4: 1})]


def heaviest(model: Model) -> float:
    return float(model.log_weight(np.array(list(itertools.product(*map(range, model.cardinalities))))).max())


def weight_of(model: Model, state: np.ndarray) -> float:
    """Of a state of the variables that the user gave."""
    return float(model.log_weight(state if model.origin is None else model.origin.lower(state)))


def answer(source: RunSource, **more: Any) -> Any:
    """A result without marginals."""
    return dataclasses.replace(spinbench.run(GRID, "wmb_lower", "numpy", 5), source=source, **more)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["gibbs", "blocks", "pt", "smc", "metropolis", "exact", None])
def test_of_small_models_it_is_the_heaviest_of_all(model: Model, method: str | None) -> None:
    result = spinbench.exact(model) if method is None else spinbench.run(model, method, "numpy", 30, chains=4)
    assert result.best_log_weight == pytest.approx(heaviest(model), rel=1e-12)
    assert weight_of(model, result.best_state) == result.best_log_weight
    assert result.best_state.dtype == np.int64


@pytest.mark.parametrize(
    "model",
    [
        condition(PairwiseModel.from_edges(np.array([0.3, -0.2]), np.array([[0, 1]]), np.array([0.7])), {0: 1, 1: 1}),
        to_pairwise(FactorGraph.from_log_tables([1, 1], [((0, 1), np.array([[0.8]]))])),
    ],
)
def test_where_nothing_is_left_open_the_state_weighs_what_the_sum_does(model: Model) -> None:
    ends = [spinbench.run(model, "gibbs", "numpy", 30, keep=9), spinbench.run(model, "exact", "numpy")]
    for found in [*ends, spinbench.exact(model)]:
        assert found.best_log_weight == pytest.approx(0.8, abs=1e-12)
    assert heaviest_state(model)[1] == pytest.approx(0.8, abs=1e-12)
    assert np.allclose(log_weights(model, ends[0].states), 0.8, atol=1e-12)


POTTS = FactorGraph.from_tables((3, 3), [((0, 1), [[5.0, 1, 1], [1, 1, 2], [1, 2, 1]])])
FOREST = FactorGraph.from_tables((2, 2, 2), [((0, 1), [[1.0, 2], [3, 1]]), ((1, 2), [[0.2, 0.8], [0.7, 0.3]])])


@pytest.mark.parametrize(
    ("model", "method", "state", "weight"),
    [
        pytest.param(condition(K_ARY, {3: 0}), "gibbs", [0, 1, 0, 0], 4.0, id="evidence"),
        pytest.param(POTTS, "dhmc", [0, 0], 5.0, id="1-of-K codes"),
        pytest.param(POTTS, "block_gibbs", [0, 0], 5.0, id="1-of-K codes of blocks"),
        pytest.param(FOREST, "gibbs", [1, 0, 1], 3 * 0.8, id="variables that sum out"),
    ],
)
def test_what_a_method_does_not_see_has_a_state_too(model: Model, method: str, state: list[int], weight: float) -> None:
    result = spinbench.run(model, method, "numpy", 50, chains=4)
    assert (result.best_state.tolist(), np.exp(result.best_log_weight)) == (state, pytest.approx(weight))


def test_kept_states_and_draws_count() -> None:
    """Of 1-of-K groups nothing is raised: what is known is what was seen."""
    units = to_pairwise(FactorGraph.from_tables((3, 3), [((0, 1), [[1.0, 1, 9], [1, 1, 1], [1, 1, 1]])]))
    kept = np.array([[[0, 1], [1, 2]], [[0, 2], [2, 2]]], dtype=np.uint8)
    found = answer(RunSource(model=units, stored=kept))
    assert found.best_state.tolist() == [0, 2]
    assert found.best_log_weight == pytest.approx(np.log(9))
    found = answer(RunSource(model=units), draws=(np.array([[0, 2], [0, 1]]), None))
    assert found.best_log_weight == pytest.approx(0)
    drawn = spinbench.run(GRID, "wmb", "numpy", 50, chains=4, draws=True)
    assert drawn.best_log_weight == pytest.approx(heaviest(GRID), rel=1e-12)


def test_methods_without_states_or_marginals_know_none() -> None:
    found = spinbench.run(GRID, "wmb_lower", "numpy", 5)
    assert found.marginals is None
    assert found.best_state is None
    assert found.best_log_weight is None


def test_states_of_compiled_chains_are_found_late_and_other_processes_get_them() -> None:
    asked = []
    last = np.array([[1], [1]] * 4 + [[0]])

    def states() -> np.ndarray:
        asked.append("end")
        return last

    found = answer(RunSource(model=GRID, last=states))
    assert asked == []
    again = pickle.loads(pickle.dumps(found))
    assert asked == ["end"]
    assert again.best_log_weight == found.best_log_weight >= GRID.log_weight(last.T)[0]
    assert again.source.last.tolist() == last.tolist()


def test_where_maxima_do_not_fit_the_width_is_named() -> None:
    with pytest.raises(IntractableError, match="meets width 4"):
        _ = answer(RunSource(model=generators.grid(4, 4, seed=1), max_bytes=100)).best_state
