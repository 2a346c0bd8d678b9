"""Claims hold on series whose truth is known: independent, slow, stuck, rare and short ones; fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from spinbench.mathematics import claims


def two_state(p: float, persistence: float, batches: int, length: int, chains: int, seed: int) -> np.ndarray:
    """(B, 1, C) batch means of chains over {0, 1} that keep their state with a probability, else draw it anew."""
    rng = np.random.default_rng(seed)
    steps = batches * length
    kept = rng.random((steps, chains)) < persistence
    kept[0] = False
    fresh = (rng.random((steps, chains)) < p).astype(float)
    last = np.maximum.accumulate(np.where(kept, 0, np.arange(steps)[:, None]), axis=0)
    states = np.take_along_axis(fresh, last, axis=0)
    return states.reshape(batches, length, chains).mean(axis=1)[:, None, :]


@pytest.mark.parametrize(
    ("p", "persistence", "batches", "length"),
    [(0.4, 0.0, 64, 8), (0.3, 0.9, 64, 40), (0.5, 0.98, 50, 40), (0.1, 0.5, 4, 2)],
)
def test_two_claims_cover_95_percent(p: float, persistence: float, batches: int, length: int) -> None:
    runs = 400
    z = []
    for seed in range(runs):
        series = two_state(p, persistence, batches, length, 16, seed)
        found = claims.marginal_claims(series, batches * length, np.zeros(1), np.ones(1))
        z.append((series.mean() - p) / found.errors[0])
    outside = np.mean(np.abs(z) > 2)
    assert outside <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert np.max(np.abs(z)) < 6
    assert np.std(z) > 0.5  # nor are they so wide that they say nothing


def test_chains_that_remember_are_told_from_chains_that_mix() -> None:
    rng = np.random.default_rng(0)
    stuck = np.broadcast_to((rng.random(16) < 0.5).astype(float), (64, 1, 16)) * 0.98 + 0.01
    found = claims.marginal_claims(np.array(stuck), 1000, np.zeros(1), np.ones(1))
    assert found.enough
    assert not found.mixed
    assert found.errors[0] > 0.3
    mixing = two_state(0.5, 0.5, 64, 20, 16, 1)
    assert claims.marginal_claims(mixing, 1280, np.zeros(1), np.ones(1)).mixed


def test_what_was_never_seen_is_claimed_by_the_rule_of_three() -> None:
    series = np.full((64, 1, 16), 1e-7)
    found = claims.marginal_claims(series, 640, np.zeros(1), np.ones(1))
    assert found.errors[0] == pytest.approx(1.5 / (640 * 16), rel=1e-3)
    narrow = claims.marginal_claims(series, 640, np.zeros(1), np.full(1, 2e-7))  # no state can move it further
    assert narrow.errors[0] < 1e-10


@pytest.mark.parametrize(("chains", "batches"), [(1, 64), (7, 64), (16, 3)])
def test_too_few_chains_or_batches_are_not_enough(chains: int, batches: int) -> None:
    series = two_state(0.5, 0.0, batches, 10, chains, 2)
    assert not claims.marginal_claims(series, batches * 10, np.zeros(1), np.ones(1)).enough


def gaussian_sides(
    shift: float, batches: int, chains: int, drawn: int, seed: int, memory: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """log Z + log dp/dq under p = N(shift, 1) and under q = N(0, 1); log Z = 3."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(batches, chains)) * np.sqrt(1 - memory**2)
    noise[0] /= np.sqrt(1 - memory**2)
    y = lfilter([1.0], [1.0, -memory], noise, axis=0) + shift
    log_z = 3.0
    return log_z + shift * y - shift**2 / 2, log_z + shift * rng.normal(size=drawn) - shift**2 / 2, log_z


@pytest.mark.parametrize(("shift", "memory"), [(0.2, 0.0), (1.0, 0.0), (2.0, 0.5), (1.0, 0.9)])
def test_ratio_is_right_within_its_claim(shift: float, memory: float) -> None:
    z, runs = [], 300
    for seed in range(runs):
        forward, backward, log_z = gaussian_sides(shift, 64, 16, 200, seed, memory)
        found = claims.ratio(forward, backward)
        assert found.supported
        z.append((found.value - log_z) / found.error)
    outside = np.mean(np.abs(z) > 2)
    assert outside <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert abs(np.mean(z)) < 0.3


@pytest.mark.parametrize("shift", [6.0, 12.0])
def test_laws_that_do_not_overlap_support_no_ratio(shift: float) -> None:
    forward, backward, _ = gaussian_sides(shift, 64, 16, 200, 0)
    assert not claims.ratio(forward, backward).supported


def test_equal_values_on_both_sides_give_their_common_value() -> None:
    found = claims.ratio(np.full((8, 8), 2.5), np.full(64, 2.5))
    assert found.value == pytest.approx(2.5)
    assert found.overlap == pytest.approx(1.0)
    assert 0 < found.error < 0.1


@pytest.mark.parametrize(("r_hat", "share"), [(1.0, 0.0), (np.inf, 1.0), (np.nan, 1.0), (np.sqrt(2.0), 0.5)])
def test_what_chains_remember(r_hat: float, share: float) -> None:
    assert claims.remembered(r_hat) == pytest.approx(share)
