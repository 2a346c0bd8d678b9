"""Compiled sum over the states of the smaller layer of a two-layer model (`spinbench.reference.bipartite`).

With states h = (high bits, low bits), exp(field_v(h)) is a product of one entry of a table over the high bits and one
of a table over the low bits, so that Π_v (1 + exp(field_v)) takes two multiplications and an addition a state and
variable, and no transcendental function; marginals of the larger layer take a division more, which is the limit. The
innermost loop runs over the low bits.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp"})
def sum_states(high, low, scale, high_weight, low_weight, weight, ones_high, ones_low, ones_large, marginals):
    """Sums over all states of the smaller layer.

    Args:
        high, low: (H, V), (V, L) exp of the parts of the fields; their products are finite.
        scale: (H, V) factors that make each 1 + exp(field) at most 1.
        high_weight, low_weight: (H,), (L,) weights of the states themselves, scaled.
        weight: (L,) work.
        ones_high, ones_low, ones_large: (H,), (L,), (V,) get the sums of the weights of the states of the high and of
            the low bits, and of the larger layer's P(v = 1 | h).

    Returns:
        The sum.
    """
    large, count = low.shape
    total = 0.0
    for k in range(count):
        ones_low[k] = 0.0
    for v in range(large):
        ones_large[v] = 0.0
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
            for v in range(large):
                first, row, share = high[j, v], low[v], 0.0
                for k in range(count):
                    odds = first * row[k]
                    share += weight[k] * (odds / (1.0 + odds))
                ones_large[v] += share
    return total
