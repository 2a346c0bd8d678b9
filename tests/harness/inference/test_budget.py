"""Budgets as users write them, and runs that end as soon as their error is small enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import BudgetError, SpinbenchError
from spinbench.inference.budget import Budget, Tolerance
from spinbench.models import FactorGraph, PairwiseModel, generators


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (10_000, Budget(samples=10_000)),
        ("10000", Budget(samples=10_000)),
        ("10_000 samples", Budget(samples=10_000)),
        ("1e4", Budget(samples=10_000)),
        ("2 s", Budget(seconds=2.0)),
        ("0.5s", Budget(seconds=0.5)),
        ("500 ms", Budget(seconds=0.5)),
        ("1 min", Budget(seconds=60.0)),
        ("60 seconds", Budget(seconds=60.0)),
        ("2 sec", Budget(seconds=2.0)),
        ("1.5 hours", Budget(seconds=5400.0)),
        ("2 s cpu", Budget(seconds=2.0, cpu=True)),
        ("1min cpu", Budget(seconds=60.0, cpu=True)),
        ("se<0.01", Tolerance("se", 0.01)),
        (" se < 1e-2 ", Tolerance("se", 0.01)),
        ("log_z_se<1", Tolerance("log_z_se", 1)),
    ],
)
def test_parse(text: str | int, expected: Budget | Tolerance) -> None:
    assert type(expected).parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "-3",
        "0",
        "0.5",
        "1.5",
        "0 s",
        "-1 s",
        "nan s",
        "inf s",
        "3 weeks",
        "1e s",
        "--",
        "100 cpu",
        "100 samples cpu",
        "2 s gpu",
        "2 scpu",
    ],
)
def test_nonsense_is_refused_in_one_sentence(text: str) -> None:
    message = r"no whole number of samples; seconds are written '0\.5 s'" if text == "0.5" else "^.+$"
    with pytest.raises(BudgetError, match=message) as caught:
        Budget.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "either samples or seconds, and neither was given"),
        ({"samples": 1, "seconds": 1.0}, r"samples=1 was given beside seconds=1\.0"),
        ({"seconds": 1.0, "samples": -1}, "samples=-1 was given; a whole number, 1 or more, is needed"),
        ({"seconds": 1.0, "samples": 1.5}, "samples=1.5 was given; a whole number, 1 or more, is needed"),
        ({"seconds": 1.0, "samples": "many"}, "samples=many was given; a whole number, 1 or more, is needed"),
        ({"seconds": 0}, "seconds=0 was given; a positive number is needed"),
        ({"seconds": "2s"}, "seconds=2s was given; a positive number is needed"),
        ({"seconds": 1.0, "burn_in": -1}, "burn_in=-1 was given; a whole number of samples, 0 or more, is needed"),
        ({"seconds": 1.0, "cpu": "yes"}, "cpu='yes' was given in a budget; true or false is needed"),
        ({"samples": 10, "cpu": True}, "samples=10 was given with cpu=true, which is of seconds alone"),
        ({"seconds": 1.0, "burn_in": "x"}, "burn_in=x was given; a whole number of samples, 0 or more, is needed"),
    ],
)
def test_a_wrong_value_is_named_before_anything_else(fields: dict[str, Any], message: str) -> None:
    """Whatever else was given, as from the command line beside the defaults of a group."""
    with pytest.raises(BudgetError, match=message):
        Budget(**fields)


@pytest.mark.parametrize(
    "text", ["", "0.01", "se", "se<", "se<x", "se<0", "se<-1", "se<nan", "se<1e999", "r_hat<1.01", 0.01]
)
def test_what_is_no_tolerance_is_refused_in_one_sentence(text: object) -> None:
    with pytest.raises(SpinbenchError) as caught:
        Tolerance.parse(text)
    assert str(caught.value) == f"until={text!r} was given; 'se<0.01' or 'log_z_se<0.1', say, is needed"


TWO = PairwiseModel.from_spins([0.2, -0.1], [(0, 1)], [0.6], name="two")


@pytest.mark.parametrize("until", ["se<0.02", "log_z_se<0.1"])
def test_a_run_ends_at_its_tolerance_as_one_of_that_many_samples(until: str) -> None:
    early = spinbench.run(TWO, "gibbs", "numpy", 100_000, burn_in=50, until=until)
    same = spinbench.run(TWO, "gibbs", "numpy", early.samples, burn_in=50)
    error = early.marginals_se.max() if until.startswith("se") else early.log_z_se
    assert early.samples < 1000
    assert early.reached
    assert error < float(until.partition("<")[2])
    assert early.notes == (f"{until} was reached: {error:.2g}",)
    np.testing.assert_allclose(early.marginals, same.marginals, rtol=1e-12)
    assert early.burn_in == same.burn_in
    assert early.trajectory[-1].samples == early.samples
    assert (same.reached, same.notes) == (None, ())


def test_a_budget_that_is_too_small_says_so() -> None:
    result = spinbench.run(TWO, "gibbs", "numpy", 101, until="se<1e-4")
    assert (result.samples, result.reached) == (101, False)
    assert result.notes == (f"se<0.0001 was not reached: {result.marginals_se.max():.2g}; a larger budget is needed",)


def test_a_budget_in_seconds_is_a_limit_only() -> None:
    result = spinbench.run(TWO, "gibbs", "numpy", "10 min", burn_in=50, until="se<0.05")
    assert result.reached
    assert result.seconds.total < 500


def test_a_wide_error_bound_beside_a_standard_error_that_is_reached_is_said() -> None:
    result = spinbench.run(generators.grid(6, 6, seed=1), "gibbs", "numpy", 16, burn_in=50, until="se<0.05")
    assert (result.reached, result.level) == (True, "doubtful")
    assert result.notes[0].endswith(", but marginals doubtful: its error bound is too wide")


def test_what_is_doubted_is_not_reached() -> None:
    graph = FactorGraph.from_tables((3, 2), [((0,), [1.0, 2.0, 5.0]), ((0, 1), [1.0, 1, 2, 1, 3, 1])])
    few, many = (spinbench.run(graph, "gibbs", "numpy", 2000, chains=c, until="se<0.1") for c in (4, 16))
    assert (few.reached, few.samples) == (False, 2000)
    assert few.notes == (f"se<0.1 was not reached: {few.status}",)
    assert few.status.startswith("marginals too few chains")
    assert many.reached
    assert max(errors.max() for errors in many.marginals_se) < 0.1


def test_errors_are_not_too_small_where_runs_end_early() -> None:
    """Claims hold twice over in 95 % of runs; their squares have a mean of 1 at most, but for 2 * 40 draws' chance."""
    exact = spinbench.exact(TWO, cache=False).marginals
    runs = [
        spinbench.run(TWO, "gibbs", "numba", 4000, seed=seed, burn_in=50, checkpoints=1, until="se<0.02")
        for seed in range(40)
    ]
    assert all(run.reached and run.samples < 1000 for run in runs)
    z = np.array([(run.marginals - exact) / run.marginals_se for run in runs])
    assert (z**2).mean() < 1 + 3 * np.sqrt(2 / z.size)
    assert (np.abs(z) > 2).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / z.size)
