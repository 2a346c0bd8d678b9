"""What rounding may do to bounds on log Z, and to errors of means.

A bound is a promise, whatever the backend and the precision of what found it: every method that gives one evaluates its
last point on the host, in float64, on the tables as they are, and states that less, or plus, its allowance.

Tables are prepared (variables summed out, factors merged or split, scales taken out) and bounds evaluated in float64,
in the logarithms of sums of non-negative terms. No step subtracts weights, so that its error is a few units in the last
place of the logarithms at hand: of the finite ones of the model, added up, at most, and the logarithm of the number of
states. The errors of all steps add up.

Where finite weights dwarf the others, none of this leaves anything to say: `models.possible_states` refuses such
models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.checks import largest_finite_magnitude
from spinbench.models.forney.model import FloatArray, ForneyModel

if TYPE_CHECKING:
    import numpy.typing as npt

EPS = float(np.finfo(np.float64).eps)
# Rounding error of one step in units in the last place: some operations of half a unit each, and functions of a few
# units.
UNITS = 16
Precision = Literal["float32", "float64"]


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
    return Work(states + ends + 1, abs(model.log_constant) + sum(map(largest_finite_magnitude, tables)))


def add_rounding(
    errors: FloatArray | list[FloatArray],
    marginals: FloatArray | list[FloatArray],
    model: Model,
    precision: Precision,
) -> FloatArray | list[FloatArray]:
    """Claims of marginals, no finer than the numbers that chains compute with.

    What the factors of a variable add to its states' log weights (a field a_i + Σ_j w_ij s_j) is off by a unit in the
    last place of their terms, and a probability by p(1 - p) times that, beside a unit of its own: of many chains'
    means, whose errors are as small as that, this is what remains.

    Args:
        errors, marginals: (N,), or lists of (K,) arrays.
        model: that was sampled.
        precision: of the chains' states and sums.

    Returns:
        In the layout of `errors`.
    """
    unit = float(np.finfo(precision).eps)
    if isinstance(errors, list):
        parts = zip(errors, marginals, model.reach, strict=True)
        return [np.hypot(error, unit * _remaining(p, reach)) for error, p, reach in parts]
    return np.hypot(errors, unit * _remaining(marginals, model.reach))


def _remaining(marginals: npt.ArrayLike, reach: FloatArray | float) -> FloatArray:
    p = np.clip(np.asarray(marginals, dtype=np.float64), 0.0, 1.0)
    return np.asarray(1.0 + p * (1.0 - p) * reach)


def add_rounding_to_log_z(error: float, log_z: float, model: Model, precision: Precision) -> float:
    """The claim of an estimate of log Z, no finer than the sums of log weights of which chains make it.

    Args:
        error: claimed.
        log_z: the estimate.
        model: that was sampled.
        precision: of the chains' states and sums.
    """
    return float(np.hypot(error, float(np.finfo(precision).eps) * (abs(log_z) + float(model.reach.sum()))))
