"""Variables of one state, which files have, count as variables: every method gives them the marginal [1]."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.models import FactorGraph

MIXED = FactorGraph.from_log_tables(
    [2, 1, 2], [((0, 1), np.array([[0.2], [-0.4]])), ((0, 2), np.array([[0.3, -0.1], [0.6, 0.2]]))], name="mixed"
)
SINGLE = FactorGraph.from_log_tables([1, 1], [((0, 1), np.full((1, 1), 0.5))], name="single")


@pytest.mark.parametrize("model", [MIXED, SINGLE], ids=lambda model: model.name)
@pytest.mark.parametrize("method", ["forney_mf", "g_mf", "g_bp", "g_bp_multiple", "bp", "mf", "trw"])
def test_variables_of_one_state(method: str, model: FactorGraph) -> None:
    exact, found = spinbench.exact(model, cache=False), spinbench.run(model, method, "numpy", 2000, chains=1)
    assert found.log_z == pytest.approx(exact.log_z, abs=0.05)
    if found.marginals is not None:
        assert [len(p) for p in found.marginals] == list(model.cardinalities)
        for p, q in zip(found.marginals, exact.marginals, strict=True):
            assert p == pytest.approx(q, abs=0.1)
