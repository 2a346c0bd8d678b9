"""Arrays of random numbers, from the streams of `random`.

All take keys, a uint64 counter and a contiguous array, and return the counter of the next unused number: keys
(2,) from `random.chain_keys` and out (n,) for one chain, keys (2, C) and out (n, C) for many, whole vectors of them
(16 in float32, 8 in float64). Numbers come in pairs, so
that row i of n gets the first of a pair and row ceil(n/2) + i the second.

    counter = fill_uniform(keys, counter, out)    # in compiled code

What limits them: a hash takes 9 cycles of AVX-512's multiplier and shifters for 8 chains or counters, and the
logarithm, the root and the sines of a pair of normal numbers about 60 operations on vectors. Vectors are explicit and
full, since LLVM leaves such loops in single precision scalar or takes half vectors: where n is no multiple of the
lanes, the last vector makes some numbers again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import types

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd.formulas import formula_pair
from spinbench.backends.numba.simd.functions import HALF, constant, log, sincos_turns, smaller, square_root
from spinbench.backends.numba.simd.memory import address, load_lanes, store
from spinbench.backends.numba.simd.random import (
    INVERSE_SCALE,
    high24,
    high31,
    high53,
    low24,
    low32_signed,
    mix64,
)
from spinbench.backends.numba.simd.vector_sums import in_lanes
from spinbench.backends.numba.simd.vectors import Operation, by_types, count_up

TURN = constant(2.0**-32)
RADIUS = constant(2.0**-31)
MINUS_TWO = constant(-2.0)
# Without reference counts, see `relaxed.tiles.ENTRY`. Functions that these call inherit the option.
_INNER: Options = {"error_model": "numpy", "_nrt": False, **CALLEE}

# Pairs of numbers from places z and z + far of a stream, or from the two halves of the hash at z.


@partial(formula_pair, of=types.float32)
def _uniform_pair_32(z, far):
    z = mix64(z)
    first, second = high24(z), low24(z)
    return first * INVERSE_SCALE(first), second * INVERSE_SCALE(second)


@partial(formula_pair, of=types.float64)
def _uniform_pair_64(z, far):
    first, second = high53(mix64(z)), high53(mix64(z + far))
    return first * INVERSE_SCALE(first), second * INVERSE_SCALE(second)


@partial(formula_pair, of=types.float32)
def _normal_pair_32(z, far):
    """Box-Muller: 31 bits for the radius (at most 6.67), 32 for the angle."""
    z = mix64(z)
    first, second = high31(z), low32_signed(z)
    # Half a unit is added, so that log 0 cannot occur.
    radius = square_root(MINUS_TWO(first) * log((first + HALF(first)) * RADIUS(first)))
    sine, cosine = sincos_turns(second * TURN(second))
    return radius * cosine, radius * sine


@partial(formula_pair, of=types.float64)
def _normal_pair_64(z, far):
    """Box-Muller: 53 bits for the radius (at most 8.65), 53 for the angle."""
    first, second = high53(mix64(z)), high53(mix64(z + far))
    radius = square_root(MINUS_TWO(first) * log((first + HALF(first)) * INVERSE_SCALE(first)))
    sine, cosine = sincos_turns(second * INVERSE_SCALE(second))
    return radius * cosine, radius * sine


def _make_fill(pair: Operation, hashes: int, lanes: tuple[int, ...]) -> tuple[Fill, Fill]:
    """(fill of a matrix, fill of a vector); `lanes`: a tuple with as many entries as vectors have lanes."""

    def fill_vector(keys, counter, out):
        n, width = out.size, len(lanes)
        half, back = (n + 1) // 2, n // 2
        start, gamma, to = keys[0], keys[1], address(out, 0)
        far, z = gamma * np.uint64(half), start + gamma * counter
        if back >= width:
            ramp = count_up(in_lanes(gamma, lanes)) * gamma
            for i in range(0, back, width):
                # The last vector overlaps the one before: the same numbers are written twice, and no scalar loop is
                # compiled.
                i = smaller(i, back - width)
                first, other = pair(z + gamma * np.uint64(i) + ramp, far)
                store(to, i, first)
                store(to, half + i, other)
        else:
            for i in range(back):
                out[i], out[half + i] = pair(z + gamma * np.uint64(i), far)
        if n % 2:
            out[back] = pair(z + gamma * np.uint64(back), far)[0]
        return counter + np.uint64(hashes) * np.uint64(half)

    def fill_matrix(keys, counter, out):
        n, chains = out.shape
        half, back = (n + 1) // 2, n // 2
        starts, gammas, to = address(keys, 0), address(keys, chains), address(out, 0)
        for c in range(0, chains, len(lanes)):
            gamma = load_lanes(gammas, c, lanes)
            z, far = load_lanes(starts, c, lanes) + gamma * counter, gamma * np.uint64(half)
            for i in range(half):
                first, other = pair(z, far)
                store(to, i * chains + c, first)
                if i < back:
                    store(to, (half + i) * chains + c, other)
                z = z + gamma
        return counter + np.uint64(hashes) * np.uint64(half)

    return fill_matrix, fill_vector


Fill = Callable[..., np.uint64]


def _choose_fill(pairs: dict[types.Type, tuple[Operation, int, tuple[int, ...]]]) -> Fill:
    """`pairs`: for each element type the arguments of `_make_fill`."""
    fills = {kind: _make_fill(*pair) for kind, pair in pairs.items()}

    @by_types(**_INNER)
    def fill(keys, counter, out):
        return fills.get(out.dtype, (None, None))[out.ndim == 1]

    return fill


_SINGLE, _DOUBLE = (0,) * 16, (0,) * 8
# fill_uniform(keys, counter, out): uniform on [0, 1), 53 bits in float64 and 24 in float32; returns the next counter.
fill_uniform = _choose_fill(
    {types.float32: (_uniform_pair_32, 1, _SINGLE), types.float64: (_uniform_pair_64, 2, _DOUBLE)}
)
# fill_normal(keys, counter, out): standard normal, float64 or float32; returns the next counter.
fill_normal = _choose_fill({types.float32: (_normal_pair_32, 1, _SINGLE), types.float64: (_normal_pair_64, 2, _DOUBLE)})
