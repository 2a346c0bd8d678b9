"""Islands that hard zeros make: a run that has not seen one that weighs is not believed."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.models import FactorGraph

DOUBTED = "marginals not mixed, log Z unresolved"


def two_islands(free: int, share: float) -> FactorGraph:
    """Three equal variables, and others that are free where these are 0 and in one state of three where they are 1.

    Single updates lead from neither to the other; `share` is the weight of the latter, a single state.
    """
    same, tied = np.where(np.eye(2), 0.0, -np.inf), np.zeros((2, 3))
    tied[1, 1:] = -np.inf
    factors = [([i, (i + 1) % 3], same) for i in range(3)] + [([0, 3 + j], tied) for j in range(free)]
    factors.append(([0], np.array([0.0, free * np.log(3) + np.log(share / (1 - share))])))
    return FactorGraph.from_log_tables([2, 2, 2] + [3] * free, factors)


@pytest.mark.parametrize("method", ["gibbs", "blocks"])
@pytest.mark.parametrize("share", [0.3, 1e-9])
def test_chains_of_one_island_are_believed_where_the_other_weighs_nothing(method: str, share: float) -> None:
    model = two_islands(6, share)
    size = {"size": 3} if method == "blocks" else {}
    found = spinbench.run(model, method, "numpy", 200, start=np.zeros((9, 8), dtype=np.int8), **size)
    assert np.max(found.r_hat[3]) < 1.1  # all chains agree
    assert found.status == (DOUBTED if share > 0.1 else "ok")


def test_populations_that_lose_an_island_are_not_believed() -> None:
    """The narrow one has half of the weight at β = 1, and next to none before."""
    model, statuses = two_islands(9, 0.5), []
    for seed in range(6):
        found = spinbench.run(model, "smc", "numpy", 32, chains=8, seed=seed, temperatures=8, particles=8)
        statuses.append(found.status)
        assert found.status == DOUBTED or abs(found.marginals[0][1] - 0.5) < 4 * found.marginals_se[0][1]
    assert DOUBTED in statuses


def test_an_island_that_the_run_has_seen_is_no_reason_to_doubt() -> None:
    found = spinbench.run(two_islands(3, 0.3), "pt", "numpy", 500, chains=8)
    assert found.status == "ok"
    assert abs(found.marginals[0][1] - 0.3) < 4 * found.marginals_se[0][1]
