"""Draws from mini-buckets of few entries, which have all the patterns that small wells beside each other make.

In a long chain, a tree or a strip where each stretch may be in either of two wells, a state is a pattern of them, and
no product law has more than one pattern. Weighted mini-buckets sum what is narrow exactly, whatever the wells, and are
a proposal for the rest; of models that are wide everywhere they know next to nothing.

Liu, Fisher and Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.methods.buckets.draws import draw
from spinbench.methods.buckets.layout import lay_out
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.size import logs_of
from spinbench.methods.buckets.tighten import UpperBound
from spinbench.reference.network import FlatFactors
from spinbench.reference.orders.order import candidate_orders, pairs_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LIMIT = 10
"""log2 of the entries of a mini-bucket."""
SPLIT = 2
"""Mini-buckets of a variable, on the average, from which on the proposal is too poor for what it costs."""
PASSES = 10
"""That tighten the bound on the weights."""


def drawn(flat: FactorTables, count: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray] | None:
    """States (N, C) and their log weights (C,), whose mean is Z; None where the proposal would be too poor.

    Args:
        flat: the model.
        count: C.
        rng: of the draws.
    """
    cards = flat.cardinalities
    scopes = [tuple(flat.scope_variables[a:b].tolist()) for a, b in pairwise(flat.scope_starts)]
    order = candidate_orders(cards.tolist(), pairs_of(scopes), tries=1, seed=0, keep=1)[0].order
    place = np.argsort(order)
    along = place[flat.scope_variables]
    factors = FlatFactors(cards[order], flat.scope_starts, along, flat.offsets, flat.values, flat.log_constant)
    cut = partition(logs_of(factors.states.tolist()), factors.scopes(), LIMIT)
    if len(cut.scopes) > SPLIT * len(cards):
        return None
    at = lay_out(factors, cut)
    passes = Passes(at)
    point = UpperBound(at, passes).tighten(PASSES)
    if not np.isfinite(point.value):
        return None
    found = draw(at, point.weights, passes.work.probabilities, passes.work.logs, rng.random((len(cards), count, 1)))
    return found.states[place, :, 0], point.value + found.logs[:, 0]
