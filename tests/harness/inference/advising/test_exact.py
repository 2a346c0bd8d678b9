"""What an exact answer takes is known before it is begun, and without a long search where there is none."""

from __future__ import annotations

import pytest

from spinbench.errors import IntractableError
from spinbench.inference.advising.exact import check_cost
from spinbench.models import catalogue, generators
from spinbench.reference.orders import order

SECONDS = 60.0


@pytest.mark.parametrize(
    "model", [generators.random_regular(400, 3, seed=1), generators.grid(60, 60, seed=1)], ids=["regular", "grid"]
)
def test_a_hopeless_search_is_given_up(model, monkeypatch):
    searched = []
    portfolio = order._portfolio

    def counted(goatd, pairs, copies, seed, seconds):
        searched.append(seconds)
        return portfolio(goatd, pairs, copies, seed, seconds)

    monkeypatch.setattr(order, "_portfolio", counted)
    with pytest.raises(IntractableError, match=r"meets width \d+ and would take .*iB of memory"):
        check_cost(model, SECONDS)
    assert sum(searched) <= 1


@pytest.mark.parametrize("name", ["uai14hard/linkage_16", "uai14hard/Promedus_38", "uai14/DBN_11"])
def test_models_fit_whose_first_orders_do_not(name):
    check_cost(catalogue.load(name), SECONDS)
