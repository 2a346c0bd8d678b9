"""What a plugin may not give: each is one sentence that names method, backend, number and place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.api.bounds import Bound
from spinbench.errors import InvalidResultError
from spinbench.inference.checks import validity
from spinbench.inference.checks.joint_validity import copy_pairs
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel

PAIR = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])
K_ARY = FactorGraph.from_tables((2, 3), [((0, 1), np.ones((2, 3)))])
GOOD = Estimate(marginals=np.array([0.2, 0.7]), marginals_se=np.array([0.1, np.inf]), log_z=1.0, log_z_se=np.inf)
GOOD_K_ARY = Estimate(marginals=[np.array([0.2, 0.8]), np.array([0.3, 0.3, 0.4])])


def test_good_ones_pass() -> None:
    validity.check(GOOD, PAIR, "x on y")
    validity.check(GOOD_K_ARY, K_ARY, "x on y")
    validity.check(Estimate(), PAIR, "x on y")
    validity.check(Estimate(log_z=-np.inf, log_z_kind="lower"), PAIR, "x on y")
    validity.check(replace(GOOD, marginals=np.array([1 + 1e-7, -1e-7], dtype=np.float32)), PAIR, "x on y")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"marginals": np.array([0.2, 1.3])}, "x on y gave marginals: 1.3 at variable 1, where 0 to 1 is allowed"),
        ({"marginals": np.array([np.nan, 0.3])}, "nan at variable 0"),
        ({"marginals": np.array([0.2, -np.inf])}, "-inf at variable 1"),
        ({"marginals": np.array([0.2, 0.3 + 1e-9j])}, "type complex128; real numbers are needed"),
        ({"marginals": np.array([0.2, 0.3, 0.4])}, r"shape \(3,\); \(2,\) is needed"),
        ({"marginals": np.array([[0.2, 0.3]])}, r"shape \(1, 2\); \(2,\) is needed"),
        ({"marginals_se": np.array([0.2, -0.1])}, "errors of marginals: -0.1 at variable 1"),
        ({"ess": np.array([-3.0, 1.0])}, "effective sample sizes: -3 at variable 0"),
        ({"r_hat": np.array([1.0])}, "R-hat of shape"),
        ({"log_z": np.nan}, "log Z = nan"),
        ({"log_z": np.inf}, "log Z = inf"),
        ({"log_z": -np.inf, "log_z_kind": "upper"}, "log Z = -inf"),
        ({"log_z": 1 + 1j}, "a finite number is needed"),
        ({"log_z_se": np.nan}, "nan as the error of log Z"),
        ({"log_z_estimates": {"other": (1.0, -2.0)}}, "-2.0 as the error of log Z"),
        ({"log_z_estimates": {"other": 1.0}}, "as estimates of log Z; a value and its error by name are needed"),
        ({"log_z_estimates": {"other": (1.0, 0.1, 3.0)}}, "a value and its error by name are needed"),
        ({"log_z_estimates": None}, "gave None as estimates of log Z"),
        ({"log_z_kind": "guess"}, "a log Z of kind 'guess'; estimate, lower, upper, exact are allowed"),
        ({"log_z_kind": ["lower"]}, r"a log Z of kind \['lower'\]"),
        ({"log_z": 10**400}, "a finite number is needed"),
        ({"log_z": np.longdouble("1e4000")}, "a finite number is needed"),
        ({"marginals": np.array([np.nan] * 2), "log_z": None, "log_z_kind": "exact"}, "nan at variable 0"),
        ({"marginals": [[0.2], [0.3, 0.4]]}, "marginals of type list that are no array"),
        ({"marginals": np.ma.array([0.2, 0.3], mask=[True, False])}, "some are masked"),
        ({"log_z_estimates": {"other": (None, None)}}, "a value and its error are needed"),
        ({"bounds": None}, "gave None as bounds"),
        ({"bounds": (Bound(np.inf, "lower", "certified"),)}, "a number of nats"),
        ({"bounds": (Bound(1.0, "upper", "certified", by=3),)}, "a number of nats"),  # type: ignore[arg-type]
        ({"bounds": (Bound(1.0, "upper", "probable", delta=None),)}, "0 <= delta < 1"),  # type: ignore[arg-type]
        ({"bounds": (Bound(0.9, "upper", "certified"),), "log_z_kind": "lower"}, "1.0 above its upper bound of 0.9"),
        ({"diagnostics": None}, "gave None as diagnostics"),
        ({"diagnostics": {"rate": 1j}}, "numbers by name are needed"),
        ({"doubts": "marginals not mixed"}, "as doubts; a tuple of texts is needed"),
        ({"doubts": (3,)}, "as doubts; a tuple of texts is needed"),
        ({"converged": np.array([True, False])}, "True or False is needed"),
        ({"draws": ([[0], [1, 0]], None)}, "draws that are no array"),
    ],
)
def test_what_is_no_result_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidResultError, match=message):
        validity.check(replace(GOOD, **wrong), PAIR, "x on y")


@pytest.mark.parametrize(
    ("marginals", "message"),
    [
        ([np.array([0.2, 0.8])], "of 1 variables; the model has 2"),
        ([np.array([0.2, 0.8]), np.array([0.3, 0.7])], r"shape \(2,\) for variable 1; \(3,\) is needed"),
        ([np.array([0.2, 0.8]), np.array([0.3, 0.3, 0.3])], "whose sums are not 1: 0.9 at variable 1"),
        ([np.array([0.2, 0.8]), np.array([0.3, 1.3, -0.6])], "1.3 at variable 1"),
        (0.4, "marginals of type float that are no arrays"),
        (np.array(0.4), "marginals of type ndarray that are no arrays"),
    ],
)
def test_marginals_of_many_states(marginals: Any, message: str) -> None:
    with pytest.raises(InvalidResultError, match=message):
        validity.check(Estimate(marginals=marginals), K_ARY, "x on y")


def test_a_result_owns_its_numbers() -> None:
    given = np.array([1 + 9e-6, 0.7, 0.3], dtype=np.float32)[:2]
    owned = validity.owned(replace(GOOD, marginals=given, log_z=np.float32(1.5), ess=[3, 4]), PAIR)
    given[:] = 0.0
    assert (owned.marginals.dtype, owned.marginals[0], round(float(owned.marginals[1]), 6)) == (np.float64, 1.0, 0.7)
    assert (type(owned.log_z), owned.ess.tolist()) == (float, [3.0, 4.0])
    assert [part.max() for part in validity.owned(GOOD_K_ARY, K_ARY).marginals] == [0.8, 0.4]


def test_a_result_owns_what_stands_beside_its_marginals() -> None:
    told: dict[str, Any] = {"rate": np.longdouble(0.5), "flips": np.int8(3)}
    states, weights, pairs = np.array([[0, 1], [1, 1]]), np.zeros(2), np.array([0.15])
    given = replace(GOOD, diagnostics=told, draws=(states, weights), pairs=pairs)
    copied = copy_pairs(given)
    owned = validity.owned(given, PAIR)
    for array in (states, weights, pairs):
        array[:] = 7
    told["rate"] = np.longdouble(9)
    assert owned.diagnostics == {"rate": 0.5, "flips": 3}
    assert [type(value) for value in owned.diagnostics.values()] == [float, int]
    np.testing.assert_array_equal(owned.draws[0], [[0, 1], [1, 1]])  # type: ignore[index]
    np.testing.assert_array_equal(owned.draws[1], [0, 0])  # type: ignore[index]
    assert copied.pairs == [0.15]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "marginals unresolved, log Z unresolved"),
        ({"marginals_se": np.array([0.1, np.nan])}, "marginals unresolved, log Z unresolved"),
        ({"r_hat": np.array([1.0, np.inf]), "log_z_se": 0.1}, "marginals not mixed"),
        ({"doubts": ("marginals too short",), "log_z_se": 0.1}, "marginals too short"),
        ({"marginals_se": np.array([0.1, 0.2]), "log_z_se": 0.1}, "ok"),
    ],
)
def test_numbers_that_nobody_knows_are_doubted(more: dict[str, Any], status: str) -> None:
    assert validity.doubted(validity.owned(replace(GOOD, **more), PAIR)).status == status


def test_errors_of_several_states_that_nobody_knows_are_doubted() -> None:
    errors = [np.array([0.1, 0.1]), np.array([0.1, np.inf, 0.1])]
    assert validity.doubted(validity.owned(replace(GOOD_K_ARY, marginals_se=errors), K_ARY)).status == (
        "marginals unresolved"
    )
    assert validity.doubted(validity.owned(GOOD_K_ARY, K_ARY)).status == "ok"


def test_what_is_no_estimate_is_refused() -> None:
    with pytest.raises(InvalidResultError, match="x on y gave float; an Estimate is needed"):
        validity.check(0.5, PAIR, "x on y")  # type: ignore[arg-type]


def test_a_run_ends_with_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gibbs, "estimate", lambda *_: Estimate(marginals=np.array([0.5, 2.0])))
    with pytest.raises(InvalidResultError, match="gibbs on numpy gave marginals: 2 at variable 1"):
        spinbench.run(PAIR, "gibbs", "numpy", 10)


def test_flags_of_checks_are_added_once_and_leave_log_z_without_an_error() -> None:
    flags = ("marginals not mixed", "log Z unresolved")
    sure = replace(GOOD, marginals_se=np.array([0.1, 0.2]), log_z_se=0.1)
    flagged = validity.add_flags(replace(sure, doubts=("marginals too short",)), flags)
    assert (flagged.doubts, flagged.log_z_se) == (("marginals too short", "log Z unresolved"), np.inf)
    assert validity.add_flags(replace(sure, log_z=None, log_z_se=None), flags).doubts == flags[:1]
    assert validity.add_flags(sure, ()) == sure
