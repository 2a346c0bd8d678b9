"""Gibbs sampling of factor graphs with hard zeros, on many models and seeds: what is vouched for is right, within what
it claims; sets of states that chains do not leave are not vouched for."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError
from spinbench.models import FactorGraph

pytestmark = pytest.mark.calibration


def graph(seed: int, zeros: float) -> FactorGraph:
    """Ten variables of 2 and 3 states in factors of order 1 to 3, of which so many entries are zero."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=10).tolist()
    factors = []
    for _ in range(13):
        scope = rng.permutation(10)[: rng.integers(1, 4)].tolist()
        table = 1.5 * rng.normal(size=[sizes[v] for v in scope])
        table[(rng.random(table.shape) < zeros) & (len(scope) > 1)] = -np.inf
        table.flat[rng.integers(table.size)] = 0.0
        factors.append((scope, table))
    return FactorGraph.from_log_tables(sizes, factors, name=f"{zeros} of zeros, {seed}")


@pytest.mark.parametrize("zeros", [0.0, 0.2, 0.35, 0.5])
def test_what_is_vouched_for_is_right(zeros: float) -> None:
    runs, of_log_z, of_marginals = 0, [], []
    for model in (graph(int(100 * zeros) * 100 + k, zeros) for k in range(14)):
        try:
            exact = spinbench.exact(model, cache=False)
        except ModelError:  # Z = 0
            continue
        for seed in range(5):
            found = spinbench.run(model, "gibbs", "numba", 400, chains=16, seed=seed, checkpoints=1)
            runs += 1
            if found.status != "ok":
                continue
            of_log_z.append((found.log_z - exact.log_z) / max(found.log_z_se, 1e-6))
            apart = np.hstack(found.marginals) - np.hstack(exact.marginals)
            of_marginals.extend(apart / np.maximum(np.hstack(found.marginals_se), 1e-6))
    assert len(of_log_z) > runs / 8
    for z in (of_log_z, of_marginals):
        assert np.sqrt(np.mean(np.square(z))) < 1.5
        assert np.abs(z).max() < 6
