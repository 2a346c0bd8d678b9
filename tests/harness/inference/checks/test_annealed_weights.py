"""What a well weighs, by annealing from a product law."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.inference.checks.probes import annealed
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import table_sweep
from spinbench.models import FactorGraph

DRAWS = 4000


@pytest.mark.parametrize("zeros", [False, True])
def test_the_mean_of_weights_is_z_and_of_those_of_a_state_what_it_has_of_it(zeros: bool) -> None:
    """Variables of two and three states, orders 1 to 3, scopes unsorted and twice; any product law."""
    rng = np.random.default_rng(3)
    cards, scopes = [3, 2, 3, 2, 2], [[1, 0], [2, 1, 3], [0, 1], [4], [3, 2], [4, 0]]
    tables = [rng.normal(size=[cards[v] for v in scope]) for scope in scopes]
    if zeros:
        tables[1][0, 1], tables[5][1, 2] = -np.inf, -np.inf
    model = FactorGraph.from_log_tables(cards, list(zip(scopes, tables, strict=True)), log_constant=0.4)
    flat, exact = factor_tables(model), spinbench.exact(model, cache=False)
    law = np.concatenate([rng.dirichlet(np.full(k, 2.0)) for k in cards])
    log_w, x = annealed(flat, table_sweep(flat, "chromatic", single=False), law, DRAWS, rng)
    w = np.exp(log_w - exact.log_z)
    for there, share in [(np.ones(DRAWS), 1.0), (x[0] == 2, exact.marginals[0][2]), (x[3] == 0, exact.marginals[3][0])]:
        part = w * there
        assert abs(part.mean() - share) < 4 * part.std() / np.sqrt(DRAWS)
