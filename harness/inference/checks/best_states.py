"""Bounds on log Z that need no method: what different states weigh together, and what none can weigh more than."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spinbench.api import Bound, Estimate
from spinbench.inference.initial_states import random_start
from spinbench.mathematics import coordinate_ascent, rounding
from spinbench.models import Model, PairwiseModel

BY = "best states"
# Largest number of entries of the draws that are evaluated: on large models a few draws suffice, and more would take
# seconds.
MOST = 2**18

# States that are improved in parallel.
CHAINS = 16


def below(model: Model, states: npt.NDArray[np.integer]) -> Bound:
    """Of (N, S) states, those that are alike counted once, in float64 on the model's tables, rounding taken off."""
    logs = model.log_weight(np.unique(states.T, axis=0))
    top = float(logs.max(initial=-np.inf))
    together = top
    if top > -np.inf:
        together = top + float(np.log(np.exp(logs - top).sum()))
    return Bound(together - rounding.work_of(model).allowance(), "lower", "certified", by=BY)


def by_draws(model: Model, estimate: Estimate) -> Estimate:
    """With what its draws weigh, where it has some of positive weight and log Z is not exact.

    Args:
        model: that the draws are of.
        estimate: of that model, too.
    """
    if estimate.draws is None or estimate.log_z_kind == "exact":
        return estimate
    states = np.asarray(estimate.draws[0])
    bound = below(model, states[:, : max(MOST // max(len(states), 1), 1)])
    if np.isfinite(bound.value):
        return dataclasses.replace(estimate, bounds=(*estimate.bounds, bound))
    return estimate


def bound_above(model: Model) -> Bound:
    """Every factor's largest entry, and as many states as there are."""
    if isinstance(model, PairwiseModel):
        largest = float(np.maximum(model.biases, 0.0).sum() + np.maximum(model.couplings, 0.0).sum())
    else:
        largest = sum(float(factor.log_table.max()) for factor in model.factors)
    states = sum(math.log(card) for card in model.cardinalities)
    slack = rounding.work_of(model).allowance()
    return Bound(model.log_constant + largest + states + slack, "upper", "certified", by="largest entries")


def bounds_below(model: Model, seed: int) -> Iterator[Bound]:
    """Z is at least what different states weigh together, the heavier the better.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        UnsupportedError: none was found.
    """
    # A single state first: with zeros each state is a search that may take all of the time.
    for chains in (1, CHAINS):
        states = random_start(model, chains, seed).astype(np.int64)
        yield below(model, states)
    if isinstance(model, PairwiseModel) and model.groups:
        # One-hot groups are not changed: flipping one unit breaks the group.
        return
    for climbed in coordinate_ascent.ascending(model, states):
        yield below(model, climbed)
