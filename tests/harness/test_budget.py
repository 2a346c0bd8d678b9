"""Budgets as users write them."""

from __future__ import annotations

import pytest

from spinbench.budget import Budget
from spinbench.errors import BudgetError


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
    with pytest.raises(BudgetError, match="either samples or seconds"):
        Budget()
    with pytest.raises(BudgetError, match="either samples or seconds"):
        Budget(samples=1, seconds=1.0)
    with pytest.raises(BudgetError, match="burn_in"):
        Budget(samples=1, burn_in=-1)
