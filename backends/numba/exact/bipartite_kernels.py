"""Compiled sum over the states of the smaller layer of a two-layer model (`spinbench.reference.bipartite`).

With states h = (high bits, low bits), exp(field_v(h)) is a product of one entry of a table over the high bits and one
of a table over the low bits, so that Π_v (1 + exp(field_v)) takes two multiplications and an addition a state and
variable, and no transcendental function; marginals of the larger layer take a division more, which is the limit. The
innermost loop runs over the low bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench.backends.numba.kernel_cache import njit

OPTIONS: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp"}}


@njit(cache=True, **OPTIONS)
def sum_states(high, low, scale, high_weight, low_weight, ones_high, ones_low, ones_large, marginals):
    """Sums over all states of the smaller layer.

    Args:
        high, low: (H, V), (V, L) exp of the parts of the fields; their products are finite.
        scale: (H, V) factors that make each 1 + exp(field) at most 1.
        high_weight, low_weight: (H,), (L,) weights of the states themselves, scaled.
        ones_high, ones_low, ones_large: (H,), (L,), (V,) get the sums of the weights of the states of the high and of
            the low bits, and of the larger layer's P(v = 1 | h).

    Returns:
        The sum.
    """
    large, count = low.shape
    weight = np.empty(count)
    ones_low[:] = 0.0
    ones_large[:] = 0.0
    total = 0.0
    for j in range(high_weight.size):
        for k in range(count):
            weight[k] = low_weight[k] * high_weight[j]
        for v in range(large):
            one, first, row = scale[j, v], high[j, v] * scale[j, v], low[v]
            for k in range(count):
                weight[k] *= one + first * row[k]
        here = 0.0
        for k in range(count):
            ones_low[k] += weight[k]
            here += weight[k]
        ones_high[j] = here
        total += here
        if marginals and here > 0:
            _add_large(weight, high[j], low, ones_large)
    return total


@njit(cache=True, **OPTIONS)
def _add_large(weight, high, low, ones_large):
    """Adds weight · P(v = 1 | h) over the states of the low bits, at one state of the high ones."""
    for v in range(high.size):
        first, row, share = high[v], low[v], 0.0
        for k in range(weight.size):
            odds = first * row[k]
            share += weight[k] * (odds / (1.0 + odds))
        ones_large[v] += share
