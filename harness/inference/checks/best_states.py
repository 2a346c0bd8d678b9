"""What different states weigh together: a lower bound on log Z wherever states are at hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.api.bounds import Bound
from spinbench.mathematics.rounding import work_of
from spinbench.models import Model

BY = "best states"
MOST = 2**18
"""Entries of the draws that are weighed: of large models a few suffice, and more would take seconds."""


def below(model: Model, states: npt.NDArray[np.integer[Any]]) -> Bound:
    """Of (N, S) states, those that are alike counted once, in float64 on the model's tables, rounding taken off."""
    logs = model.log_weight(np.unique(states.T, axis=0))
    top = float(logs.max(initial=-np.inf))
    together = top + float(np.log(np.exp(logs - top).sum())) if top > -np.inf else top
    return Bound(together - work_of(model).allowance(), "lower", "certified", by=BY)


def by_draws(model: Model, said: Estimate) -> Estimate:
    """With what its draws weigh, where it has some of positive weight and log Z is not exact.

    Args:
        model: that the draws are of.
        said: of that model, too.
    """
    if said.draws is None or said.log_z_kind == "exact":
        return said
    states = np.asarray(said.draws[0])
    bound = below(model, states[:, : max(MOST // max(len(states), 1), 1)])
    return dataclasses.replace(said, bounds=(*said.bounds, bound)) if np.isfinite(bound.value) else said
