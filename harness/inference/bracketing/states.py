"""Bounds on log Z that need no method: what a few heavy states weigh, and what no state can weigh more than."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.inference.probing.weighed import below as weighed
from spinbench.inference.starts import random_start
from spinbench.mathematics.coordinate_ascent import ascending
from spinbench.mathematics.rounding import work_of
from spinbench.models import Model, PairwiseModel

CHAINS = 16


def above(model: Model) -> Bound:
    """Every factor's largest entry, and as many states as there are."""
    if isinstance(model, PairwiseModel):
        most = float(np.maximum(model.biases, 0.0).sum() + np.maximum(model.couplings, 0.0).sum())
    else:
        most = sum(float(factor.log_table.max()) for factor in model.factors)
    states = sum(math.log(card) for card in model.cardinalities)
    slack = work_of(model).allowance()
    return Bound(model.log_constant + most + states + slack, "upper", "certified", by="largest entries")


def below(model: Model, seed: int) -> Iterator[Bound]:
    """Z is at least what different states weigh together, the heavier the better.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        UnsupportedError: none was found.
    """
    for chains in (1, CHAINS):  # where there are zeros, each is a search
        states = random_start(model, chains, seed).astype(np.int64)
        yield weighed(model, states)
    if isinstance(model, PairwiseModel) and model.groups:
        return  # a change of one unit breaks a group
    for climbed in ascending(model, states):
        yield weighed(model, climbed)
