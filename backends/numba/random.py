"""Random numbers for kernels: one SplitMix64 stream a chain, addressed by a counter.

Number k of chain c is mix(start_c + k gamma_c) modulo 2^64, where mix is Stafford's variant 13 of MurmurHash3's
finalizer and gamma_c is odd: the generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014 (figures 16 and 17), with a start and a gamma of its own for every chain, as their `split` would make
them. It passes BigCrush; a chain's period is 2^64; chains do not share segments because their gammas differ.
Numbers have no state but the counter, so that LLVM makes them 8 at a time with AVX-512.

The counter of a step is fixed by the step's index, so that a run does not depend on how it is cut into batches, nor
a chain's numbers on how many chains run beside it. All fills take `keys` from `chain_keys`, a uint64 counter and an
array whose last axis is the chains', and return the counter of the next unused number:

    keys = chain_keys(seed, chains)               # on the host
    counter = fill_uniform(keys, counter, out)    # in compiled code; out (n, C), float32 or float64
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from spinbench.backends.numba.functions import OPTIONS, constant, flat, log, sincos_turns, square_root
from spinbench.backends.numba.memory import address
from spinbench.backends.numba.vector_memory import (
    load_table_vector,
    load_table_words,
    load_uniform_vector,
    store_uniform_vector,
)
from spinbench.backends.numba.vectors import (
    Vector,
    as_float32,
    as_float64,
    constant_of,
    count_up,
    every_second,
    halves,
)

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
HIGH = np.uint64(32)
ULP = np.float64(2.0**-53)
ULP_32 = np.float32(2.0**-24)
TURN_32 = np.float32(2.0**-32)
RADIUS_32 = np.float32(2.0**-31)
HALF, HALF_32 = np.float64(0.5), np.float32(0.5)
MINUS_TWO, MINUS_TWO_32 = np.float64(-2.0), np.float32(-2.0)


def chain_keys(seed: int, chains: int) -> npt.NDArray[np.uint64]:
    """Keys of chains 0 … chains - 1, (2, chains): rows start and gamma. Chain c's does not depend on `chains`."""
    root = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        index = np.arange(1, 2 * chains + 1, dtype=np.uint64) * GOLDEN_GAMMA + root
        start = _mix_array(index[0::2], 30, 27, 31, MULTIPLIER_1, MULTIPLIER_2)
        # mixGamma: MurmurHash3's own constants, odd, and bits that change often enough
        constants = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
        gamma = _mix_array(index[1::2], 33, 33, 33, *constants) | np.uint64(1)
    few = np.bitwise_count(gamma ^ (gamma >> np.uint64(1))) < 24
    gamma[few] ^= np.uint64(0xAAAAAAAAAAAAAAAA)
    return np.stack([start, gamma])


def _mix_array(z: Any, a: int, b: int, c: int, first: np.uint64, second: np.uint64) -> Any:
    z = (z ^ (z >> np.uint64(a))) * first
    z = (z ^ (z >> np.uint64(b))) * second
    return z ^ (z >> np.uint64(c))


@nb.njit(**OPTIONS)
def mix64(z):
    """The hash of a uint64 or of each in a vector."""
    z = (z ^ (z >> SHIFT_1)) * MULTIPLIER_1
    z = (z ^ (z >> SHIFT_2)) * MULTIPLIER_2
    return z ^ (z >> SHIFT_3)


@nb.njit(**OPTIONS)
def hash64(start, gamma, counter):
    """The 64 bits of number `counter` of the stream (start, gamma), all uint64."""
    return mix64(start + gamma * counter)


