"""Metropolis sampling of factor graphs, on every backend, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from small_graphs import MODELS, bound, check_run, exact_start, law, parted

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference import binding
from spinbench.mathematics.graphs.table_layouts import reported_rows
from spinbench.methods.baselines.metropolis import Metropolis, Proposal

CHAINS = 4096
PROPOSALS: list[Proposal] = ["uniform", "metropolised_gibbs"]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", MODELS)
def test_exact_draws_stay_exact(name: str, proposal: Proposal, backend: str) -> None:
    """A χ² test of whole states after steps from exact draws, of which none has weight 0."""
    p = law(name)[1]
    engine = bound(name, backend, Metropolis(proposal, marginals="empirical"))[1]
    state, _ = engine.advance(engine.init(2, exact_start(name, CHAINS)), 2)
    _, seen = engine.advance(state, 1)
    cards = np.array(MODELS[name].cardinalities)
    x = np.zeros((len(cards), CHAINS), dtype=np.int64)
    for v, k, own in zip(*reported_rows(cards), seen["s"], strict=True):
        x[v] += k * own.astype(np.int64)
    counts = np.bincount(np.ravel_multi_index(tuple(x), tuple(cards)), minlength=len(p))
    assert not counts[p == 0].any()
    kept = p * CHAINS >= 8
    counts, expected = (np.append(a[kept], a[~kept].sum()) for a in (counts, p * CHAINS))
    assert stats.chisquare(counts, expected).pvalue > 1e-3


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("p", [np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.7])], ids=["three", "two"])
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_outcomes_are_those_of_the_papers(proposal: Proposal, p: npt.NDArray[np.float64], backend: str) -> None:
    """One step of one variable, with its transition probabilities by hand."""
    model = spinbench.models.FactorGraph.from_log_tables([len(p)], [([0], np.log(p))])
    method = Metropolis(proposal, marginals="empirical")
    engine = binding.bind(method, backend, model, method.plan(model), precision="float64").engine
    for k in range(len(p)):
        _, seen = engine.advance(engine.init(4, np.full((1, 20000), k, dtype=np.int8)), 1)
        if proposal == "uniform":
            expected = np.minimum(1, p / p[k]) / (len(p) - 1)
        else:
            expected = p / (1 - p[k]) * np.minimum(1, (1 - p[k]) / (1 - p))
        expected[k] = 0.0
        expected[k] = 1 - expected.sum()
        error = np.sqrt(expected * (1 - expected) / 20000)
        found = seen["s"].mean(axis=1) if len(p) > 2 else [1 - seen["s"].mean(), seen["s"].mean()]
        np.testing.assert_array_less(np.abs(found - expected), 4.5 * error + 1e-9)


@pytest.mark.parametrize(
    ("name", "backend"), [("zeros", "numpy"), ("bits", "numpy"), ("zeros", "jax"), ("zeros", "numba")]
)
def test_runs_are_right_within_what_they_claim(name: str, backend: str) -> None:
    found = check_run(name, "metropolis", backend, 1000, proposal="metropolised_gibbs")
    assert found.log_z is None


def test_sets_of_states_that_single_updates_do_not_leave_are_noticed() -> None:
    for seed in range(3):
        found = spinbench.run(parted(), "metropolis", "numpy", 200, chains=16, seed=seed)
        assert "marginals not mixed" in found.status


def test_short_runs_are_doubted() -> None:
    assert "too short" in spinbench.run(MODELS["bits"], "metropolis", "numpy", 5, chains=16).status


@pytest.mark.parametrize("settings", [{"proposal": "gaussian"}, {"marginals": "exact"}], ids=str)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(SpinbenchError, match="are allowed"):
        Metropolis(**settings)
