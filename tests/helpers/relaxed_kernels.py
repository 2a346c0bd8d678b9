"""Forms of block Gibbs and DHMC, and models and checks that the tests of their programs and kernels have in common."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from spinbench import reference
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import PairwiseModel

Relaxed = BlockGibbs | DHMC
FORMS: dict[str, Relaxed] = {
    "block_gibbs/harmonium": BlockGibbs(),
    "block_gibbs/identity": BlockGibbs(form="identity", diagonal="minshift"),
    "block_gibbs/sparse": BlockGibbs(form="sparse"),
    "dhmc/identity": DHMC(),
    "dhmc/harmonium": DHMC(form="harmonium", diagonal="sdp"),
    "dhmc/preconditioned": DHMC(form="preconditioned", diagonal="sdp"),
    "dhmc/sparse": DHMC(form="sparse", diagonal="dd"),
}
# Block Gibbs has no steps; those of DHMC are long here, so that a good part of the proposals is refused.
LONG_STEPS: dict[str, Relaxed] = {
    **{name: form for name, form in FORMS.items() if isinstance(form, BlockGibbs)},
    "dhmc/identity": DHMC(step_size=1.6, leapfrog_steps=3, slack=0.5),
    "dhmc/harmonium": DHMC(form="harmonium", step_size=1.4, leapfrog_steps=3, jitter=0.05),
    "dhmc/preconditioned": DHMC(form="preconditioned", step_size=1.3, leapfrog_steps=3, diagonal="sdp"),
    "dhmc/sparse": DHMC(form="sparse", diagonal="dd", step_size=1.3, leapfrog_steps=3, jitter=0.1),
}


def random_model(n: int, edges: list[tuple[int, int]], seed: int, scale: float = 1.0, **more: Any) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    couplings = scale * rng.normal(size=len(edges))
    return PairwiseModel.from_edges(rng.normal(size=n), np.array(edges).reshape(-1, 2), couplings, **more)


MODELS = {
    "dense": random_model(6, [(i, j) for i in range(6) for j in range(i)], 1, log_constant=-2.0),
    "sparse": random_model(7, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (0, 6)], 2, 1.5),
    "disconnected": random_model(5, [(0, 2), (3, 4)], 3, 2.0),
    "one variable": random_model(1, [], 4),
    "zero couplings": random_model(4, [(0, 1), (1, 2), (2, 3)], 5, 0.0),
    "huge couplings": random_model(4, [(0, 1), (1, 2), (2, 3), (0, 3)], 6, 40.0),
    "huge biases": PairwiseModel.from_edges([800.0, -900.0, 0.3], [(0, 1), (1, 2)], [1.0, 2.0]),
    "groups": random_model(7, [(0, 3), (1, 4), (2, 5), (0, 5), (2, 4)], 7, groups=((4, 0, 1), (3,))),
}
# Without a narrow band.
RING = random_model(40, [(i, (i + 1) % 40) for i in range(40)], 12)


def check(model: PairwiseModel, found: Any, biased: Collection[str] = ()) -> None:
    """Marginals and log Z within four standard errors of enumeration; `biased` estimators of log Z are left out."""
    exact = reference.solve(model, method="enumeration", cache=False)
    gap = np.abs(found.marginals - exact.probabilities)
    assert (gap <= 4 * found.marginals_se + 1e-6).all(), gap / found.marginals_se
    assert found.marginals_se.max() < 0.1
    assert found.log_z_estimates
    for name, (value, error) in found.log_z_estimates.items():
        if name not in biased:
            assert abs(value - exact.log_z) <= 4 * error + 1e-6, name


def check_batches(model: PairwiseModel, kernel: Any, state: Any, chains: int) -> None:
    """The marginals of twenty batches within five standard errors of the exact ones."""
    means, steps = [], 4000 // chains
    for _ in range(20):
        state, seen = kernel.advance(state, steps)
        means.append(seen["p"].mean(axis=1) / steps)
    error = np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
    exact = reference.solve(model, cache=False).probabilities
    assert (np.abs(np.mean(means, axis=0) - exact) <= 5 * error).all()
    assert error.max() < 0.02