def _part(target: types.Type, lowest: int, width: int) -> Any:
    """An intrinsic from uint64 to `target`, or between vectors of them: `width` bits from bit `lowest` on, converted.

    Numba would promote 32-bit integers to 64 bits after each operation, which halves the number of vector lanes.
    """

    @intrinsic
    def part(typing_context, z):
        kind = Vector(target, z.lanes) if isinstance(z, Vector) else target

        def generate(context, builder, signature, arguments):
            size = 64 if target == types.float64 else 32
            whole = arguments[0].type
            word = ir.VectorType(ir.IntType(size), whole.count) if isinstance(z, Vector) else ir.IntType(size)
            bits = builder.lshr(arguments[0], constant_of(whole, lowest))
            bits = builder.trunc(bits, word) if size == 32 else bits
            if width < min(size, 64 - lowest):
                bits = builder.and_(bits, constant_of(word, 2**width - 1))
            return bits if target == types.uint32 else builder.sitofp(bits, context.get_value_type(kind))

        return kind(z), generate

    return part


_high53 = _part(types.float64, 11, 53)
_high24 = _part(types.float32, 40, 24)
_low24 = _part(types.float32, 8, 24)
_high31 = _part(types.float32, 33, 31)
_low32_signed = _part(types.float32, 0, 32)
_high32 = _part(types.uint32, 32, 32)
_low32 = _part(types.uint32, 0, 32)


@nb.njit(**OPTIONS)
def uniform(start, gamma, counter):
    """Number `counter` as a float64 multiple of 2^-53 in [0, 1)."""
    return _high53(hash64(start, gamma, counter)) * ULP


@nb.njit(**OPTIONS)
def below(start, gamma, counter, n):
    """Number `counter` as an int64 in 0 … n - 1, n < 2^31; the probabilities differ by less than 2^-32."""
    return np.int64(((hash64(start, gamma, counter) >> HIGH) * np.uint64(n)) >> HIGH)


# Two numbers from hashes `counter` and `counter + half`, or both from the halves of hash `counter`.


@nb.njit(**OPTIONS)
def _bits_pair(start, gamma, counter, half):
    z = hash64(start, gamma, counter)
    return _high32(z), _low32(z)


@nb.njit(**OPTIONS)
def _uniform_pair_32(start, gamma, counter, half):
    z = hash64(start, gamma, counter)
    return _high24(z) * ULP_32, _low24(z) * ULP_32


@nb.njit(**OPTIONS)
def _uniform_pair_64(start, gamma, counter, half):
    return uniform(start, gamma, counter), uniform(start, gamma, counter + half)


@nb.njit(**OPTIONS)
def _normal_pair_32(start, gamma, counter, half):
    """Box-Muller: 31 bits for the radius (at most 6.67), 32 for the angle."""
    z = hash64(start, gamma, counter)
    radius = square_root(MINUS_TWO_32 * log((_high31(z) + HALF_32) * RADIUS_32))
    sine, cosine = sincos_turns(_low32_signed(z) * TURN_32)
    return radius * cosine, radius * sine


@nb.njit(**OPTIONS)
def _normal_pair_64(start, gamma, counter, half):
    """Box-Muller: 53 bits for the radius (at most 8.65), 53 for the angle."""
    radius = square_root(MINUS_TWO * log((_high53(hash64(start, gamma, counter)) + HALF) * ULP))
    sine, cosine = sincos_turns(uniform(start, gamma, counter + half))
    return radius * cosine, radius * sine


FEW_CHAINS = 16
"""Below, vectors run along the numbers of one chain after the other, from there on along the chains."""
UNCOUNTED: Any = {"error_model": "numpy", "_nrt": False}
"""Without reference counts, see `units.KERNEL`. Functions called from there inherit it unless told otherwise."""
COUNTED: Any = UNCOUNTED | {"_nrt": True}
"""For functions that allocate arrays."""


