"""States that runs keep: those that chains were in, of the variables that the user gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import InvalidResultError, SpinbenchError
from spinbench.inference.budget import Budget, Tolerance
from spinbench.inference.stored_states.recorder import RecordingEngine, check_states
from spinbench.models import FactorGraph, PairwiseModel, condition, generators, to_pairwise
from tests.helpers.fake_engine import FakeEngine

PAIRS = generators.grid(4, 3, seed=1)
TABLES = np.random.default_rng(0)
GRAPH = FactorGraph.from_tables(
    (3, 2, 4, 2, 3, 2),
    [
        ((0, 1, 2), TABLES.uniform(0.5, 3, (3, 2, 4))),
        ((2, 3), TABLES.uniform(0.5, 3, (4, 2))),
        ((3, 4), TABLES.uniform(0.5, 3, (2, 3))),
        ((4, 5), [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    ],
    name="mixed",
)
GRAPH_OF_PAIRS = FactorGraph.from_tables(
    (3, 2, 3), [((0, 1), [[1.0, 2], [3, 1], [1, 1]]), ((1, 2), [[1.0, 2, 1], [2, 1, 3]])]
)
TWO_AND_THREE = FactorGraph.from_tables((2, 3), [((0, 1), np.ones((2, 3)))])
MODELS: dict[str, Any] = {"pairs": PAIRS, "graph": GRAPH, "evidence": condition(GRAPH, {1: 1})}


@pytest.mark.parametrize(
    ("method", "backend", "name", "settings"),
    [
        ("gibbs", "numba", "pairs", {}),
        ("gibbs", "numba", "graph", {}),
        ("gibbs", "numba", "evidence", {}),
        ("gibbs", "numpy", "evidence", {}),
        ("metropolis", "numpy", "graph", {}),
        ("blocks", "numba", "graph", {}),
        *[("pt", backend, name, {"rungs": 3}) for backend in ("numpy", "numba") for name in ("pairs", "graph")],
    ],
)
def test_states_have_the_marginals_of_the_model(method: str, backend: str, name: str, settings: dict[str, Any]) -> None:
    """Ladders hand over those of their last rung."""
    model = MODELS[name]
    exact = spinbench.exact(model, cache=False)
    result = spinbench.run(model, method, backend, 400, chains=64, keep=100, **settings)
    states, truth = result.states, exact.marginals
    assert (states.shape, states.dtype) == ((64, 100, len(truth)), np.uint8)
    for v, p in enumerate(truth):
        for k, wanted in enumerate(p if isinstance(truth, list) else [1 - p, p]):
            chains = (states[..., v] == k).mean(axis=1)
            error = chains.std(ddof=1) / np.sqrt(len(chains))
            assert abs(chains.mean() - wanted) <= 5 * error, (v, k)


@pytest.mark.parametrize(
    ("method", "backend", "settings"),
    [
        ("gibbs", "numpy", {}),
        ("gibbs", "numpy", {"scan": "random"}),
        ("gibbs", "jax", {}),
        ("gibbs", "numba", {"scan": "raster"}),
        ("gibbs", "numba", {"scan": "random"}),
        ("gibbs", "numba", {"sample": "update"}),
        ("gibbs", "numba", {"precision_bits": 12, "log_z": "none"}),
        ("swendsen_wang", "numpy", {}),
        ("swendsen_wang", "numba", {}),
        ("metropolis", "numpy", {}),
    ],
)
def test_the_mean_of_all_states_is_the_empirical_marginal(method: str, backend: str, settings: dict[str, Any]) -> None:
    how: dict[str, Any] = {"chains": 5, "marginals": "empirical", "burn_in": 20, **settings}
    result = spinbench.run(PAIRS, method, backend, 60, keep=60, **how)
    np.testing.assert_allclose(result.states.mean(axis=(0, 1)), result.marginals, atol=1e-6)
    plain = spinbench.run(PAIRS, method, backend, 60, **how)
    np.testing.assert_allclose(plain.marginals, result.marginals, atol=1e-6)
    assert plain.states is None


def test_all_forms_of_the_compiled_kernel_hand_over_their_states() -> None:
    rng = np.random.default_rng(1)
    dense = np.triu(rng.normal(size=(90, 90)) / 10, 1)
    groups = to_pairwise(GRAPH_OF_PAIRS)
    for model in (PairwiseModel.from_dense(rng.normal(size=90), dense + dense.T), groups, generators.grid(12, 12)):
        for chains in (1, 40):
            how: dict[str, Any] = {"chains": chains, "marginals": "empirical", "log_z": "none", "burn_in": 0}
            result = spinbench.run(model, "gibbs", "numba", 20, keep=20, **how)
            expected = result.marginals
            if isinstance(expected, list):
                found = [(result.states[..., v] == k).mean() for v, p in enumerate(expected) for k in range(len(p))]
                np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-12)
            else:
                np.testing.assert_allclose(result.states.mean(axis=(0, 1)), expected, atol=1e-12)


def test_states_are_of_what_was_given_whatever_fell_away() -> None:
    """Evidence has its states; of variables that summed out and those that depend on others, states are drawn."""
    model = MODELS["evidence"]
    kept = spinbench.run(model, "gibbs", "numpy", 500, keep=100).states
    assert (kept[..., 1] == 1).all()
    assert not ((kept[..., 4] == 0) & (kept[..., 5] == 1)).any()
    chain = FactorGraph.from_tables((300, 2), [((0, 1), np.ones((300, 2)))])
    assert spinbench.run(chain, "gibbs", "numpy", 20, keep=5).states.dtype == np.uint16


class Numbered(FakeEngine):
    """One chain, whose state is the number of its steps."""

    def states(self, state: Any) -> np.ndarray:
        return np.full((1, 1), state["steps"])


@pytest.mark.parametrize(
    ("budget", "batches", "kept"),
    [
        (Budget(samples=20), [20], [5, 10, 15, 20]),
        (Budget(samples=23), [1, 2, 3, 17], [5, 10, 15, 20]),
        (Budget(samples=3), [1, 2], [1, 2, 3]),
        (Budget(seconds=1.0), [3], [1, 2, 3]),
        (Budget(seconds=1.0), [9], [2, 4, 6, 8]),
        (Budget(seconds=1.0), [50, 51], [48, 64, 80, 96]),
        (Budget(samples=1000, until=Tolerance("se", 0.1)), [9], [2, 4, 6, 8]),
    ],
)
def test_states_are_evenly_spaced_up_to_the_end(budget: Budget, batches: list[int], kept: list[int]) -> None:
    model = FactorGraph.from_tables((200,), [((0,), np.ones(200))])
    reductions: Any = {"s": "sum", "iterations": "last"}
    start = np.zeros((1, 1))
    keeping: Any = RecordingEngine(Numbered(), reductions, model, start, budget, 4, "it")  # type: ignore[arg-type]
    keeping.adapt(keeping.advance(keeping.init(0, start), 7)[0], True)
    state = keeping.init(0, start)
    for steps in batches:
        state, statistics = keeping.advance(state, steps)
        assert (statistics["s"] == steps).all()
        assert (statistics["iterations"] == state["steps"]).all()
    assert keeping.last_states(0).ravel().tolist() == kept


@pytest.mark.parametrize(
    ("method", "keep", "sentence"),
    [
        ("exact", 5, "exact on numpy hands over no states"),
        ("mf", 5, "mf on numpy hands over no states"),
        ("smc", 5, "smc on numpy hands over no states"),
        ("gibbs", 0, "keep=0 was given; a whole number, 1 or more, is needed"),
        ("gibbs", 10**8, "would take more than 8 GiB"),
    ],
)
def test_what_cannot_be_kept_is_refused(method: str, keep: int, sentence: str) -> None:
    with pytest.raises(SpinbenchError, match=sentence):
        spinbench.run(PAIRS, method, "numpy", 10**8, keep=keep)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.float32, np.float64])
def test_whole_numbers_are_states(kind: type) -> None:
    states = check_states(np.array([[0, 1, 1], [2, 0, 1]], dtype=kind), TWO_AND_THREE, "x on y")
    assert (states.dtype, states.tolist()) == (np.int64, [[0, 1, 1], [2, 0, 1]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0.0], [0.5]], r"the state 0.5 of variable 1; 0 to 2 are its states"),
        ([[2], [2]], "the state 2 of variable 0; 0 to 1 are its states"),
        ([[0], [-1]], "the state -1 of variable 1"),
        ([[0.0], [np.nan]], "the state nan of variable 1"),
        ([[0j], [1j]], r"type complex128; \(2, C\) integers are needed"),
        ([0, 1], r"shape \(2,\)"),
        ([["0"], ["1"]], "integers are needed"),
        ([[0], [1, 2]], "states that are no array"),
        (None, "integers are needed"),
    ],
)
def test_what_are_no_states_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidResultError, match=f"x on y handed over .*{message}"):
        check_states(given, TWO_AND_THREE, "x on y")
