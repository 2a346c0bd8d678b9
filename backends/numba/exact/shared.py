"""What kernels of elimination share: how they are compiled, and the scaling of positive numbers, so that products of
many stay within the range of float64.

Most of the time of a first call goes into what LLVM makes of them.
"""

from __future__ import annotations

import math

from numba import njit

from spinbench.backends.numba.kernel_cache import CALLEE, Options

# Options of functions that Python calls. They allocate no arrays, so that references need no counting; they release the
# GIL, since slices run in threads.
CALLED: Options = {"cache": True, "error_model": "numpy", "_nrt": False, "nogil": True}
# Options of functions that several kernels call.
SHARED: Options = {"error_model": "numpy", "_nrt": False, **CALLEE}
# Options of functions that one kernel calls in one place: inlining them here keeps LLVM from optimising them twice.
ONCE: Options = {"error_model": "numpy", "inline": "always"}


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
    # Scaling is a pass over memory: a large message is only scaled once it has drifted from 1.
    if abs(middle) < drift:
        return 0.0, max(high, -low)
    factor = math.exp(-middle)
    for i in range(size):
        part[i] *= factor
    return middle, (high - low) / 2
