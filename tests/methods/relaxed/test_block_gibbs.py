"""Block Gibbs: the law of its s-chain, and its settings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import spinbench
from spinbench import reference
from spinbench.backends.numpy import NumpyBackend
from spinbench.foundation.trees import map_arrays
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.models import PairwiseModel

MODEL = PairwiseModel.from_edges([0.4, -0.8, 0.1], [(0, 1), (0, 2), (1, 2)], [1.5, -2.0, 0.7])
STATES = (np.arange(8)[:, None] >> np.arange(3)) & 1
DOMINANT = tuple(1.1 * np.abs(MODEL.dense()).sum(axis=1))


def transition_counts(method: BlockGibbs, chains: int, steps: int, seed: int) -> np.ndarray:
    """(8, 8) counts of the state after `steps` steps from each of the 8 states."""
    backend = NumpyBackend()
    tables, program, key = map_arrays(backend.to_device, method.plan(MODEL)), method.program(backend), backend.key(seed)
    start = np.repeat(STATES, chains, axis=0).T.astype(float)
    state = program.init(backend.fold_in(key, 0), tables, start)
    for t in range(1, steps + 1):
        state = program.step(backend.fold_in(key, t), tables, state)
    codes = (state.s.T @ [1, 2, 4]).astype(int).reshape(8, chains)
    return np.stack([np.bincount(row, minlength=8) for row in codes])


def exact_transitions() -> np.ndarray:
    """T(s'|s) = E[Π σ(±(α + b))] over α ~ N(Qs, Q), by Gauss-Hermite quadrature in three dimensions."""
    r = BlockGibbs(diagonal=DOMINANT).plan(MODEL)
    Q = MODEL.dense() + np.diag(r.d)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij")).reshape(3, -1)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel() / (2 * np.pi) ** 1.5
    T = np.empty((8, 8))
    for row, s in enumerate(STATES):
        u = (Q @ s)[:, None] + np.linalg.cholesky(Q) @ grid + r.bias[:, None]
        p = 1 / (1 + np.exp(-u))
        for column, t in enumerate(STATES):
            T[row, column] = mass @ np.prod(np.where(t[:, None] == 1, p, 1 - p), axis=0)
    return T


@pytest.mark.parametrize("form", ["harmonium", "identity", "sparse"])
def test_the_law_of_the_s_chain_is_the_same_for_every_a(form: str) -> None:
    T = exact_transitions()
    weights = np.exp(MODEL.log_weight(STATES))
    np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(weights @ T, weights, rtol=1e-5)  # p(s) is stationary
    flow = weights[:, None] * T
    np.testing.assert_allclose(flow, flow.T, rtol=1e-4)  # and reversible
    chains = 20_000
    counts = transition_counts(BlockGibbs(form=form, diagonal=DOMINANT), chains, 1, seed=1)
    expected = chains * T
    assert stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), 8 * 7) > 1e-4
    counts = transition_counts(BlockGibbs(form=form, diagonal=DOMINANT), chains, 3, seed=2)
    expected = chains * np.linalg.matrix_power(T, 3)
    assert stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), 8 * 7) > 1e-4


def test_a_smaller_trace_mixes_faster() -> None:
    """The reason for "sdp": fewer effective samples with a large D."""
    exact = reference.solve(MODEL, method="enumeration", cache=False).probabilities
    means = {}
    for slack in (0.02, 3.0):
        result = spinbench.run(
            MODEL, "block_gibbs", "numpy", 400, chains=64, seed=3, diagonal="sdp", slack=slack, log_z="none"
        )
        assert (np.abs(result.marginals - exact) < 4 * result.marginals_error_bound).all()
        means[slack] = result.ess.mean()
    assert means[0.02] > 2 * means[3.0]


def test_auto_takes_the_diagonal_that_suits_the_form() -> None:
    dominance = np.abs(MODEL.dense()).sum(axis=1)
    np.testing.assert_allclose(BlockGibbs(form="sparse", slack=0.1).plan(MODEL).d, 1.1 * dominance)
    triangle = PairwiseModel.from_edges([0.0] * 3, [(0, 1), (0, 2), (1, 2)], [1.0] * 3)
    np.testing.assert_allclose(BlockGibbs(slack=0.1).plan(triangle).d, 1.1, rtol=1e-3)  # dominance gives 2.2
    tables = BlockGibbs(form="sparse").plan(MODEL)
    assert tables.root is None
    assert tables.gram is None
