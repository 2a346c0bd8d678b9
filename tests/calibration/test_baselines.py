"""The baselines of the literature on random factor graphs: what is vouched for is right, within what it claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.models import FactorGraph

pytestmark = pytest.mark.calibration

MODELS = 60
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "metropolis": (400, {}),
    "zanella": (800, {}),
    "tempered_transitions": (200, {}),
    "multicanonical": (400, {}),
    "importance": (200, {}),
    "rejection": (200, {"proposal": "uniform"}),
    "nested": (40, {}),
}
"""Samples of each of 16 chains, and settings."""
WIDE = {"multicanonical": "what looks tell, or 1.5 over the number of round trips, is claimed for what was not seen"}
"""Whose claims may be wider than their errors, and why."""


def graph(seed: int) -> FactorGraph:
    """Eight variables of 2 and 3 states, factors of order 1 to 3, zeros in every third model."""
    rng = np.random.default_rng(1000 + seed)
    sizes = rng.integers(2, 4, size=8).tolist()
    factors = []
    for _ in range(10):
        scope = rng.permutation(8)[: rng.integers(1, 4)].tolist()
        table = rng.uniform(0.3, 1.0) * rng.normal(size=[sizes[v] for v in scope])
        table[(rng.random(table.shape) < 0.15) & (seed % 3 == 0) & (len(scope) > 1)] = -np.inf
        table.flat[0] = 0.0
        factors.append((scope, table))
    return FactorGraph.from_log_tables(sizes, factors, name=f"random {seed}")


@pytest.mark.parametrize("method", CASES)
def test_what_is_vouched_for_is_right(method: str) -> None:
    samples, settings = CASES[method]
    of_log_z, of_marginals, believed = [], [], 0
    for seed in range(MODELS):
        model = graph(seed)
        exact = spinbench.exact(model, cache=False)
        found = spinbench.run(model, method, "numpy", samples, chains=16, seed=seed, checkpoints=1, **settings)
        if found.status != "ok":
            continue
        believed += 1
        apart = np.hstack(found.marginals) - np.hstack(exact.marginals)
        of_marginals.extend(apart / np.maximum(np.hstack(found.marginals_se), 1e-9))
        if found.log_z is not None and found.log_z_se:
            of_log_z.append((found.log_z - exact.log_z) / found.log_z_se)
    assert believed >= 40
    for name, z in (("marginals", np.array(of_marginals)), ("log Z", np.array(of_log_z))):
        if len(z):
            print(f"{method}, {name}: {believed} of {MODELS} ok, {z.size} numbers, mean {z.mean():+.2f}, ", end="")
            print(f"std {z.std():.2f}, largest {np.abs(z).max():.1f}")
            assert abs(z.mean()) <= 0.3
            assert (0.5 if method in WIDE else 0.75) <= z.std() <= 1.3
            assert np.abs(z).max() <= 6
