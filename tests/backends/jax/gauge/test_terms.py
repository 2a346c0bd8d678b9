"""The terms of G-BP-sequential, all at once."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

from spinbench.backends.jax.gauge.terms import pinned_members, term_bounds
from spinbench.methods.gauge.corrections import corrections
from spinbench.methods.gauge.sequential import condition_first_one


@pytest.mark.parametrize("graph", zoo.GRAPHS)
def test_terms_at_once_are_those_of_pinned_models(graph):
    """Against one conditioned model after the other; a gauge with negative entries gives -inf in its row alone."""
    model = zoo.random_tables(zoo.GRAPHS[graph], 0.3, np.random.default_rng(3))
    tables = [group.tables for group in model.groups]
    members = pinned_members(model, tables, model.num_edges)
    theta = np.zeros(members.free.shape)
    expected = []
    for edge in range(model.num_edges):
        term = condition_first_one(model, edge)
        plain = [group.tables for group in term.groups]
        expected.append(corrections(term, plain)[1] if term.num_edges else term.log_constant)
    assert term_bounds(model, members, theta) + model.log_constant == pytest.approx(expected, abs=1e-12)
    theta[0, 2] = 1.2
    found = term_bounds(model, members, theta) + model.log_constant
    assert found[0] == -np.inf
    assert found[1:] == pytest.approx(expected[1:], abs=1e-12)
