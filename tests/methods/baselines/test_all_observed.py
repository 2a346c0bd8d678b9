"""Models without factors, as those are of which all is observed."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.models import FactorGraph, condition, generators
from spinbench.testing.laws.cases import potts

METHODS = ("importance", "metropolis", "multicanonical", "rejection", "tempered_transitions", "zanella")


@pytest.mark.parametrize("name", METHODS)
def test_all_is_known_of_what_is_all_observed(name: str) -> None:
    pairs = generators.grid(2, 2, seed=1)
    graph = potts()
    for model, states in ((pairs, [1, 0, 1, 1]), (graph, [2, 0, 1])):
        observed = condition(model, dict(enumerate(states)))
        found = spinbench.run(observed, name, "numpy", 32, chains=4, simplify=isinstance(model, FactorGraph))
        if name not in ("metropolis", "zanella"):  # these know nothing of log Z
            assert found.log_z == pytest.approx(float(model.log_weight(np.array([states]))[0]), abs=1e-9)
        flat = np.hstack(found.marginals)
        sizes = [1] * 4 if model is pairs else model.cardinalities
        expected = (
            states if model is pairs else np.concatenate([np.eye(k)[s] for k, s in zip(sizes, states, strict=True)])
        )
        assert flat == pytest.approx(np.array(expected))
