"""Tempered transitions on factor graphs, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, check_run, exact_start, law, parted

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.mathematics.graphs.table_layouts import reported_rows
from spinbench.methods.baselines.tempered_transitions import TemperedTransitions
from spinbench.models import PairwiseModel

CHAINS = 4096
METHOD = TemperedTransitions(temperatures=3)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", MODELS)
def test_exact_draws_stay_exact(name: str, backend: str) -> None:
    """What they report, though much is accepted; and products have the means Z / Z_0 and, but for zeros, Z_0 / Z."""
    tables, engine = bound(name, backend, METHOD)
    states, p, log_z = law(name)
    state, _ = engine.advance(engine.init(2, exact_start(name, CHAINS)), 2)
    state, seen = engine.advance(state, 1)
    variables, values = reported_rows(np.array(MODELS[name].cardinalities))
    exact = (states[variables] == values[:, None]) @ p
    chains = seen["p"][:-1]
    error = chains.std(axis=1) / np.sqrt(CHAINS)
    np.testing.assert_array_less(np.abs(chains.mean(axis=1) - exact), 4.5 * error + 1e-9)
    assert seen["accepted"].mean() > 0.2
    looked = engine.look(state)
    for way, sign in {"down": 1, **({"up": -1} if name == "bits" else {})}.items():
        products = np.exp(looked[way] - sign * (log_z - float(tables.base)))
        assert abs(products.mean() - 1) < 4.5 * products.std() / np.sqrt(CHAINS)
        assert products.std() > 0.1


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", MODELS)
def test_runs_are_right_within_what_they_claim(name: str, backend: str) -> None:
    found = check_run(name, "tempered_transitions", backend, 200)
    assert abs(found.log_z - law(name)[2]) < 3 * found.log_z_se < 0.3
    assert 0.1 < found.diagnostics["acceptance"] < 0.9


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_transitions_reach_what_single_updates_do_not(backend: str) -> None:
    found = spinbench.run(parted(), "tempered_transitions", backend, 150, chains=64)
    exact = spinbench.exact(parted(), cache=False)
    np.testing.assert_array_less(np.abs(found.marginals - exact.marginals), 3 * found.marginals_se + 1e-9)
    assert found.marginals_se[0] < 0.02


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_where_few_are_accepted_nothing_is_believed(backend: str) -> None:
    rng = np.random.default_rng(1)
    edges = np.argwhere(np.triu(np.ones((12, 12)), 1))
    glass = PairwiseModel.from_edges(np.zeros(12), edges, 12 * rng.normal(size=len(edges)))
    found = spinbench.run(glass, "tempered_transitions", backend, 40, chains=16, temperatures=2)
    assert "marginals not mixed" in found.status
    assert "log Z unresolved" in found.status


def test_what_it_does_not_take() -> None:
    with pytest.raises(SpinbenchError, match="temperatures=-1 was given; an integer from 0"):
        TemperedTransitions(temperatures=-1)
