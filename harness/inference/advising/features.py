"""Features of a model that are cheap to compute and tell which methods suit it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.models import Model
from spinbench.models.simplification import compute_simplification
from spinbench.reference.network import FlatFactors
from spinbench.reference.orders.order import MANY, first_order, hopeless_order
from spinbench.reference.problem import Problem

FloatArray = npt.NDArray[np.float64]
NAMES = (
    *("log2_variables", "log2_degree", "log2_states", "order"),
    *("zeros", "log2_entries", "log2_coupling", "log2_field"),
)
# Largest log2 of table entries along an elimination order: models with more are out of reach alike.
MAX_LOG2_ENTRIES = 50.0
# Smallest mean coupling or field, in nats: below it a model is as good as independent, whatever the logarithm says.
WEAKEST = 0.01


def features(model: Model) -> FloatArray:
    """(F,) by `NAMES`, of what its simplification leaves.

    Couplings and fields are half the range of a table's finite entries, fields of one variable, couplings of several.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    problem = Problem(compute_simplification(model).model)
    flat, pairs, pairwise = problem.flat, problem.pairs, problem.pairwise_view
    orders, size = np.diff(flat.start), max(len(flat.states), 1)
    halves = _half_ranges(flat)
    fields, couplings = halves[orders == 1], halves[orders > 1]
    if pairwise is not None:
        fields, couplings = np.abs(pairwise.fields), np.abs(pairwise.couplings) / 4
    return np.array(
        [
            np.log2(size),
            np.log2(1 + 2 * len(pairs) / size),
            np.log2(flat.states).mean() if len(flat.states) else 1.0,
            orders.max(initial=1),
            np.isneginf(flat.values).mean() if len(flat.values) else 0.0,
            _log2_entries(problem),
            np.log2(max(couplings.sum() / max(len(couplings), 1), WEAKEST)),
            np.log2(max(fields.sum() / size, WEAKEST)),
        ]
    )


def _log2_entries(problem: Problem) -> float:
    """log2 of the table entries along a quick elimination order, at most `MAX_LOG2_ENTRIES`."""
    cards, pairs = problem.cardinalities, problem.pairs
    if len(cards) > MANY:
        return MAX_LOG2_ENTRIES
    order = hopeless_order(cards, pairs, MAX_LOG2_ENTRIES) or first_order(cards, pairs)
    return min(order.log2_total, MAX_LOG2_ENTRIES)


def _half_ranges(flat: FlatFactors) -> FloatArray:
    """(T,) half the difference between the largest and the smallest finite entry of each table."""
    if not len(flat.values):
        return np.zeros(0)
    finite = np.isfinite(flat.values)
    high = np.maximum.reduceat(np.where(finite, flat.values, -np.inf), flat.offset[:-1])
    low = np.minimum.reduceat(np.where(finite, flat.values, np.inf), flat.offset[:-1])
    return np.where(np.isfinite(high), high - low, 0.0) / 2
