"""What a plugin may not give is refused before it is a result, in a sentence with method, backend, number, place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.api.bounds import Bound
from spinbench.api.estimate import verdict
from spinbench.errors import InvalidResultError
from spinbench.inference.checks import validity
from spinbench.inference.checks.joint_validity import copy_pairs, with_pairs
from spinbench.inference.result import replace_pairs
from spinbench.inference.stored_states.source import RunSource
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import FactorGraph, PairwiseModel

PAIR = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])
K_ARY = FactorGraph.from_tables((2, 3), [((0, 1), np.ones((2, 3)))])
IN_A_GROUP = PairwiseModel.from_edges([0.1, -0.4, 0.3], [], [], groups=[[0, 2]])
GOOD = Estimate(marginals=np.array([0.2, 0.7]), marginals_se=np.array([0.1, np.inf]), log_z=1.0, log_z_se=np.inf)
SURE: dict[str, Any] = {
    "marginals_se": np.array([0.1, 0.2]),
    "marginals_error_bound": np.array([0.1, 0.3]),
    "log_z_se": 0.1,
    "log_z_error_bound": 0.1,
}
GOOD_K_ARY = Estimate(marginals=[np.array([0.2, 0.8]), np.array([0.3, 0.3, 0.4])])
EDGES = PairwiseModel.from_edges([0.0] * 3, [[0, 1], [1, 2]], [1.0, 1.0])
GRAPH = FactorGraph.from_tables([2, 3], [((1, 0), np.ones((3, 2))), ((0,), [1.0, 1.0])])
P = [np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5])]
TABLES = [np.outer(P[1], P[0]).ravel(), P[0]]
# A model and what is right of it; tables below change it.
GIVEN = {
    "pair": (PAIR, GOOD),
    "K-ary": (K_ARY, Estimate()),
    "a group": (IN_A_GROUP, Estimate(marginals=np.array([0.3, 0.5, 0.7]), marginals_se=np.full(3, 0.1))),
    "edges": (EDGES, Estimate(marginals=np.array([0.3, 0.8, 0.6]))),
    "factors": (GRAPH, Estimate()),
}
OF_A_PAIR = [
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
    ({"draws": ([[0], [1, 0]], None)}, "draws that are no array"),
]
OF_MANY_STATES = [
    ({"marginals": [np.array([0.2, 0.8])]}, "of 1 variables; the model has 2"),
    ({"marginals": [np.array([0.2, 0.8]), np.array([0.3, 0.7])]}, r"shape \(2,\) for variable 1; \(3,\) is needed"),
    ({"marginals": [np.array([0.2, 0.8]), np.array([0.3, 0.3, 0.3])]}, "whose sums are not 1: 0.9 at variable 1"),
    ({"marginals": [np.array([0.2, 0.8]), np.array([0.3, 1.3, -0.6])]}, "1.3 at variable 1"),
    ({"marginals": 0.4}, "marginals of type float that are no arrays"),
    ({"marginals": np.array(0.4)}, "marginals of type ndarray that are no arrays"),
]
OF_EDGES = [
    ({"pairs": np.array([0.25])}, r"gave pairs of shape \(1,\); \(2,\) is needed"),
    ({"pairs": np.array([0.25, np.nan])}, "gave pairs: nan, where 0 to 1 is allowed"),
    ({"pairs": np.array([0.25, 1.1])}, "gave pairs: 1.1, where 0 to 1 is allowed"),
    ({"pairs": np.array([0.25, 0.25j])}, "gave pairs of type complex128; real numbers are needed"),
    ({"pairs": np.array([0.35, 0.25])}, "gave pairs: 0.35, where what its marginals leave room for"),
    ({"pairs": np.array([0.25, 0.2])}, "gave pairs: 0.2, where what its marginals leave room for"),
    ({"draws": np.zeros((3, 4), dtype=int)}, r"gave draws of type ndarray; \(states, log weights\) are needed"),
    ({"draws": (np.zeros((3, 4)), None)}, r"gave draws of shape \(3, 4\) and type float64; \(3, S\) integers"),
    ({"draws": (np.zeros((4, 3), dtype=int), None)}, r"gave draws of shape \(4, 3\)"),
    ({"draws": (np.full((3, 4), 2), None)}, "gave draws: 2, where a state of its variable is allowed"),
    ({"draws": (np.zeros((3, 4), dtype=int), np.zeros(3))}, r"gave log weights of shape \(3,\); \(4,\) is needed"),
    ({"draws": (np.zeros((3, 4), dtype=int), np.full(4, np.nan))}, "gave log weights of draws: nan"),
]
OF_FACTORS = [
    ({"marginals": P, "pairs": TABLES[:1]}, "gave pairs of 1 factors; the model has 2"),
    (
        {"marginals": P, "pairs": [TABLES[0].reshape(3, 2), TABLES[1]]},
        r"gave pairs of shape \(3, 2\); \(6,\) is needed",
    ),
    ({"marginals": P, "pairs": [TABLES[0] * 1.1, TABLES[1]]}, "gave pairs whose sums are not 1"),
    ({"marginals": P, "pairs": [TABLES[0][::-1], TABLES[1]]}, "gave pairs whose sums are not its marginals"),
    ({"marginals": P, "pairs": [TABLES[0], np.array([0.4, 0.6])]}, "gave pairs whose sums are not its marginals"),
]
OF_A_GROUP = [
    ({"marginals": np.array([0.3, 0.5, 0.6])}, "gave marginals of a 1-of-K group whose sum is not 1: 0.9, where 1 is"),
    ({"marginals": np.array([1.0, 0.5, 1.0])}, "gave marginals of a 1-of-K group whose sum is not 1: 2, where 1 is"),
]
WRONG = [
    *(("a group", *row) for row in OF_A_GROUP),
    *(("pair", *row) for row in OF_A_PAIR),
    *(("K-ary", *row) for row in OF_MANY_STATES),
    *(("edges", *row) for row in OF_EDGES),
    *(("factors", *row) for row in OF_FACTORS),
]


@pytest.mark.parametrize(("kind", "change", "message"), WRONG)
def test_what_is_no_result_is_refused(kind: str, change: dict[str, Any], message: str) -> None:
    model, right = GIVEN[kind]
    with pytest.raises(InvalidResultError, match=message) as caught:
        validity.check(replace(right, **change), model, "x on y")
    assert str(caught.value).startswith("x on y gave ")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("pair", {}),
        ("pair", {"log_z": -np.inf, "log_z_kind": "lower"}),
        ("pair", {"marginals": np.array([1 + 1e-7, -1e-7], dtype=np.float32)}),
        ("K-ary", {}),
        ("a group", {}),
        ("a group", {"marginals": np.array([0.3, 0.5, 0.6]), "marginals_se": None}),
        ("K-ary", {"marginals": [np.array([0.2, 0.8]), np.array([0.3, 0.3, 0.4])]}),
        (
            "edges",
            {"pairs": np.array([0.25, 0.5]), "draws": (np.ones((3, 2), dtype=np.int8), np.array([0.0, -np.inf]))},
        ),
        ("edges", {"pairs": np.array([0.35, 0.25]), "doubts": ("not converged",)}),
        ("edges", {"pairs": np.array([0.35, 0.25]), "marginals": None}),
        ("factors", {"marginals": P, "pairs": TABLES}),
    ],
)
def test_what_is_right_passes(kind: str, change: dict[str, Any]) -> None:
    model, right = GIVEN[kind]
    validity.check(replace(right, **change), model, "x on y")


def test_a_result_owns_its_numbers() -> None:
    given = np.array([1 + 9e-6, 0.7, 0.3], dtype=np.float32)[:2]
    owned = validity.check(replace(GOOD, marginals=given, log_z=np.float32(1.5), ess=[3, 4]), PAIR, "x on y")
    given[:] = 0.0
    assert (owned.marginals.dtype, owned.marginals[0], round(float(owned.marginals[1]), 6)) == (np.float64, 1.0, 0.7)
    assert (type(owned.log_z), owned.ess.tolist()) == (float, [3.0, 4.0])
    assert [part.max() for part in validity.check(GOOD_K_ARY, K_ARY, "x on y").marginals] == [0.8, 0.4]


def test_a_result_owns_what_stands_beside_its_marginals() -> None:
    told: dict[str, Any] = {"rate": np.longdouble(0.5), "flips": np.int8(3)}
    states, weights, pairs = np.array([[0, 1], [1, 1]]), np.zeros(2), np.array([0.15])
    given = replace(GOOD, diagnostics=told, draws=(states, weights), pairs=pairs)
    copied = copy_pairs(given)
    owned = validity.check(given, PAIR, "x on y")
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
        ({**SURE, "r_hat": np.array([1.0, np.inf])}, "marginals not mixed"),
        ({**SURE, "doubts": ("marginals too short",)}, "marginals too short"),
        (SURE, "ok"),
    ],
)
def test_numbers_that_nobody_knows_are_doubted(more: dict[str, Any], status: str) -> None:
    assert verdict(validity.flag_infinite_errors(validity.check(replace(GOOD, **more), PAIR, "x on y"))) == status


def test_error_bounds_are_no_less_than_standard_errors() -> None:
    wider = {"marginals_se": np.array([0.2, 0.2]), "log_z_se": 0.4}
    found = validity.check(replace(GOOD, **{**SURE, **wider}), PAIR, "x on y")
    assert found.marginals_error_bound.tolist() == [0.2, 0.3]
    assert found.log_z_error_bound == 0.4
    assert validity.check(replace(GOOD, **SURE), PAIR, "x on y").marginals_error_bound.tolist() == [0.1, 0.3]


def test_errors_of_several_states_that_nobody_knows_are_doubted() -> None:
    errors = [np.array([0.1, 0.1]), np.array([0.1, np.inf, 0.1])]
    unknown = validity.check(replace(GOOD_K_ARY, marginals_se=errors), K_ARY, "x on y")
    assert verdict(validity.flag_infinite_errors(unknown)) == "marginals unresolved"
    assert verdict(validity.flag_infinite_errors(validity.check(GOOD_K_ARY, K_ARY, "x on y"))) == "ok"


def test_what_is_no_estimate_is_refused() -> None:
    with pytest.raises(InvalidResultError, match="x on y gave float; an Estimate is needed"):
        validity.check(0.5, PAIR, "x on y")  # type: ignore[arg-type]


def test_a_run_ends_with_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gibbs, "estimate", lambda *_: Estimate(marginals=np.array([0.5, 2.0])))
    with pytest.raises(InvalidResultError, match="gibbs on numpy gave marginals: 2 at variable 1"):
        spinbench.run(PAIR, "gibbs", "numpy", 10)


def test_flags_of_checks_are_added_once_and_leave_log_z_without_an_error() -> None:
    flags = ("marginals not mixed", "log Z unresolved")
    sure = replace(GOOD, **SURE)
    flagged = validity.add_flags(replace(sure, doubts=("marginals too short",)), flags)
    assert (flagged.doubts, flagged.log_z_se) == (("marginals too short", "log Z unresolved"), np.inf)
    assert validity.add_flags(replace(sure, log_z=None, log_z_se=None), flags).doubts == flags[:1]
    assert validity.add_flags(sure, ()) == sure


def test_pairs_are_found_once_and_checked_when_they_are_asked_for() -> None:
    calls = []

    def found(value: float) -> np.ndarray:
        calls.append(value)
        return np.array([value, 0.5])

    marginals, who = np.array([0.3, 0.8, 0.6]), "mine on numpy"
    estimate = Estimate(marginals=marginals, pairs=lambda: found(0.25))
    validity.check(estimate, EDGES, who)
    plain = spinbench.run(EDGES, "gibbs", "numpy", 5)
    pairs = lambda: (with_pairs(estimate, EDGES, who).pairs, None)  # noqa: E731
    result = replace(plain, source=RunSource(pairs=pairs))
    assert calls == []
    assert result.pairs.tolist() == result.pairs.tolist() == [0.25, 0.5]
    assert calls == [0.25]
    with pytest.raises(InvalidResultError, match=r"^mine on numpy gave pairs: 0\.9, where what its marginals"):
        with_pairs(Estimate(marginals=marginals, pairs=lambda: found(0.9)), EDGES, who)
    assert replace_pairs(plain, None).pairs is None
