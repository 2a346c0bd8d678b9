"""Probes tell what chains that agree with each other cannot: that there is somewhere else to be."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Climb, Probes
from spinbench.api.trace import Trace
from spinbench.methods.gibbs.probes import count_lost_probes
from spinbench.models import PairwiseModel


def build_trace(levels: list[float]) -> Trace:
    """8 chains that report two probabilities, of which the second goes through `levels`, two steps each."""
    trace = Trace({"p": "sum"})
    for level in levels:
        p = np.full((2, 8), 0.5)
        p[1] = level
        trace.add({"p": 2 * p}, 2)
    return trace


@pytest.mark.parametrize(("far", "lost"), [(0, 0), (1, 0), (2, 2), (24, 24)])
def test_probes_that_no_chain_has_met_are_counted(far: int, lost: int) -> None:
    """One of 24 may be chance; the last 8 of 32 are where the chains began."""
    trace, means = build_trace([0.9, 0.95] * 8), np.full((2, 32), 0.5)
    means[1] = 0.8
    means[1, :far] = 0.6
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (lost, np.inf)


def test_places_that_chains_have_left_are_as_rare_as_chances_to_come_back_were() -> None:
    """8 chains of 32 steps, which took up to 16 to leave: 16 chances."""
    trace, means = build_trace([0.9, 0.95] * 8), np.full((2, 32), 0.5)
    means[1] = 0.8
    means[1, -9:] = 0.6
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (0, 16)


def test_a_chain_must_have_been_there_for_as_long_as_the_probe() -> None:
    """Means of four steps of a chain that goes to and fro are between its ends."""
    trace, means = build_trace([0.1, 0.9] * 8), np.full((2, 16), 0.5)
    means[1] = 0.9
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (0, np.inf)
    trace.probes["p"] = Probes(means, 4, 16, began=False)
    assert count_lost_probes(trace, "p") == (16, np.inf)
    trace.probes["p"] = Probes(means, 4, 16)
    trace.climb = Climb(np.zeros(1), np.zeros((1, 1, 8)))  # chains begin elsewhere then, too
    assert count_lost_probes(trace, "p") == (16, np.inf)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_chains_in_one_of_two_wells_are_not_believed(backend: str) -> None:
    """A ferromagnet whose chains all begin in one well, and stay there: p is 1/2, as half of the probes see."""
    n = 14
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    model = PairwiseModel.from_edges(np.full(n, -(n - 1) / 2), edges, np.ones(len(edges)))
    start = np.zeros((n, 8), dtype=np.int8)
    result = spinbench.run(model, "blocks", backend, 600, size=8, start=start, log_z="none")
    assert result.marginals.max() < 0.1
    assert result.diagnostics["probes_astray"] > 8
    assert result.status == "marginals not mixed"
