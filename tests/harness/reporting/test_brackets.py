"""Bounds of a model's records: the bracket, and what contradicts it, from records made by hand."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from small_records import typed

from spinbench.reporting import brackets, leaderboard, summary


def record(method: str, log_z: float | None, kind: str = "estimate", se: float | None = None, **more: Any) -> Any:
    exact = more.pop("exact", None)
    return {
        "status": "ok",
        "axes": {"model": "m", "method": method, "backend": "numpy"},
        "config": {"model": {"name": "m"}, "method": {"name": method}, "seed": more.pop("seed", 0)},
        "protocol": method,
        "error": None,
        "metrics": {},
        "reference": {"reason": "it is too wide"} if exact is None else {"log_z": exact},
        "result": {
            "tier": "generic",
            "status": "ok",
            "r_hat_max": None,
            "compilation": "none",
            "log_z": log_z,
            "log_z_se": se,
            "log_z_kind": kind,
            "seconds": {"run": 2.0, "compile": 0.1},
            "trajectory": [],
        },
        **more,
    }


BOUNDS = [
    record("mf", 9.0, "lower"),
    record("g_mf", 10.0, "lower"),
    record("trw", 12.0, "upper"),
    record("other", 13.0, "upper"),
]


def statuses(records: list[Any]) -> dict[str, str]:
    return {row.method: row.status for row in leaderboard.rows(typed(records))}


def shown(records: list[Any]) -> str:
    console = Console(width=140, file=io.StringIO())
    for table in summary.board_tables(leaderboard.rows(typed(records))):
        console.print(table)
    return " ".join(console.file.getvalue().split())


def test_bracket_is_of_the_best_bounds_and_the_leaderboard_shows_it() -> None:
    found = brackets.bracket(
        typed([*BOUNDS, record("gibbs", 11.0, se=0.1), record("failed", 99.0, "lower", status="failed")])
    )
    assert found == brackets.Bracket(None, 10.0, 12.0, "g_mf", "trw")
    text = shown([*BOUNDS, record("gibbs", 11.25)])
    assert "log Z in [10 (g_mf), 12 (trw)], 2 nats wide" in text
    assert "11.25" in text, "the values stand in place of errors that are not known"


def test_one_sided_and_absent_brackets() -> None:
    assert brackets.bracket(typed(BOUNDS[:1])).sentence() == "log Z in [9 (mf), no upper bound]"
    assert brackets.bracket(typed(BOUNDS[2:])).sentence() == "log Z in [no lower bound, 12 (trw)]"
    assert brackets.bracket(typed([record("gibbs", 1.0), record("dhmc", None)])).sentence() is None
    assert "log Z in" not in shown([record("mf", 9.0, "lower", exact=9.5), record("trw", 12.0, "upper", exact=9.5)])


@pytest.mark.parametrize(
    ("value", "se", "outside"),
    [
        (10.0 - 5e-9, None, False),
        (10.0 - 5e-8, None, True),
        (12.1, None, True),
        (12.1, 0.03, False),
        (12.1, 0.02, True),
        (9.5, 0.2, False),
        (9.5, 0.1, True),
        (9.5, 0.0, True),
    ],
)
def test_estimates_outside_are_flagged_beyond_four_standard_errors(
    value: float, se: float | None, outside: bool
) -> None:
    found = statuses([*BOUNDS, record("gibbs", value, se=se)])
    assert (brackets.OUTSIDE in found["gibbs"]) == outside
    assert all(brackets.OUTSIDE not in found[method] for method in ("mf", "g_mf", "trw", "other"))


def test_any_seed_outside_flags_its_row() -> None:
    board = leaderboard.rows(typed([*BOUNDS, record("gibbs", 11.0), record("gibbs", 15.0, seed=1)]))
    (row,) = (row for row in board if row.method == "gibbs")
    assert row.status == "ok, outside the bracket, no exact answer"
    assert row.log_z == 13.0


@pytest.mark.parametrize(
    ("kind", "value", "violated"),
    [
        ("lower", 100.0 + 5e-8, False),
        ("lower", 100.0 + 2e-7, True),
        ("upper", 100.0 - 5e-8, False),
        ("upper", 100.0 - 2e-7, True),
        ("estimate", 120.0, False),
    ],
)
def test_bounds_on_the_wrong_side_of_the_exact_answer_are_violated(kind: str, value: float, violated: bool) -> None:
    found = statuses([record("method", value, kind, exact=100.0)])
    assert (brackets.VIOLATED in found["method"]) == violated


@pytest.mark.parametrize(("value", "wrong"), [(100.00009, False), (100.0002, True), (99.9, True)])
def test_answers_that_call_themselves_exact_are(value: float, wrong: bool) -> None:
    found = statuses([record("method", value, "exact", exact=100.0)])
    assert (brackets.WRONG in found["method"]) == wrong


def test_an_exact_record_is_an_exact_answer() -> None:
    """Where the reference gave up but the method itself, with other limits, did not."""
    found = statuses([record("exact", 5.0, "exact"), record("mf", 5.1, "lower"), record("gibbs", 7.0)])
    assert brackets.VIOLATED in found["mf"]
    assert found["gibbs"] == found["exact"] == "ok, no exact answer"


def test_bounds_that_cross_are_told() -> None:
    crossed = [record("g_mf", 10.0, "lower"), record("trw", 9.0, "upper")]
    assert "contradictory bounds on log Z: 10 (g_mf) > 9 (trw)" in shown(crossed)
    assert all(brackets.VIOLATED in status for status in statuses(crossed).values())


def drawn(log_z: float, *bounds: tuple[float, str, str, float]) -> Any:
    """A record of a method that brackets its estimate."""
    found = record("wmb", log_z, se=0.01)
    keys = ("value", "side", "grade", "delta")
    found["result"]["bounds"] = [{**dict(zip(keys, bound, strict=True)), "by": "wmb"} for bound in bounds]
    return found


BRACKETED = drawn(
    11.0, (11.5, "upper", "certified", 0.0), (10.9, "lower", "probable", 5e-4), (11.1, "upper", "probable", 5e-4)
)


def test_bounds_beside_an_estimate_count_with_their_grades() -> None:
    found = brackets.bracket(typed([*BOUNDS, BRACKETED]))
    assert (found.lower, found.upper, found.upper_method) == (10.0, 11.5, "wmb")
    assert (found.probable, found.probable_methods, found.delta) == ((10.9, 11.1), ("wmb", "wmb"), 1e-3)
    sentence = "log Z in [10 (g_mf), 11.5 (wmb)], 1.5 nats wide; with probability 0.999 in [10.9 (wmb), 11.1 (wmb)]"
    assert str(found.sentence()).startswith(sentence)
    assert brackets.bracket(typed([BRACKETED, BRACKETED])).delta == pytest.approx(2e-3)


@pytest.mark.parametrize(("value", "flag"), [(11.0, ""), (10.5, brackets.UNLIKELY), (11.8, brackets.OUTSIDE)])
def test_estimates_outside_are_disqualified_or_flagged(value: float, flag: str) -> None:
    rows = leaderboard.rows(typed([*BOUNDS, BRACKETED, record("gibbs", value, se=0.01)]))
    row = next(row for row in rows if row.method == "gibbs")
    assert (flag or "ok") in row.status
    assert leaderboard.is_wrong(row) == (flag == brackets.OUTSIDE)
