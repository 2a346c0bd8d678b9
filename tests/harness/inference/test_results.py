"""What a result says: marginals of binary and K-ary models, times of batches, checkpoints, frames."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.foundation.deadline import Stopwatch
from spinbench.inference.batch_timings import QUANTILES, Checkpoint, Laps
from spinbench.inference.marginals import Ragged
from spinbench.inference.result import Result
from spinbench.models import FactorGraph, Model, generators
from tests.helpers.clock import Clock

MANY = FactorGraph.from_tables((3, 2, 2), [((0, 1), [[1.0, 2], [3, 1], [1, 1]]), ((1, 2), [[1.0, 2], [2, 3]])])
BINARY = generators.grid(2, 2, seed=1)
MODELS = pytest.mark.parametrize("model", [MANY, BINARY])


def table(values: Any) -> np.ndarray:
    """Of all states, with no help from what is tested."""
    if isinstance(values, list):
        return np.concatenate([np.asarray(p) for p in values])
    plain = np.array(values)
    return np.stack([1 - plain, plain], axis=1).ravel()


def answers(model: Any) -> tuple[Any, Any]:
    return spinbench.exact(model), spinbench.run(model, "gibbs", "numpy", 200, chains=4, seed=1)


@MODELS
def test_the_readme_works_on_both(model: Any) -> None:
    exact, found = answers(model)
    difference = table(found.marginals) - table(exact.marginals)
    assert isinstance(found.marginals, spinbench.Marginals)
    assert isinstance(exact.marginals, spinbench.Marginals)
    assert found.marginals.error_to(exact.marginals) == pytest.approx(np.abs(difference).max(), rel=1e-12)
    assert found.marginals.rmse_to(exact.marginals) == pytest.approx(np.sqrt((difference**2).mean()), rel=1e-12)
    assert abs(found.marginals - exact.marginals).max() == pytest.approx(np.abs(difference).max(), rel=1e-12)
    assert np.abs(found.marginals - exact.marginals).max() == found.marginals.error_to(exact.marginals)
    assert 0 < found.marginals_se.max() < 0.1 < 0.9 < found.r_hat.max() < found.ess.min()
    assert (abs(found.marginals - exact.marginals) < 6 * found.marginals_se).all()
    for point in found.trajectory:
        assert point.estimate.marginals.error_to(exact.marginals) < 1


@MODELS
def test_each_variable_has_all_its_states(model: Any) -> None:
    exact, _ = answers(model)
    assert len(exact.marginals) == len(exact.marginals.by_variable()) == model.num_variables
    for v, p in enumerate(exact.marginals.by_variable()):
        assert p.shape == (model.cardinalities[v],)
        assert p.sum() == pytest.approx(1)
        np.testing.assert_array_equal(exact.marginals.of(v), p)
    np.testing.assert_allclose(np.concatenate(exact.marginals.by_variable()), table(exact.marginals))
    for wrong in (-1, model.num_variables):
        with pytest.raises(SpinbenchError, match=rf"variable {wrong} was given; 0 … {model.num_variables - 1} are"):
            exact.marginals.of(wrong)


@MODELS
def test_what_is_computed_is_as_of_one_array(model: Any) -> None:
    m = spinbench.exact(model).marginals
    pool = np.concatenate(m) if isinstance(m, list) else np.array(m)
    for found, expected in [
        (m + m, 2 * pool),
        (1 - m, 1 - pool),
        (m**2 / 3, pool**2 / 3),
        (np.sqrt(m), np.sqrt(pool)),
        (m.round(1), pool.round(1)),
        (-m, -pool),
        (m > 0.4, pool > 0.4),
        (m == m, pool == pool),
    ]:
        assert not isinstance(found, spinbench.Marginals)
        np.testing.assert_array_equal(np.concatenate(found) if isinstance(found, list) else found, expected)
        assert type(found) in (np.ndarray, Ragged)
    for name in ("max", "min", "mean", "sum", "std"):
        assert getattr(m, name)() == pytest.approx(getattr(pool, name)(), rel=1e-12)
    assert (m > 0).all()
    assert not (m > 1).any()
    assert np.isfinite(m).all()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(m == m)


@MODELS
def test_they_survive_copies_and_processes(model: Any) -> None:
    m = spinbench.exact(model).marginals
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert type(other) is type(m)
        assert other.error_to(m) == 0


def test_plain_arrays_can_be_compared_with() -> None:
    binary, many = spinbench.exact(BINARY).marginals, spinbench.exact(MANY).marginals
    assert binary.error_to(np.array(binary) + 0.125) == pytest.approx(0.125)
    assert binary.error_to(np.array(binary).tolist()) == 0
    assert many.error_to([p.tolist() for p in many]) == 0
    assert binary.error_to([np.array([1 - p, p]) for p in np.array(binary)]) == 0


def test_what_is_open_is_left_out() -> None:
    p = spinbench.exact(BINARY).marginals
    other = np.array(p) + 0.25
    other[1:] = np.nan
    assert p.error_to(other) == pytest.approx(0.25)
    with pytest.raises(SpinbenchError, match="no state has a probability that is known on both sides"):
        p.error_to(other * np.nan)


def test_what_cannot_be_compared_is_refused() -> None:
    binary, many = spinbench.exact(BINARY).marginals, spinbench.exact(MANY).marginals
    with pytest.raises(SpinbenchError, match="of 3 variables of 2 or 3 states were given; those of 4 variables of 2"):
        binary.error_to(many)
    for wrong in (0.5, np.zeros((2, 2, 2)), "p", None):
        with pytest.raises(SpinbenchError, match="was given; marginals are needed"):
            many.error_to(wrong)
    with pytest.raises(SpinbenchError, match="a list of 3 arrays, is needed"):
        many - np.zeros(2)
    with pytest.raises(SpinbenchError, match="other numbers of states"):
        many - [np.zeros(3), np.zeros(2), np.zeros((3, 2))]


GRID = generators.grid(3, 3, seed=0)


def run(model: Model = GRID, method: str = "gibbs", backend: str = "numpy", budget: Any = 60, **options: Any) -> Result:
    return spinbench.run(model, method, backend, budget, **{"seed": 1} | options)


def test_pauses_count_in_no_cpu_seconds_and_a_few_in_no_quartile(clock: Clock) -> None:
    watch, batches = Stopwatch(), []
    for turn in range(20):
        with watch:
            clock.sleep(2e-3)
            clock.wait(0.01 if turn % 3 == 0 else 0.0)
        batches.append((4, watch.last, watch.last_cpu))
    laps = Laps.of_batches(batches)
    assert laps.count == 20
    assert (laps.cpu[1], laps.wall[1], laps.mean_cpu) == pytest.approx((5e-4, 5e-4, 5e-4))
    assert watch.idle_seconds == pytest.approx(0.07)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_laps_are_compared_by_the_step_and_have_the_quantiles_of_numpy(count: int) -> None:
    """What falls due at times is in the mean alone."""
    steps, values = np.arange(1, count + 1), np.random.default_rng(count).random(count)
    laps = Laps.of_batches([(k, k * value, 2 * k * value) for k, value in zip(steps.tolist(), values, strict=True)])
    assert laps.wall == pytest.approx(np.quantile(values, QUANTILES))
    assert laps.cpu == pytest.approx(2 * np.quantile(values, QUANTILES))
    assert laps.mean_cpu == pytest.approx(2 * steps @ values / steps.sum())


@pytest.mark.parametrize(("method", "count"), [("gibbs", 50), ("exact", 1)])
def test_a_result_has_laps(method: str, count: int) -> None:
    result = run(method=method, budget=50)
    assert result.laps is not None
    assert result.laps.count == count
    assert result.laps.wall[1] > 0
    assert result.laps.cpu[1] < result.seconds.run + 1e-3  # others may run between, which wall-clock counts
    assert result.laps.mean_cpu > 0


def test_a_pickled_checkpoint_has_its_estimate() -> None:
    point = run(chains=4).trajectory[1]
    again = pickle.loads(pickle.dumps(point))
    assert isinstance(again, Checkpoint)
    np.testing.assert_array_equal(again.estimate.marginals, point.estimate.marginals)


def states_of(k: int) -> FactorGraph:
    rng = np.random.default_rng(3)
    return FactorGraph.from_log_tables([2, k, 2], [([0, 1], rng.normal(size=(2, k))), ([2], [0.0, 1.0])])


@pytest.mark.parametrize("k", [2, 3])
def test_each_state_is_a_line_of_a_frame_with_its_errors_beside_it(k: int) -> None:
    pytest.importorskip("pandas")
    exact = spinbench.exact(states_of(k), cache=False)
    frame: Any = exact.to_dataframe()
    assert list(frame.columns) == ["variable", "state", "marginal"]
    lines = [(v, state) for v, size in enumerate((2, k, 2)) for state in range(size)]
    assert list(zip(frame["variable"], frame["state"], strict=True)) == lines
    p = np.concatenate(exact.marginals.by_variable())
    np.testing.assert_allclose(frame["marginal"], p)
    assert p[-1] == pytest.approx(1 / (1 + np.exp(-1)))
    result = run(states_of(k), budget=20, chains=8, simplify=False)
    frame = result.to_dataframe()
    assert list(frame.columns)[3:] == ["standard_error", "error_bound", "ess", "r_hat"]
    assert len(frame) == 4 + k
    assert set(frame["standard_error"]) == set(np.hstack(result.marginals_se).tolist())


def test_without_marginals_there_is_a_sentence() -> None:
    pytest.importorskip("pandas")
    with pytest.raises(SpinbenchError, match="exact gives no marginals"):
        dataclasses.replace(spinbench.exact(GRID, cache=False), marginals=None).to_dataframe()
