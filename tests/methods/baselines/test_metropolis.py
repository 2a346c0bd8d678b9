"""Metropolis sampling of factor graphs: its steps are those of the papers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from small_graphs import bound

from spinbench.methods.baselines.metropolis import Metropolis, Proposal
from spinbench.models import FactorGraph


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("p", [np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.7])], ids=["three", "two"])
@pytest.mark.parametrize("proposal", ["uniform", "metropolised_gibbs"])
def test_outcomes_are_those_of_the_papers(proposal: Proposal, p: npt.NDArray[np.float64], backend: str) -> None:
    """One step of one variable, with its transition probabilities by hand."""
    model = FactorGraph.from_log_tables([len(p)], [([0], np.log(p))])
    engine = bound(model, backend, Metropolis(proposal, marginals="empirical"))[1]
    for k in range(len(p)):
        _, statistics = engine.advance(engine.init(4, np.full((1, 20000), k, dtype=np.int8)), 1)
        if proposal == "uniform":
            expected = np.minimum(1, p / p[k]) / (len(p) - 1)
        else:
            expected = p / (1 - p[k]) * np.minimum(1, (1 - p[k]) / (1 - p))
        expected[k] = 0.0
        expected[k] = 1 - expected.sum()
        error = np.sqrt(expected * (1 - expected) / 20000)
        frequencies = (
            statistics["s"].mean(axis=1) if len(p) > 2 else [1 - statistics["s"].mean(), statistics["s"].mean()]
        )
        np.testing.assert_array_less(np.abs(frequencies - expected), 4.5 * error + 1e-9)
