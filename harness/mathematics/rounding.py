"""What rounding may do to a bound on log Z, so that bounds can be stated with it taken off, or added.

A bound is a promise, whatever the backend and the precision of what found it: every method that gives one evaluates its
last point on the host, in float64, on the tables as they are, and states that less, or plus, its allowance.

Tables are prepared (variables summed out, factors merged or split, scales taken out) and bounds evaluated in float64,
in the logarithms of sums of non-negative terms. No step subtracts weights, so that its error is a few units in the last
place of the logarithms at hand: of the finite ones of the model, added up, at most, and the logarithm of the number of
states. The errors of all steps add up.

Where finite weights dwarf the others, none of this leaves anything to say: `models.magnitudes` refuses such models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.models import FactorGraph, PairwiseModel
from spinbench.models.checks import largest
from spinbench.models.forney.model import ForneyModel

EPS = float(np.finfo(np.float64).eps)
UNITS = 16
"""In the last place that one step may cost: some operations of half a unit each, and functions of a few."""


class Work(NamedTuple):
    """What is at stake in a computation of log Z.

    Attributes:
        steps: states of all variables and ends of all factors, each of them summed or put in its place once or so.
        magnitude: Σ of the largest finite |log weight| of every factor.
    """

    steps: int
    magnitude: float

    def allowance(self, further: float = 0.0) -> float:
        """Nats by which a bound may be off; `further` magnitude is that of the method's own numbers."""
        return UNITS * EPS * self.steps * (self.magnitude + further + self.steps)


def work_of(model: PairwiseModel | FactorGraph | ForneyModel) -> Work:
    """Of computations that go over the model's tables a bounded number of times."""
    if isinstance(model, PairwiseModel):
        sizes = np.abs(model.biases).sum() + np.abs(model.couplings).sum()
        return Work(3 * model.num_variables + 2 * len(model.couplings) + 1, float(sizes + abs(model.log_constant)))
    if isinstance(model, ForneyModel):
        tables, states = model.log_tables, 2 * model.num_edges
    else:
        tables, states = tuple(factor.log_table for factor in model.factors), sum(model.cardinalities)
    ends = sum(table.ndim + 1 for table in tables)
    return Work(states + ends + 1, abs(model.log_constant) + sum(map(largest, tables)))
