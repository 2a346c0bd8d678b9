"""Coupling from the past: exact draws on every backend, by χ² over all states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import attractive, bound, keeps_law, law

import spinbench
from spinbench.methods.clusters import cftp
from spinbench.methods.clusters.cftp import CouplingFromThePast, flipped, flips

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4), (2, 5)])
SIGNS = np.where(np.isin(np.arange(6), [1, 4]), -1.0, 1.0)
MODEL = attractive(EDGES, np.random.default_rng(1).uniform(0.5, 3.0, size=len(EDGES)) * SIGNS[EDGES].prod(axis=1), 2)
"""Couplings of both signs, which flips of two variables turn."""


def drawn(backend: str, steps: int, chains: int) -> np.ndarray:
    """(steps, N, C) by variable."""
    tables, engine = bound(MODEL, backend, CouplingFromThePast())
    state, found = engine.init(3, np.zeros((6, chains), dtype=np.int8)), []
    for _ in range(steps):
        state, seen = engine.advance(state, 1)
        found.append(seen["draw"][np.argsort(tables.order)])
    return np.array(found)


@pytest.mark.parametrize(("backend", "steps"), [("numpy", 6), ("numba", 20), ("jax", 6)])
def test_draws_have_the_exact_law(backend: str, steps: int) -> None:
    assert keeps_law(MODEL, np.rint(np.hstack(drawn(backend, steps, 500))))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_draw_does_not_depend_on_where_doubling_begins(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 64 sweeps before now on instead of 4; each sweep has its own numbers, whatever the epoch."""
    before = drawn(backend, 2, 40)
    monkeypatch.setattr(cftp, "FIRST", 64)
    np.testing.assert_array_equal(before, drawn(backend, 2, 40))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("marginals", ["rao_blackwell", "empirical"])
def test_errors_are_those_of_independent_draws(marginals: str, backend: str) -> None:
    states, p, _ = law(MODEL)
    found = spinbench.run(MODEL, "cftp", backend, 40, chains=64, seed=5, marginals=marginals)
    exact = np.sqrt(found.marginals * (1 - found.marginals) / (40 * 64))
    assert found.status == "ok"
    assert (np.abs(found.marginals - states @ p) < 4 * found.marginals_se).all()
    assert (found.marginals_se < 1.2 * exact).all()
    assert marginals == "rao_blackwell" or (found.marginals_se >= exact).all()
    assert found.draws[0].shape[0] == 6


def test_draws_that_never_meet_are_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cftp, "DOUBLINGS", 1)
    found = spinbench.run(MODEL, "cftp", "numpy", 20, chains=32)
    assert found.diagnostics["never_met"] > 0
    assert found.status == "marginals not mixed"


def test_no_more_sweeps_are_made_where_all_chains_will_hardly_meet() -> None:
    """Twelve spins at a third of the critical temperature, of which the one well is left in some 10^8 sweeps."""
    edges = np.array([(i, j) for i in range(12) for j in range(i)])
    found: Any = spinbench.run(attractive(edges, np.full(len(edges), 1.6), 7), "cftp", "numpy", 1, chains=16)
    assert found.status == "marginals not mixed"
    assert found.diagnostics["never_met"] == 16
    assert found.diagnostics["sweeps"] < 2**13


def test_flips_make_couplings_attractive_and_keep_the_law() -> None:
    turned, flip = flipped(MODEL, flips("cftp", MODEL)), flips("cftp", MODEL)
    assert 0 < flip.sum() < 6
    assert (turned.couplings >= 0).all()
    states, p, _ = law(MODEL)
    weights = turned.log_weight(np.where(flip, 1 - states.T, states.T))
    np.testing.assert_allclose(np.exp(weights - np.logaddexp.reduce(weights)), p, rtol=1e-10)
