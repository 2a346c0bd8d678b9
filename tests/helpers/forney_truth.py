"""Exact Forney models."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def forney_truth():
    """log Z and the marginals of the source's variables of a small Forney model, by all its states."""

    def truth(model):
        x = (np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges)) & 1
        weights = model.log_weight(x)
        log_z = np.logaddexp.reduce(weights)
        p = np.exp(weights - log_z)
        beliefs = []
        for group in model.groups:
            index = x[:, group.edges] @ (1 << np.arange(group.degree - 1, -1, -1))
            beliefs.append(np.stack([np.bincount(row, p, minlength=2**group.degree) for row in index.T]))
        return log_z, model.variable_marginals(beliefs)

    return truth
