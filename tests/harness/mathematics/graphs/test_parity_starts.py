"""Starts found by elimination: parities that can hold do."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.starts import parity_starts, walsh_terms
from spinbench.models import FactorGraph
from tests.helpers.planted_parities import planted_parities


@pytest.mark.parametrize(("variables", "triples"), [(80, 96), (60, 40)])
def test_planted_parities_all_hold(variables: int, triples: int) -> None:
    flat = factor_tables(planted_parities(variables, triples, 1.1))
    x = parity_starts(flat, 3, np.random.default_rng(0))
    assert x.shape == (variables, 3)
    np.testing.assert_allclose(flat.values[flat.positions(x)].sum(axis=0), 1.1 * triples)
    assert (x[:, 0] == x[:, 1]).all() == (triples > variables)  # what is not settled is random


@pytest.mark.parametrize(("broken", "field"), [(6, 0.0), (0, 1.4), (3, 0.4)])
def test_a_planted_state_is_found_that_some_parities_and_fields_contradict(broken: int, field: float) -> None:
    """Each start is at least as likely as the planted state, of which all triples but the first few hold."""
    variables, triples, beta = 70, 110, 1.4
    whole = planted_parities(variables, triples, beta)
    planted = parity_starts(factor_tables(whole), 1, np.random.default_rng(0))[:, 0]
    fields = field * np.random.default_rng(1).normal(size=variables)
    factors = [(f.scope, -f.log_table if k < broken else f.log_table) for k, f in enumerate(whole.factors)]
    factors += [([v], [0.0, h]) for v, h in enumerate(fields)]
    model = FactorGraph.from_log_tables([2] * variables, factors)
    x = parity_starts(factor_tables(model), 4, np.random.default_rng(0))
    assert (model.log_weight(x.T) >= model.log_weight(planted) - 1e-9).all()


def test_of_parities_that_contradict_each_other_the_strongest_hold() -> None:
    differ, same = np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)
    triangle = [([0, 1], 3 * differ), ([2, 1], 2 * differ), ([0, 2], 5 * differ), ([3, 0], same), ([3], [0.0, 9.0])]
    x = parity_starts(factor_tables(FactorGraph.from_log_tables([2] * 4, triangle)), 8, np.random.default_rng(0))
    np.testing.assert_array_equal(x, np.repeat([[1], [0], [0], [1]], 8, axis=1))


def test_walsh_terms_sum_to_the_log_weight() -> None:
    rng = np.random.default_rng(5)
    scopes = [[3, 0, 1], [1, 2], [2, 1], [4], [0, 4, 2, 3]]
    flat = factor_tables(
        FactorGraph.from_log_tables([2] * 5, [(scope, rng.normal(size=[2] * len(scope))) for scope in scopes])
    )
    states = np.array(list(np.ndindex(2, 2, 2, 2, 2))).T
    logs = flat.values[flat.positions(states)].sum(axis=0)
    bits = [sum(1 << v for v, one in enumerate(x) if one) for x in states.T.tolist()]
    signed = [sum(j * (-1) ** (s & x).bit_count() for s, j in walsh_terms(flat).items()) for x in bits]
    np.testing.assert_allclose(np.array(signed) - signed[0], logs - logs[0], atol=1e-12)
