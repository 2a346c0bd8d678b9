"""Bounds on moments of the weights w = p* / q under a proposal q, which say what draws may have missed.

States of probability at most δ under q weigh no more than (E w^k)^(1/k) δ^(1 - 1/k) together, by Hölder's inequality,
for any k; the largest weight, k = ∞, gives the same for proposals whose weights vary little, and says next to nothing
where a few states of no account have large ones. E w^k is the sum of p*^k q^(1 - k), which mini-buckets bound.
"""

from __future__ import annotations

import numpy as np

from spinbench.mathematics.graphs.factor_tables import FactorTables, starts_of
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.methods.baselines.proposals import ForestProposal
from spinbench.methods.buckets.tighten import split_into_mini_buckets
from spinbench.reference.network import FlatFactors

ORDERS = (2.0, 3.0, 4.0, 8.0)
# Largest number of variables, entries of all mini-buckets, about, and passes that tighten a bound: planning takes a few
# tenths of a second, and more would take more than the draws.
MAX_VARIABLES, MAX_ENTRIES, MAX_PASSES = 200, 2.0**17, 4


def bound_moments(model: FactorTables, proposal: ForestProposal) -> FloatArray:
    """(K,) log E w^k at most, of each of `ORDERS`, without the model's constant; infinite where nothing is known."""
    scopes = [[v] if parent < 0 else [parent, v] for v, parent in enumerate(proposal.parents)]
    starts, sizes = (starts_of(np.array(list(map(len, each)))) for each in (scopes, map(np.ravel, proposal.logs)))
    log_q = np.concatenate([table.ravel() for table in proposal.logs])
    bounds = np.full(len(ORDERS), np.inf)
    if len(scopes) > MAX_VARIABLES:
        return bounds
    for number, order in enumerate(ORDERS):
        factors = FlatFactors(
            model.cardinalities,
            np.append(model.scope_starts, model.scope_starts[-1] + starts[1:]),
            np.append(model.scope_variables, np.concatenate(scopes)),
            np.append(model.offsets, model.offsets[-1] + sizes[1:]),
            np.append(order * model.values, (1 - order) * log_q),
            0.0,
        )
        split = split_into_mini_buckets(factors, np.log2(MAX_ENTRIES / len(scopes)))
        if split is None:
            break
        bounds[number] = np.nan_to_num(split.bound.tighten(MAX_PASSES).value, nan=np.inf, posinf=np.inf)
    return bounds