def _make_fill(pair: Any, hashes: int, lanes: tuple[int, ...]) -> Any:
    """Fills by pairs: row i of n gets the first number of a pair, row ceil(n/2) + i the second.

    Two of them: of a matrix (n, C) for many chains, and of a vector (n,) for one. `pair` takes numbers or vectors.
    Vectors over chains are explicit, with as many lanes as the tuple `lanes` has; LLVM makes shorter ones, or none.
    """

    @nb.njit(**UNCOUNTED)
    def fill_one(start, gamma, counter, out):
        n = out.size
        half = (n + 1) // 2
        step = np.uint64(half)
        front, back = out[:half], out[half:]
        for i in range(back.size):
            front[i], back[i] = pair(start, gamma, counter + np.uint64(i), step)
        if n % 2:
            front[half - 1] = pair(start, gamma, counter + np.uint64(half - 1), step)[0]

    @nb.njit(**COUNTED)
    def fill_few(keys, counter, out):
        n, chains = out.shape
        lane = np.empty(n, dtype=out.dtype)
        for c in range(chains):
            fill_one(keys[0, c], keys[1, c], counter, lane)
            for i in range(n):
                out[i, c] = lane[i]

    @nb.njit(**UNCOUNTED)
    def fill_many(keys, counter, out):
        n, chains = out.shape
        half, width = (n + 1) // 2, len(lanes)
        starts, gammas, step = address(keys, 0), address(keys, chains), np.uint64(half)
        for i in range(half):
            first, second, index = address(out, i * chains), address(out, (half + i) * chains), counter + np.uint64(i)
            for c in range(0, chains, width):
                c = min(c, chains - width)  # the last vector makes some numbers anew
                start, gamma = load_table_words(starts, c, lanes), load_table_words(gammas, c, lanes)
                one, other = pair(start, gamma, index, step)
                store_uniform_vector(first, c, one)
                if half + i < n:
                    store_uniform_vector(second, c, other)

    def fill_matrix(keys, counter, out):
        n, chains = out.shape
        if chains == 1:
            fill_one(keys[0, 0], keys[1, 0], counter, flat(out))
        elif chains < FEW_CHAINS:
            fill_few(keys, counter, out)
        else:
            fill_many(keys, counter, out)
        return counter + np.uint64(hashes) * np.uint64((n + 1) // 2)

    def fill_vector(keys, counter, out):
        fill_one(keys[0], keys[1], counter, out)
        return counter + np.uint64(hashes) * np.uint64((out.size + 1) // 2)

    return fill_matrix, fill_vector


@nb.njit(cache=True, **UNCOUNTED)
def fill_bits(keys, counter, out):
    """32 random bits each. `out`: uint32, (n, C) with keys (2, C), or (n,) with keys (2,); the next counter."""
    return _fill_bits(keys, counter, out)


@nb.njit(cache=True, **UNCOUNTED)
def fill_uniform(keys, counter, out):
    """Uniform on [0, 1): 53 bits for float64, 24 for float32. Shapes as `fill_bits`; the next counter."""
    return _fill_uniform(keys, counter, out)


@nb.njit(cache=True, **UNCOUNTED)
def fill_normal(keys, counter, out):
    """Standard normal numbers, float64 or float32. Shapes as `fill_bits`; the next counter."""
    return _fill_normal(keys, counter, out)


def _fill_bits(keys: Any, counter: Any, out: Any) -> Any:
    raise NotImplementedError("compiled code only")


def _fill_uniform(keys: Any, counter: Any, out: Any) -> Any:
    raise NotImplementedError("compiled code only")


def _fill_normal(keys: Any, counter: Any, out: Any) -> Any:
    raise NotImplementedError("compiled code only")


def _overload_fill(stub: Any, pairs: dict[types.Type, tuple[Any, int, tuple[int, ...]]]) -> None:
    """`pairs`: for each element type the arguments of `_make_fill`."""
    fills = {kind: _make_fill(*pair) for kind, pair in pairs.items()}

    @overload(stub, jit_options=UNCOUNTED)
    def choose(keys, counter, out):
        if out.dtype not in fills:
            return None
        matrix, vector = fills[out.dtype]
        return matrix if out.ndim == 2 else vector


_HALF_WORDS, _WHOLE_WORDS = (0,) * 16, (0,) * 8
_overload_fill(_fill_bits, {types.uint32: (_bits_pair, 1, _HALF_WORDS)})
_overload_fill(
    _fill_uniform,
    {types.float32: (_uniform_pair_32, 1, _HALF_WORDS), types.float64: (_uniform_pair_64, 2, _WHOLE_WORDS)},
)
_overload_fill(
    _fill_normal,
    {types.float32: (_normal_pair_32, 1, _HALF_WORDS), types.float64: (_normal_pair_64, 2, _WHOLE_WORDS)},
)


# Numbers of the rows of a sweep, in vectors: multiples of one in [0, SCALE), to be compared with SCALE times a
# probability. Number i of a step is hash `counter + i` in float64; in float32 hash `counter + i // 2`, of which even
# rows take the low half and odd ones the high half.

SCALE = constant(2.0**24, 2.0**53)
"""How many uniform numbers there are."""
INVERSE_SCALE = constant(2.0**-24, 2.0**-53)
SHIFT_32 = np.uint32(8)
SHIFT_64 = np.uint64(11)
ONE_STEP = np.uint64(1)


INLINED: Any = OPTIONS


def row_numbers(start: Any, gamma: Any, counter: Any, row: Any, real: Any) -> Any:
    """The numbers of rows row, row + 1, … (`row` even) of one chain in a vector of the type of `real`."""
    raise NotImplementedError("compiled code only")


def lane_numbers(walk: Any, gammas: Any, saved: Any, chain: Any, odd: Any, real: Any) -> Any:
    """The next row's numbers of chains chain, chain + 1, … in a vector of the type of `real`.

    Args:
        walk: pointer to (C,) uint64, start + counter gamma of each chain; moved on.
        gammas: pointer to (C,) uint64.
        saved: pointer to (C,) uint32, the halves of the hashes of an even row that belong to the odd row after it.
        chain: the first.
        odd: whether the row is odd.
        real: of the type wanted.
    """
    raise NotImplementedError("compiled code only")


@overload(row_numbers, jit_options=INLINED)
def _row_numbers(start, gamma, counter, row, real):
    def single(start, gamma, counter, row, real):
        first = counter + np.uint64(row >> 1)
        words = mix64(count_up(gamma) * gamma + (start + first * gamma))
        return as_float32(halves(words) >> SHIFT_32)

    def double(start, gamma, counter, row, real):
        first = counter + np.uint64(row)
        return as_float64(mix64(count_up(gamma) * gamma + (start + first * gamma)) >> SHIFT_64)

    return single if real == types.float32 else double


@nb.njit(**OPTIONS)
def _walk_on(walk, gammas, chain):
    """The hashes of eight chains."""
    here = load_uniform_vector(walk, chain)
    store_uniform_vector(walk, chain, here + load_table_vector(gammas, chain))
    return mix64(here)


@overload(lane_numbers, jit_options=INLINED)
def _lane_numbers(walk, gammas, saved, chain, odd, real):
    def single(walk, gammas, saved, chain, odd, real):
        if odd:
            words = load_uniform_vector(saved, chain)
        else:
            low = halves(_walk_on(walk, gammas, chain))
            high = halves(_walk_on(walk, gammas, chain + 8))
            store_uniform_vector(saved, chain, every_second(low, high, 1))
            words = every_second(low, high, 0)
        return as_float32(words >> SHIFT_32)

    def double(walk, gammas, saved, chain, odd, real):
        return as_float64(_walk_on(walk, gammas, chain) >> SHIFT_64)

    return single if real == types.float32 else double


@nb.njit(**UNCOUNTED, forceinline=True)
def fill_rows(key, counter, out):
    """Uniform numbers on [0, 1) of rows 0, 1, … of one chain, as `row_numbers`.

    key (2,) uint64; out (n,), n a multiple of 16.
    """
    to = address(out, 0)
    real = out[0]
    for i in range(0, out.size, 64 // out.itemsize):
        u = row_numbers(key[0], key[1], counter, i, real)
        store_uniform_vector(to, i, u * INVERSE_SCALE(u))
