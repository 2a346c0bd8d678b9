"""Bounds on moments of the weights w = p* / q under a proposal q, which say what draws may have missed.

States of probability δ under q have at most δ r of p together, where E g(w / Z) = δ g(r) for any convex g >= 0 that is
0 at 1, by Jensen's inequality: here g(r) = r^k - 1 - k (r - 1), whose mean is E w^k / Z^k - 1. Of k = 2 the share is
δ + (δ χ²)^(1/2), and large k are for proposals whose weights vary little. The largest weight alone says next to nothing
where a few states of no account have it. E w^k is the sum of p*^k q^(1 - k), which mini-buckets bound.
"""

from __future__ import annotations

import numpy as np

from spinbench.mathematics.graphs.factor_tables import FactorTables, starts_of
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.methods.baselines.proposals import ForestProposal
from spinbench.methods.buckets.tighten import split_into_mini_buckets
from spinbench.reference.network import FlatFactors

# Orders of moments: low ones say more of proposals that are far off, high ones where weights vary little.
ORDERS = (1.5, 2.0, 3.0, 5.0)
# Largest number of variables, entries of all mini-buckets, about, and passes that tighten a bound: planning takes a few
# tenths of a second, and more would take more than the draws.
MAX_VARIABLES, MAX_ENTRIES, MAX_PASSES = 200, 2.0**17, 4
# Steps towards the root of g(r) = c, from above, so that any number of them gives a bound.
STEPS = 50


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


def bound_missed_share(log_moments: FloatArray, probability: float) -> float:
    """Share of p at most of states that have a probability under q.

    Args:
        log_moments: (K,) log E (w / Z)^k of each of `ORDERS`, at most.
        probability: δ.
    """
    orders = np.array(ORDERS)
    gaps = np.expm1(np.clip(log_moments, 0.0, 500.0)) / probability
    ratios = 1 + 3 * np.maximum(gaps**0.5, gaps ** (1 / orders))
    for _ in range(STEPS):
        ratios = (1 + gaps + orders * (ratios - 1)) ** (1 / orders)
    return float(probability * ratios.min())
