"""Tempered transitions on factor graphs: the products of weights on the way down and up are ratios of Z."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, exact_start, law

from spinbench.methods.baselines.tempered_transitions import TemperedTransitions


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("name", "ways"), [("zeros", {"down": 1}), ("bits", {"down": 1, "up": -1})])
def test_products_have_the_means_of_z_over_z_0(name: str, ways: dict[str, int], backend: str) -> None:
    """And, but for zeros, of Z_0 / Z, though much is accepted."""
    tables, engine = bound(MODELS[name], backend, TemperedTransitions(temperatures=3))
    state, statistics = engine.advance(engine.init(2, exact_start(MODELS[name], 4096)), 3)
    assert statistics["accepted"].mean() > 0.6
    looks = engine.look(state)
    for way, sign in ways.items():
        products = np.exp(looks[way] - sign * (law(MODELS[name])[2] - float(tables.base)))
        assert abs(products.mean() - 1) < 4.5 * products.std() / np.sqrt(4096)
        assert products.std() > 0.1
