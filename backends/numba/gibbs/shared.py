"""What the compiled code of several forms shares: how it is compiled, pointers, fields, draws and sums."""

from __future__ import annotations

import numba as nb
import numpy as np
from numba import types

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd import (
    BITS,
    INVERSE_SCALE,
    ONE,
    SCALE,
    address,
    constant,
    exp,
    fill_rows,
    intrinsic_of,
    load,
    log,
    log1p,
    sigmoid,
    store,
)

# Fast-math flags allow reordered sums, without which LLVM does not vectorise them.
KERNEL: Options = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
# Options of functions that threads run at once, each on its own chains.
JIT: Options = {**KERNEL, "cache": True, "nogil": True}
# Options of functions that only compiled code calls.
CALLED: Options = {**KERNEL, **CALLEE}
INLINE: Options = {**CALLED, "forceinline": True}
# Inlined by Numba and not by LLVM: LLVM then knows that arrays are the caller's, without which it does not move loads
# past stores.
WRITTEN_OUT: Options = {**KERNEL, "inline": "always"}
# Sweeps that are summed in the kernel's precision before they are added to float64 sums: longer float32 sums would
# drift, and a conversion at every sweep would cost as much as the sums.
FLUSH = 64
# Replaces a uniform number of 0, whose logit is -∞: half of the smallest positive one (24 and 53 bits).
SMALLEST = constant(2.0**-25, 2.0**-54)


@intrinsic_of(lambda pointer: types.int64)
def vector_width(emitter, pointer):
    """Elements of what a pointer points to in a vector of 512 bits; a constant to LLVM, also where this is inlined."""
    return emitter.target(BITS // emitter.typed[0][0].dtype.bitwidth)


@nb.njit(**INLINE)
def whole_vectors(n):
    """n, rounded up to whole vectors."""
    return (n + 15) // 16 * 16


@nb.njit(**INLINE)
def log_add(a, b):
    """log(e^a + e^b)."""
    if a == -np.inf:
        # With two infinities of equal sign log1p(exp(-|a - b|)) would be NaN.
        return b
    return max(a, b) + log1p(exp(-abs(a - b)))


@nb.njit(**INLINE)
def pull(x, f, begin, end, s):
    for e in range(begin, end):
        x += load(f.weights, e) * load(s, load(f.columns, e))
    return x


@nb.njit(**INLINE)
def field(f, i, s):
    """a_i + Σ_j W_ij s_j."""
    return pull(load(f.biases, i), f, load(f.start, i), load(f.start, i + 1), s)


@nb.njit(**INLINE)
def draw(x, u):
    """(which lanes become 1: u < SCALE σ(x), SCALE σ(x)); nothing waits for the division but the sum of p."""
    # Comparing a product avoids waiting for the division, which takes longer than all the rest.
    odds = ONE(x) + exp(-x)
    return u * odds < SCALE(x), SCALE(x) / odds


@nb.njit(**INLINE)
def sum_factor(averaged, real):
    """What a sum of `real`s stands for: p is summed with the factor SCALE, s without."""
    return np.float64(INVERSE_SCALE(real)) if averaged else 1.0


@nb.njit(**INLINE)
def add_recent(recent, sums, factor, count):
    """sums += factor recent, numbers of any type, which become 0; pointers to `count` elements."""
    for k in range(count):
        store(sums, k, load(sums, k) + factor * np.float64(load(recent, k)))
        store(recent, k, 0)


@nb.njit(**INLINE)
def set_walk(keys, counter, walker):
    """The streams of B chains stand at the first number of a sweep; keys (2, B)."""
    for c in range(keys.shape[1]):
        store(walker, c, keys[0, c] + counter * keys[1, c])


@nb.njit(**INLINE)
def draw_thresholds(key, t, u, v, n):
    """v = log(u / (1 - u)) for the uniform numbers u of sweep t, an array of whole vectors, and a pointer v.

    u < 1 / (1 + e^-x) is x > v, which needs no exponential between one row and the next.
    """
    fill_rows(key, np.uint64(t) * np.uint64(n + 1), u)
    numbers = address(u, 0)
    for k in range(n):
        w = load(numbers, k)
        low = SMALLEST(w)
        w = low if w < low else w
        store(v, k, log(w) - log(ONE(w) - w))


@nb.njit(**INLINE)
def end_sweep(done, averaged, x, s, recent, sums, n):
    """Add p or s of all rows, once they are updated with fields x; `done` sweeps were before this one."""
    if averaged:
        for k in range(n):
            store(recent, k, load(recent, k) + sigmoid(load(x, k)))
    else:
        for k in range(n):
            store(recent, k, load(recent, k) + load(s, k))
    if done % FLUSH == FLUSH - 1:
        add_recent(recent, sums, 1.0, n)
