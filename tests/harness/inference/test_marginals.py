"""Marginals of binary and of K-ary models behave alike."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.marginals import Ragged
from spinbench.models import FactorGraph, generators

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
