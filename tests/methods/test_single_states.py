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


SAMPLERS = ("gibbs", "blocks", "pt", "smc", "metropolis", "zanella", "tempered_transitions", "multicanonical")


@pytest.mark.parametrize("method", [*SAMPLERS, "importance", "rejection"])
@pytest.mark.parametrize("sizes", [[1, 1], [3], [2, 1, 2]])
def test_models_that_are_given_as_they_are(method: str, sizes: list[int]) -> None:
    """Of one state each, without factors, or with a variable of one state between two others."""
    scopes = [(v, v + 1) for v in range(len(sizes) - 1)]
    tables = [(scope, np.zeros([sizes[v] for v in scope])) for scope in scopes]
    model = FactorGraph.from_log_tables(sizes, tables, name="bare")
    found = spinbench.run(model, method, "numpy", 40, chains=9, simplify=False)
    for p, size in zip(found.marginals, sizes, strict=True):
        assert p == pytest.approx(np.full(size, 1 / size), abs=0.2)


@pytest.mark.parametrize("method", ["importance", "smc"])
def test_runs_that_meet_no_possible_state_say_so(method: str) -> None:
    """Of three states each, of which nothing is known then."""
    alike = np.where(np.eye(3), 0.0, -np.inf)
    model = FactorGraph.from_log_tables([3] * 40, [((v, (v + 7) % 40), alike) for v in range(40)], name="alike")
    settings = {"proposal": "uniform"} if method == "importance" else {"particles": 1, "temperatures": 1}
    found = spinbench.run(model, method, "numpy", 8, chains=1, simplify=False, **settings)
    assert "marginals" in found.status
    assert np.concatenate(found.marginals) == pytest.approx(np.full(120, 1 / 3))
