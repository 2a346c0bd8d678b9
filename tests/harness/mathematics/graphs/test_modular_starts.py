"""Linear forms modulo a prime: what they are of a log weight, and states that satisfy them."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.modular_starts import modular_starts
from spinbench.mathematics.graphs.starts import parity_starts
from spinbench.models import FactorGraph
from tests.helpers.planted_parities import planted_forms


@pytest.mark.parametrize(("q", "odd"), [(3, 0), (3, 2), (5, 0), (5, 3), (7, 4)])
def test_a_planted_state_is_found(q: int, odd: int) -> None:
    model, planted = planted_forms(q, 60, 120, 2.0, odd)
    x = modular_starts(factor_tables(model), q, 4, np.random.default_rng(0))
    assert x.shape == (model.num_variables, 4)
    weights = model.log_weight(x.T)
    assert weights.max() >= model.log_weight(np.array([planted + [0] * bool(odd)])).item() - 1e-9


def test_a_planted_parity_is_found_beside_a_variable_of_three_states() -> None:
    model, planted = planted_forms(2, 60, 120, 2.0, odd=3)
    x = parity_starts(factor_tables(model), 4, np.random.default_rng(0))[:-1]
    whole = np.concatenate([x, np.zeros((1, 4), dtype=x.dtype)])
    assert model.log_weight(whole.T).max() >= model.log_weight(np.array([[*planted, 0]])).item() - 1e-9


def test_forms_that_forbid_states_are_avoided_and_what_nothing_settles_is_random() -> None:
    table = np.where(np.add.outer(np.arange(3), np.arange(3)) % 3 == 1, 0.0, -np.inf)
    model = FactorGraph.from_log_tables([3, 3, 3, 2], [([0, 1], table)])
    x = modular_starts(factor_tables(model), 3, 400, np.random.default_rng(0))
    assert ((x[0] + x[1]) % 3 == 1).all()
    assert (x[3] == 0).all()
    for row in x[:3]:
        assert np.bincount(row, minlength=3).min() > 90
