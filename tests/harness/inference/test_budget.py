"""Budgets as users write them."""

from __future__ import annotations

import pytest

from spinbench.errors import BudgetError, SpinbenchError
from spinbench.inference.budget import Budget, Tolerance


@pytest.mark.parametrize(
    ("text", "budget"),
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
    ],
)
def test_parse(text: str | int, budget: Budget) -> None:
    assert Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "s", "-3", "0", "1.5", "0 s", "-1 s", "nan s", "inf s", "3 weeks", "1e s", "--"])
def test_nonsense_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BudgetError) as caught:
        Budget.parse(text)
    assert "\n" not in str(caught.value)


def test_exactly_one_unit() -> None:
    with pytest.raises(BudgetError, match="either samples or seconds, and neither was given"):
        Budget()
    with pytest.raises(BudgetError, match=r"samples=1 was given beside seconds=1\.0"):
        Budget(samples=1, seconds=1.0)
    with pytest.raises(BudgetError, match=r"no whole number of samples; seconds are written '0\.5 s'"):
        Budget.parse("0.5")


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("samples", -1, "a whole number, 1 or more, is needed"),
        ("samples", 1.5, "a whole number, 1 or more, is needed"),
        ("samples", "many", "a whole number, 1 or more, is needed"),
        ("seconds", 0, "a positive number is needed"),
        ("seconds", "2s", "a positive number is needed"),
        ("burn_in", -1, "a whole number of samples, 0 or more, is needed"),
        ("burn_in", "x", "a whole number of samples, 0 or more, is needed"),
    ],
)
def test_a_wrong_value_is_named_before_anything_else(name: str, value: object, needed: str) -> None:
    """Whatever else was given, as from the command line beside the defaults of a group."""
    with pytest.raises(BudgetError, match=f"{name}={value} was given; {needed}"):
        Budget(**{"seconds": 1.0, name: value})


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("se<0.01", Tolerance("se", 0.01)),
        (" se < 1e-2 ", Tolerance("se", 0.01)),
        ("log_z_se<1", Tolerance("log_z_se", 1)),
    ],
)
def test_a_tolerance(text: str, tolerance: Tolerance) -> None:
    assert Tolerance.parse(text) == tolerance


@pytest.mark.parametrize(
    "text", ["", "0.01", "se", "se<", "se<x", "se<0", "se<-1", "se<nan", "se<1e999", "r_hat<1.01", 0.01]
)
def test_what_is_no_tolerance_is_refused_in_one_sentence(text: object) -> None:
    with pytest.raises(SpinbenchError) as caught:
        Tolerance.parse(text)
    assert str(caught.value) == f"until={text!r} was given; 'se<0.01' or 'log_z_se<0.1', say, is needed"
