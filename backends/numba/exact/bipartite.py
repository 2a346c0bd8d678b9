"""Two-layer models in compiled code: products of tables over the states of halves of the smaller layer.

With states h = (high bits, low bits), exp(field_v(h)) is a product of one entry of a table over the high bits and one
of a table over the low bits, so that Π_v (1 + exp(field_v)) takes two multiplications and an addition a state and
variable, and no transcendental function; marginals of the larger layer take a division more, which is the limit. The
innermost loop runs over the low bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from spinbench.backends.numba.kernel_cache import njit
from spinbench.reference.enumeration import Bipartite
from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.solver import PrecisionError, Solver, binary_marginals

_LOW_BITS = 8  # tables over their states stay in the second-level cache
_LARGEST_FIELD = 600.0  # exp of it, and of its negative, are far inside the range of float64
_LEAST = 1e-270  # a sum above it has lost nothing to underflow, since no factor is above 1


class CompiledBipartite(Bipartite):
    """As `Bipartite`, in plain sums of products whose factors are at most 1."""

    backend = "numba"

    def __init__(self, pairwise: Pairwise, summed: IntArray) -> None:
        super().__init__(pairwise, summed)
        self.pairwise = pairwise
        self.seconds = 1e-4 + 2.0**self.width * (len(self.others) + 1) * 1.5e-9

    def memory(self, *, marginals: bool) -> int:
        """Tables over the states of the high bits, and of the low ones."""
        split = min(self.width, _LOW_BITS)
        return 8 * (4 * (1 << self.width - split) + 3 * (1 << split)) * (len(self.others) + self.width + 4)

    def fallbacks(self) -> Iterator[Solver]:
        """The sum in logarithms."""
        yield Bipartite(self.pairwise, self.summed)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """One pass over the states of the smaller layer."""
        reach = np.abs(self.large) + np.abs(self.weights).sum(axis=0)
        if reach.max(initial=0.0) > _LARGEST_FIELD:
            raise PrecisionError("its fields are too strong for plain sums in float64")
        split = min(self.width, _LOW_BITS)
        low, high = _states(split), _states(self.width - split)
        low_field, high_field = low @ self.weights[:split], high @ self.weights[split:] + self.large
        low_weight, high_weight = low @ self.small[:split], high @ self.small[split:]
        largest = np.logaddexp(0.0, high_field + low_field.max(axis=0))  # log(1 + exp(field)) at the given high bits
        bound = high_weight + largest.sum(axis=1)
        ones_high, ones_low, ones_large = np.empty(len(high)), np.empty(len(low)), np.empty(len(self.others))
        total: float = sum_states(
            np.exp(high_field),
            np.ascontiguousarray(np.exp(low_field.T)),
            np.exp(-largest),
            np.exp(bound - bound.max()),
            np.exp(low_weight - low_weight.max()),
            ones_high,
            ones_low,
            ones_large,
            marginals,
        )
        if not total > _LEAST:
            raise PrecisionError("its couplings are too strong for plain sums in float64")
        log_z = self.constant + math.log(total) + float(bound.max() + low_weight.max())
        if not marginals:
            return log_z, None
        ones = np.empty(self.width + len(self.others))
        ones[self.summed] = np.concatenate([ones_low @ low, ones_high @ high]) / total
        ones[self.others] = ones_large / total
        return log_z, binary_marginals(ones)


def _states(bits: int) -> IntArray:
    """(2^bits, bits) all states, the first bit fastest."""
    return np.arange(1 << bits)[:, None] >> np.arange(bits) & 1


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
