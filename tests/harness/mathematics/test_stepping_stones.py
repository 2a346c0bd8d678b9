"""Stepping stones from exact draws at every temperature: right, and as certain as they claim."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.stepping_stones import pilot_betas, schedule, stepping_stones, sweeps_needed

BIASES = np.random.default_rng(0).normal(size=60) * 1.5
# Of the sum over states of e^{a·s}, over the number of states.
EXACT = float(np.logaddexp(0.0, BIASES).sum() - 60 * np.log(2))


def slopes(beta: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """a·s of independent draws of e^{beta a·s}."""
    p = 1 / (1 + np.exp(-beta * BIASES))
    return np.asarray((rng.random((*shape, 60)) < p) @ BIASES)


def spread(betas: np.ndarray) -> np.ndarray:
    p = 1 / (1 + np.exp(-betas[:, None] * BIASES))
    return np.sqrt((p * (1 - p)) @ BIASES**2)


def estimate(seed: int, wanted: int, chains: int = 16, looks: int = 40):
    rng = np.random.default_rng(seed)
    pilot = pilot_betas(wanted)
    plan = schedule(pilot, spread(pilot), wanted, wanted)
    assert plan is not None
    climbed = np.stack([slopes(beta, (plan.sweeps, chains), rng) for beta in plan.betas[:-1]], axis=1)
    return stepping_stones(plan.betas[:-1], climbed, slopes(1.0, (looks, chains), rng))


@pytest.mark.parametrize("wanted", [36, 200])
def test_claims_hold(wanted: int) -> None:
    """Over 300 runs a mean of z has an error of .06, its spread one of .04."""
    found = [estimate(seed, wanted) for seed in range(300)]
    assert all(one.supported for one in found)
    z = np.array([(one.value - EXACT) / one.se for one in found])
    assert abs(z.mean()) < 0.25
    assert 0.75 < z.std() < 1.1
    assert all(abs(one.value - EXACT) < 1.6 * one.error_bound for one in found)


def test_steps_are_even_and_within_what_may_be_spent() -> None:
    betas = np.linspace(0, 1, 9)
    falling = 20 * np.exp(-3 * betas)  # ∫ = 6.33
    plan = schedule(betas, falling, 600, 600)
    assert plan is not None
    assert len(plan.betas) == 8
    assert plan.sweeps == 85
    assert plan.betas[0] == 0
    assert plan.betas[-1] == 1
    assert (np.diff(plan.betas, 2) > -1e-9).all()  # wider where V varies less
    few = schedule(betas, falling, 12, 30)
    assert few is not None
    assert (len(few.betas), few.sweeps, few.needed) == (5, 6, 24)
    assert schedule(betas, falling, 12, 23) is None
    assert sweeps_needed(betas, falling) == 24


def test_rungs_too_far_apart_support_nothing() -> None:
    rng = np.random.default_rng(1)
    wide = np.linspace(0, 1, 3) * 90 + slopes(0.0, (20, 16, 3), rng)
    found = stepping_stones(np.array([0.0, 0.5]), wide[..., :2].swapaxes(1, 2), wide[..., 2])
    assert not found.supported
    assert found.claim.error_bound == np.inf
    nothing = stepping_stones(np.array([0.0]), np.zeros((6, 1, 16)), np.full((6, 16), 1e5))
    assert (nothing.overlap, nothing.error_bound, nothing.supported) == (0.0, np.inf, False)


@pytest.mark.parametrize(("chains", "looks"), [(4, 40), (16, 3)])
def test_few_chains_or_looks_support_nothing(chains: int, looks: int) -> None:
    assert not estimate(0, 200, chains, looks).supported


def test_chains_that_remember_claim_more() -> None:
    """Chains that keep to their own level on all rungs, as they do in wells."""
    rng = np.random.default_rng(2)
    top = slopes(1.0, (40, 16), rng)
    climbed = slopes(0.0, (20, 1, 16), rng)
    free = stepping_stones(np.array([0.0]), climbed / 8, top / 8)
    levels = 6 * np.repeat([-1.0, 1.0], 8)
    held = stepping_stones(np.array([0.0]), climbed / 8 + levels, top / 8 + levels)
    assert held.error_bound > 4 * free.error_bound


def test_chains_that_are_stuck_at_the_top_support_nothing() -> None:
    """Cooled too fast, each keeps what it was left with, and all are too low."""
    rng = np.random.default_rng(3)
    top, climbed = slopes(1.0, (40, 16), rng) / 8, slopes(0.0, (20, 1, 16), rng) / 8
    assert stepping_stones(np.array([0.0]), climbed, top).supported
    assert not stepping_stones(np.array([0.0]), climbed, top - np.linspace(0, 3, 16)).supported
