"""What several forms share: how they are compiled, fields, draws and sums, chains in blocks, and threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
from numba import types

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd import (
    BITS,
    INVERSE_SCALE,
    LINE,
    ONE,
    SCALE,
    Array,
    address,
    chain_keys,
    constant,
    empty_aligned,
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

WORD = np.dtype(np.uint64)
# Vectors of chains that are advanced together: enough to hide the latency of instructions, few enough for the cache.
BLOCK_VECTORS = 4


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


def by_chain(values: Array, chains: int) -> Array:
    """(M, C) in memory of their own, from (K, M, B) or (C, M)."""
    rows_by_chain = values.swapaxes(0, 1).copy()
    return rows_by_chain.reshape(len(rows_by_chain), -1)[:, :chains]


def row_keys(seed: int, states: Array) -> Array:
    """(C, 2) uint64 for states (N, C)."""
    return chain_keys(seed, states.shape[1]).T.copy()


def block_keys(seed: int, blocks: int, size: int) -> Array:
    """(K, 2, B) uint64, of K B streams."""
    return in_blocks(chain_keys(seed, blocks * size), blocks, size)


def keys_after(keys: Array, steps: Array, variables: int) -> Array:
    """(L K, 2, B) whose numbers at step 0 are those of `keys` (K, 2, B) after steps (L,) of one number a variable, and
    one more."""
    moved = empty_aligned((len(steps), *keys.shape), keys.dtype)
    moved[:] = keys
    counters = steps.astype(WORD) * WORD.type(variables + 1)
    # Number k of a stream is mix(start + k gamma), so that advancing a stream is adding k gamma. A step takes one
    # number per variable and one more (see `run_lanes`).
    moved[:, :, 0] += counters[:, None, None] * keys[:, 1]
    return moved.reshape(-1, *keys.shape[1:])


def lane_blocks(chains: int, kind: np.dtype[np.number]) -> tuple[int, int]:
    """(blocks, chains of a block), where vectors hold numbers of a kind."""
    lanes = LINE // kind.itemsize
    # Blocks of equal size: 80 float32 chains make two blocks of three vectors rather than one of four and one of one.
    vectors = -(-chains // lanes)
    blocks = -(-vectors // BLOCK_VECTORS)
    return blocks, -(-vectors // blocks) * lanes


def in_blocks(values: Array, blocks: int, size: int) -> Array:
    """(K, …, B) from (…, C)."""
    blocked = empty_aligned((blocks, *values.shape[:-1], size), values.dtype)
    # Idle lanes run as well: all-zero states might meet hard zeros, copies of the first chain do not.
    idle = np.repeat(values[..., :1], blocks * size - values.shape[-1], axis=-1)
    whole = np.concatenate([values, idle], axis=-1)
    blocked[:] = np.moveaxis(whole.reshape(*values.shape[:-1], blocks, size), -2, 0)
    return blocked


def run_in_threads(run: Callable[[slice], None], count: int, threads: int) -> None:
    """`run` for parts of `count` chains, or blocks of them, one for each of so many threads."""
    threads = min(threads, count)
    if threads == 1:
        run(slice(0, count))
        return
    cuts = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        # Reading the results raises here whatever a thread raised.
        list(pool.map(run, map(slice, cuts, cuts[1:])))
