"""Bounds of a model's records: the bracket, and what contradicts it, from records made by hand."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from small_records import make, typed

from spinbench.reporting import brackets, leaderboard, summary


def record(
    method: str, log_z: float | None, kind: str = "estimate", se: float | None = None, seed: int = 0, **how: Any
) -> dict[str, Any]:
    """A record of a model whose log Z is not known, unless it is given as `exact`."""
    found = make(method, model="m", seed=seed, kind=kind, log_z=log_z, **{"exact": None, **how})
    if found["result"] is not None:
        found["result"] |= {"log_z_se": se, "r_hat_max": None, "trajectory": []}
        found["reference"]["reason"] = None if "exact" in how else "it is too wide"
    return found | {"protocol": method, "metrics": {}}


BOUNDS = [
    record("mf", 9.0, "lower"),
    record("g_mf", 10.0, "lower"),
    record("trw", 12.0, "upper"),
    record("other", 13.0, "upper"),
]


def drawn(log_z: float, *bounds: tuple[float, str, str, float]) -> Any:
    """A record of a method that brackets its estimate."""
    found = record("wmb", log_z, se=0.01)
    keys = ("value", "side", "grade", "delta")
    found["result"]["bounds"] = [{**dict(zip(keys, bound, strict=True)), "by": "wmb"} for bound in bounds]
    return found


BRACKETED = drawn(
    11.0, (11.5, "upper", "certified", 0.0), (10.9, "lower", "probable", 5e-4), (11.1, "upper", "probable", 5e-4)
)


def statuses(*records: Any) -> dict[str, str]:
    return {row.method: row.status for row in leaderboard.rows(typed(records))}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([*BOUNDS, record("gibbs", 11.25)], "log Z in [10 (g_mf), 12 (trw)], 2 nats wide"),
        ([*BOUNDS, record("gibbs", 11.25)], " 11.25 "),  # the values stand in place of errors that are not known
        ([record("mf", 9.0, "lower")], "log Z in [9 (mf), no upper bound]"),
        (BOUNDS[2:], "log Z in [no lower bound, 12 (trw)]"),
        (
            [record("g_mf", 10.0, "lower"), record("trw", 9.0, "upper")],
            "contradictory bounds on log Z: 10 (g_mf) > 9 (trw)",
        ),
        (
            [*BOUNDS, BRACKETED],
            "log Z in [10 (g_mf), 11.5 (wmb)], 1.5 nats wide; with probability 0.999 in [10.9 (wmb), 11.1 (wmb)]",
        ),
    ],
    ids=["of the best bounds", "values", "no upper", "no lower", "crossing", "with their grades"],
)
def test_the_leaderboard_shows_the_bracket(records: list[Any], expected: str) -> None:
    console = Console(width=160, file=io.StringIO(), markup=False)
    console.print(*summary.leaderboard_tables(leaderboard.rows(typed(records))))
    assert expected in " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_bracket_is_of_the_best_bounds() -> None:
    failed = record("failed", 99.0, "lower", status="failed")
    assert brackets.log_z_bracket(typed([*BOUNDS, record("gibbs", 11.0, se=0.1), failed])) == brackets.LogZBracket(
        None, 10.0, 12.0, "g_mf", "trw"
    )
    assert brackets.log_z_bracket(typed([record("gibbs", 11.0)])).sentence() is None
    assert brackets.log_z_bracket(typed([record("mf", 9.0, "lower", exact=10.0)])).sentence() is None
    found = brackets.log_z_bracket(typed([*BOUNDS, BRACKETED, BRACKETED]))
    assert (found.lower, found.upper, found.upper_method) == (10.0, 11.5, "wmb")
    assert (found.probable, found.probable_methods) == ((10.9, 11.1), ("wmb", "wmb"))
    assert found.delta == pytest.approx(2e-3)


ALONE: list[Any] = []


@pytest.mark.parametrize(
    ("others", "answer", "flag"),
    [
        (BOUNDS, record("gibbs", 10.0 - 5e-9), None),
        (BOUNDS, record("gibbs", 10.0 - 5e-8), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 12.1), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 12.1, se=0.03), None),
        (BOUNDS, record("gibbs", 12.1, se=0.02), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 9.5, se=0.2), None),
        (BOUNDS, record("gibbs", 9.5, se=0.1), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 9.5, se=0.0), brackets.OUTSIDE),
        ([*BOUNDS, BRACKETED], record("gibbs", 11.0, se=0.01), None),
        ([*BOUNDS, BRACKETED], record("gibbs", 10.5, se=0.01), brackets.UNLIKELY),
        ([*BOUNDS, BRACKETED], record("gibbs", 11.8, se=0.01), brackets.OUTSIDE),
        (ALONE, record("mf", 100.0 + 5e-8, "lower", exact=100.0), None),
        (ALONE, record("mf", 100.0 + 2e-7, "lower", exact=100.0), brackets.VIOLATED),
        (ALONE, record("trw", 100.0 - 5e-8, "upper", exact=100.0), None),
        (ALONE, record("trw", 100.0 - 2e-7, "upper", exact=100.0), brackets.VIOLATED),
        (ALONE, record("gibbs", 120.0, exact=100.0), None),
        (ALONE, record("exact", 100.00009, "exact", exact=100.0), None),
        (ALONE, record("exact", 100.0002, "exact", exact=100.0), brackets.WRONG),
        (ALONE, record("exact", 99.9, "exact", exact=100.0), brackets.WRONG),
    ],
)
def test_what_contradicts_the_bracket_is_flagged(others: list[Any], answer: Any, flag: str | None) -> None:
    """Estimates beyond four standard errors; bounds and answers beyond rounding. No flag is wrong about the others."""
    board = {row.method: row for row in leaderboard.rows(typed([*others, answer]))}
    row = board.pop(answer["axes"]["method"])
    assert [one for one in brackets.FLAGS if one in row.status.split(", ")] == ([] if flag is None else [flag])
    assert leaderboard.is_disqualified(row) == (flag in brackets.DISQUALIFYING)
    assert not any(one in other.status for other in board.values() for one in brackets.FLAGS)


def test_any_seed_outside_flags_its_row() -> None:
    board = leaderboard.rows(typed([*BOUNDS, record("gibbs", 11.0), record("gibbs", 15.0, seed=1)]))
    (row,) = (row for row in board if row.method == "gibbs")
    assert (row.status, row.log_z) == ("ok, outside the bracket, no exact answer", 13.0)


def test_an_exact_record_is_an_exact_answer() -> None:
    """Where the reference gave up but the method itself, with other limits, did not."""
    found = statuses(record("exact", 5.0, "exact"), record("mf", 5.1, "lower"), record("gibbs", 7.0))
    assert brackets.VIOLATED in found["mf"]
    assert found["gibbs"] == found["exact"] == "ok, no exact answer"


def test_bounds_that_cross_are_both_violated() -> None:
    found = statuses(record("g_mf", 10.0, "lower"), record("trw", 9.0, "upper"))
    assert all(brackets.VIOLATED in status for status in found.values())
