"""Estimates: what they say of themselves, and the pooled batch means that they are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from spinbench.api import Estimate
from spinbench.api.pooled import MOST_CHAINS, Means
from spinbench.mathematics.claims import MarginalClaims, marginal_claims


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"log_z_se": math.inf}, "log Z unresolved"),  # an error that is not known is a doubt
        ({"log_z_se": math.inf, "doubts": ("log Z contradicted",)}, "log Z contradicted"),
        ({"log_z_se": 0.5}, "ok"),
        ({"log_z_kind": "exact"}, "ok"),
    ],
)
def test_status(given: dict[str, Any], status: str) -> None:
    estimate = Estimate(log_z=1.0, **given)
    assert estimate.status == status
    assert [bool(estimate.doubted(what)) for what in ("log Z", "marginals")] == [status != "ok", False]


@pytest.mark.parametrize(("batches", "chains", "left"), [(163, 100, 40), (256, 16, 256), (512, 1, 512), (33, 1000, 16)])
def test_means_are_of_neighbours(batches: int, chains: int, left: int) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 5, batches).tolist()
    sums = [rng.random((3, chains)) * count for count in counts]
    means, pooled = Means(sums, counts), batches // left
    assert means.shape == (left, 3, min(chains, MOST_CHAINS))
    assert len(means) == left
    wanted = [sum(sums[k : k + pooled]) / sum(counts[k : k + pooled]) for k in range(0, left * pooled, pooled)]
    np.testing.assert_allclose(means[:, :], np.array(wanted)[..., :MOST_CHAINS], rtol=1e-14)
    np.testing.assert_array_equal(means[1:3, 1:2], means[:, :][1:3, 1:2])


@pytest.mark.parametrize(("memory", "chains"), [(0.0, 64), (0.9, 100), (0.99, 100), (0.9, 1000), (0.99, 1000)])
def test_pooled_batches_tell_errors(memory: float, chains: int) -> None:
    """Of the means of chains that forget by so much a batch."""
    rng, batches, rows = np.random.default_rng(1), 160, 100
    state, sums = rng.standard_normal((rows, chains)), []
    for _ in range(batches):
        state = memory * state + np.sqrt(1 - memory**2) * rng.standard_normal(state.shape)
        sums.append(0.5 + 0.05 * state)
    means = Means(sums, [1] * batches)
    found = marginal_claims(means, batches, np.zeros(rows), np.ones(rows), every=means.every)
    lags = np.arange(1, batches)
    true = 0.05 * np.sqrt((1 + 2 * ((1 - lags / batches) * memory**lags).sum()) / (batches * chains))
    np.testing.assert_allclose(found.mcse.mean(), true, rtol=0.15)
    assert found.doubt == ""


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_errors_of_very_many_chains_are_told_from_some(memory: float) -> None:
    """Means are of all chains; errors fall with their number; and that all of them move is seen in all."""
    rng, batches, rows, chains = np.random.default_rng(1), 20, 50, 8192
    state, sums = rng.standard_normal((rows, chains)), []
    for k in range(batches):
        state = memory * state + np.sqrt(1 - memory**2) * rng.standard_normal(state.shape)
        sums.append(3 * (0.5 + 0.05 * state + (0.003 * k if k < 6 else 0.018) * (np.arange(rows) > 40)[:, None]))
    series = Means(sums, [3] * batches)
    assert series.shape == (batches, rows, 256)
    np.testing.assert_allclose(series.mean(), np.mean(sums, axis=(0, 2)) / 3, rtol=1e-12)

    def claims(some: slice) -> tuple[MarginalClaims, MarginalClaims]:
        few = Means([one[some] for one in sums], [3] * batches)
        low, high = np.zeros(few.shape[1]), np.ones(few.shape[1])
        whole = np.array([one[some] / 3 for one in sums])
        told = marginal_claims(few, 3 * batches, low, high, every=few.every)
        return told, marginal_claims(whole, 3 * batches, low, high)

    told, known = claims(slice(0, 40))
    for name in ("error_bounds", "se", "mcse"):
        np.testing.assert_allclose(getattr(told, name).mean(), getattr(known, name).mean(), rtol=0.1)
    assert told.doubt == known.doubt == ""
    told, known = claims(slice(40, rows))
    assert told.doubt == known.doubt == "too short"
