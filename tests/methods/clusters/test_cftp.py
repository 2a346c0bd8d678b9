"""Coupling from the past: exact draws on every backend, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference import binding
from spinbench.methods.clusters import cftp
from spinbench.methods.clusters.cftp import CouplingFromThePast, flipped, flips
from spinbench.models import PairwiseModel
from spinbench.testing import limits

CHAINS = 500


def balanced(edges, couplings, n, seed):
    """With fields that leave both states of each variable likely."""
    biases = 0.5 * np.random.default_rng(seed).normal(size=n)
    biases -= 0.5 * np.bincount(np.ravel(edges), np.repeat(couplings, 2), n)
    return PairwiseModel.from_edges(biases, edges, couplings, name="attractive once flipped")


def model():
    """Couplings of both signs, which flips of two variables turn."""
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4), (2, 5)])
    sign = np.where(np.isin(np.arange(6), [1, 4]), -1.0, 1.0)
    couplings = np.random.default_rng(1).uniform(0.5, 3.0, size=len(edges)) * sign[edges].prod(axis=1)
    return balanced(edges, couplings, 6, 2)


MODEL = model()


def law():
    states = (np.arange(2**6)[:, None] >> np.arange(6)) & 1
    weights = MODEL.log_weight(states)
    return states, np.exp(weights - np.logaddexp.reduce(weights))


def engine(backend):
    method = CouplingFromThePast()
    tables = method.plan(MODEL)
    return tables, binding.bind(method, backend, MODEL, tables, precision="float64").engine


def drawn(backend, steps, seed=3, chains=CHAINS):
    """(steps, N, C) by variable."""
    tables, bound = engine(backend)
    state, found = bound.init(seed, np.zeros((6, chains), dtype=np.int8)), []
    for _ in range(steps):
        state, seen = bound.advance(state, 1)
        found.append(seen["draw"][np.argsort(tables.order)])
    return np.array(found)


@pytest.mark.parametrize(("backend", "steps"), [("numpy", 6), ("numba", 20), ("jax", 6)])
def test_draws_have_the_exact_law(backend, steps):
    p = law()[1]
    codes = np.rint(np.moveaxis(drawn(backend, steps), 1, 0)).astype(int).reshape(6, -1).T @ (2 ** np.arange(6))
    statistic, degrees = limits.likelihood_ratio(np.bincount(codes, minlength=64), p)
    assert degrees > 20
    assert statistic < limits.chi_square_limits(degrees, 1)[1]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_draw_does_not_depend_on_where_doubling_begins(backend, monkeypatch):
    """From 64 sweeps before now on instead of 4; each sweep has its own numbers, whatever the epoch."""
    before = drawn(backend, 2, chains=40)
    monkeypatch.setattr(cftp, "FIRST", 64)
    after = drawn(backend, 2, chains=40)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_errors_are_those_of_independent_draws(backend):
    states, p = law()
    for marginals in ("rao_blackwell", "empirical"):
        found = spinbench.run(MODEL, "cftp", backend, 40, chains=64, seed=5, marginals=marginals)
        assert found.status == "ok"
        error = found.marginals - p @ states
        assert (np.abs(error) < 4 * found.marginals_se).all()
        if marginals == "empirical":
            exact = np.sqrt(found.marginals * (1 - found.marginals) / (40 * 64))
            assert (found.marginals_se >= exact).all()
            assert (found.marginals_se < 1.2 * exact).all()
    assert found.draws[0].shape[0] == 6


def test_draws_that_never_meet_are_doubted(monkeypatch):
    monkeypatch.setattr(cftp, "DOUBLINGS", 1)
    found = spinbench.run(MODEL, "cftp", "numpy", 20, chains=32)
    assert found.diagnostics["never_met"] > 0
    assert found.status == "marginals not mixed"


def test_no_more_sweeps_are_made_where_all_chains_will_hardly_meet():
    """Twelve spins at a third of the critical temperature, of which the one well is left in some 10^8 sweeps."""
    edges = np.array([(i, j) for i in range(12) for j in range(i)])
    ordered = balanced(edges, np.full(len(edges), 1.6), 12, 7)
    found = spinbench.run(ordered, "cftp", "numpy", 1, chains=16)
    assert found.status == "marginals not mixed"
    assert found.diagnostics["never_met"] == 16
    assert found.diagnostics["sweeps"] < 2**13


def test_flips_make_couplings_attractive_and_keep_the_law():
    turned, flip = flipped(MODEL, flips("cftp", MODEL)), flips("cftp", MODEL)
    assert 0 < flip.sum() < 6
    assert (turned.couplings >= 0).all()
    states, p = law()
    weights = turned.log_weight(np.where(flip, 1 - states, states))
    np.testing.assert_allclose(np.exp(weights - np.logaddexp.reduce(weights)), p, rtol=1e-10)


def test_frustration_is_refused():
    triangle = np.array([(0, 1), (1, 2), (0, 2), (2, 3)])
    frustrated = balanced(triangle, np.array([1.0, 1.0, -1.0, 2.0]), 4, 6)
    with pytest.raises(UnsupportedError, match="frustrated, at 4 of 4"):
        spinbench.run(frustrated, "cftp", "numba", 10)
