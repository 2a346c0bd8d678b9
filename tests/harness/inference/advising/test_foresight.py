"""What an exact answer takes is known before it is begun, and without a long search where there is none."""

from __future__ import annotations

import pytest

from spinbench.errors import IntractableError
from spinbench.inference.advising.foresight import check
from spinbench.models import catalogue, generators
from spinbench.reference import ordering

SECONDS = 60.0


@pytest.mark.parametrize(
    "model", [generators.random_regular(200, 3, seed=1), generators.grid(30, 30, seed=1)], ids=["regular", "grid"]
)
def test_a_hopeless_search_is_given_up(model, monkeypatch):
    searched = []
    greedy = ordering._greedy

    def counted(start, core, rule, rng, tally, limit):
        searched.append(limit)
        greedy(start, core, rule, rng, tally, limit)

    monkeypatch.setattr(ordering, "_greedy", counted)
    with pytest.raises(IntractableError, match="takes more than 1 GiB"):
        check(model, SECONDS)
    assert len(searched) <= 5
    assert max(searched) < 40


@pytest.mark.parametrize("name", ["uai14hard/linkage_16", "uai14hard/Promedus_38", "uai14/DBN_11"])
def test_models_fit_whose_first_orders_do_not(name):
    check(catalogue.load(name), SECONDS)
