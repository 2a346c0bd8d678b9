"""Scaling of positive numbers, so that products of many stay within the range of float64."""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.exact.options import SHARED


@njit(fastmath={"nnan", "nsz"}, **SHARED)
def widen(part, size, largest, smallest):
    """The largest and the smallest positive number of part[:size] and the two given ones."""
    for i in range(size):
        largest = max(largest, part[i])
        smallest = min(smallest, part[i] if part[i] > 0 else math.inf)
    return largest, smallest


@njit(**SHARED)
def centre(part, size, largest, smallest, drift):
    """Scales part[:size], whose largest and smallest positive numbers are given, so that their logarithms lie around 0;
    zeros stay, and all do where that is so already but for `drift`.

    Returns the log of the divisor and the largest |log| after it; (-inf, 0) if all are zero.
    """
    if largest == 0:
        return -math.inf, 0.0
    high, low = math.log(largest), math.log(smallest)
    middle = (high + low) / 2
    if abs(middle) < drift:
        return 0.0, max(high, -low)
    factor = math.exp(-middle)
    for i in range(size):
        part[i] *= factor
    return middle, (high - low) / 2
