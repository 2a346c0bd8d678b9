"""Random numbers for kernels: one SplitMix64 stream a chain, addressed by a counter.

Number k of chain c is mix(start_c + k gamma_c) modulo 2^64, where mix is Stafford's variant 13 of MurmurHash3's
finalizer and gamma_c is odd: the generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014 (figures 16 and 17), with a start and a gamma of its own for every chain, as their `split` would make
them. It passes BigCrush; a chain's period is 2^64; chains do not share segments because their gammas differ.
Numbers have no state but the counter, so that LLVM makes them 8 at a time with AVX-512.

The counter of a step is fixed by the step's index, so that a run does not depend on how it is cut into batches, nor
a chain's numbers on how many chains run beside it. Arrays are filled by `random_fills`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd.formulas import formula
from spinbench.backends.numba.simd.functions import OPTIONS, constant
from spinbench.backends.numba.simd.memory import address, load_vector, store
from spinbench.backends.numba.simd.vector_sums import every_second, halves
from spinbench.backends.numba.simd.vectors import (
    Operation,
    Vector,
    by_types,
    constant_of,
    count_up,
    element,
    intrinsic_of,
)

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
HIGH = np.uint64(32)
ULP = np.float64(2.0**-53)


def chain_keys(seed: int, chains: int) -> npt.NDArray[np.uint64]:
    """Keys of chains 0 … chains - 1, (2, chains): rows start and gamma. Chain c's does not depend on `chains`."""
    root = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        index = np.arange(1, 2 * chains + 1, dtype=np.uint64) * GOLDEN_GAMMA + root
        start = _mix_array(index[0::2], 30, 27, 31, MULTIPLIER_1, MULTIPLIER_2)
        # mixGamma, figure 16 of Steele, Lea and Flood (2014): MurmurHash3's constants, made odd, with at least 24 bit
        # changes between neighbouring bits, since gammas with few changes give weak streams.
        constants = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
        gamma = _mix_array(index[1::2], 33, 33, 33, *constants) | np.uint64(1)
    few = np.bitwise_count(gamma ^ (gamma >> np.uint64(1))) < 24
    gamma[few] ^= np.uint64(0xAAAAAAAAAAAAAAAA)
    return np.stack([start, gamma])


def _mix_array(
    z: npt.NDArray[np.uint64], a: int, b: int, c: int, first: np.uint64, second: np.uint64
) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(a))) * first
    z = (z ^ (z >> np.uint64(b))) * second
    return z ^ (z >> np.uint64(c))


@formula
def mix64(z):
    """The hash of a uint64 or of each in a vector."""
    z = (z ^ (z >> SHIFT_1)) * MULTIPLIER_1
    z = (z ^ (z >> SHIFT_2)) * MULTIPLIER_2
    return z ^ (z >> SHIFT_3)


@formula
def hash64(start, gamma, counter):
    """The 64 bits of number `counter` of the stream (start, gamma), all uint64."""
    return mix64(start + gamma * counter)


def _part(target: types.Type, lowest: int, width: int) -> Operation:
    """An intrinsic from unsigned integers to `target`, or between vectors of them: `width` bits from bit `lowest` on,
    converted.

    Numba would promote 32-bit integers to 64 bits after each operation, which halves the number of vector lanes.
    """

    @intrinsic_of(lambda z: Vector(target, z.lanes) if isinstance(z, Vector) else target)
    def part(emitter, z):
        builder, size, source = emitter.builder, target.bitwidth, element(emitter.typed[0][0]).bitwidth
        int_type = (
            ir.VectorType(ir.IntType(size), z.type.count) if isinstance(z.type, ir.VectorType) else ir.IntType(size)
        )
        bits = builder.lshr(z, constant_of(z.type, lowest))
        bits = builder.trunc(bits, int_type) if size < source else bits
        if width < min(size, source - lowest):
            bits = builder.and_(bits, constant_of(int_type, 2**width - 1))
        # Signed: processors without AVX-512 only convert signed integers, and all parts but `low32_signed` leave the
        # sign bit 0.
        return builder.sitofp(bits, emitter.target)

    return part


high53, high24, low24 = _part(types.float64, 11, 53), _part(types.float32, 40, 24), _part(types.float32, 8, 24)
high31, low32_signed = _part(types.float32, 33, 31), _part(types.float32, 0, 32)


@njit(**OPTIONS)
def uniform(start, gamma, counter):
    """Number `counter` as a float64 multiple of 2^-53 in [0, 1)."""
    return high53(hash64(start, gamma, counter)) * ULP


@njit(**OPTIONS)
def below(start, gamma, counter, n):
    """Number `counter` as an int64 in 0 … n - 1, n < 2^31; the probabilities differ by less than 2^-32."""
    return np.int64(((hash64(start, gamma, counter) >> HIGH) * np.uint64(n)) >> HIGH)


# Uniform numbers of the rows of a sweep, in vectors: integers in [0, SCALE), to be compared with SCALE times a
# probability. Number i of a step is hash `counter + i` in float64; in float32 it is hash `counter + i // 2`, of which
# even rows take the low half and odd rows the high half.

# Number of distinct uniform numbers.
SCALE = constant(2.0**24, 2.0**53)
INVERSE_SCALE = constant(2.0**-24, 2.0**-53)


# Without reference counts, see `relaxed.tiles.ENTRY`.
UNCOUNTED: Options = {"error_model": "numpy", "_nrt": False, "forceinline": True, **CALLEE}


@by_types(**OPTIONS)
def row_numbers(start, gamma, counter, row, real):
    """The numbers of rows row, row + 1, … (`row` even) of one chain in a vector of the type of `real`."""

    # A hash has 64 bits and float32 needs 24: two rows share one.
    def single(start, gamma, counter, row, real):
        first = counter + np.uint64(row >> 1)
        hashes = mix64(count_up(gamma) * gamma + (start + first * gamma))
        return low24(halves(hashes))

    def double(start, gamma, counter, row, real):
        first = counter + np.uint64(row)
        return high53(mix64(count_up(gamma) * gamma + (start + first * gamma)))

    return single if real == types.float32 else double


@njit(**OPTIONS)
def _walk_on(walk, gammas, chain):
    """The hashes of eight chains."""
    counters = load_vector(walk, chain)
    store(walk, chain, counters + load_vector(gammas, chain))
    return mix64(counters)


@by_types(**OPTIONS)
def lane_numbers(walk, gammas, saved, chain, odd, real):
    """The next row's numbers of chains chain, chain + 1, … in a vector of the type of `real`.

    Args:
        walk: pointer to (C,) uint64, start + counter gamma of each chain; moved on.
        gammas: pointer to (C,) uint64.
        saved: pointer to (C,) uint32, the halves of the hashes of an even row that belong to the odd row after it.
        chain: the first.
        odd: whether the row is odd.
        real: of the type wanted.
    """

    def single(walk, gammas, saved, chain, odd, real):
        if odd:
            hashes = load_vector(saved, chain)
        else:
            low = halves(_walk_on(walk, gammas, chain))
            high = halves(_walk_on(walk, gammas, chain + 8))
            store(saved, chain, every_second(low, high, 1))
            hashes = every_second(low, high, 0)
        return low24(hashes)

    def double(walk, gammas, saved, chain, odd, real):
        return high53(_walk_on(walk, gammas, chain))

    return single if real == types.float32 else double


@njit(**UNCOUNTED)
def fill_rows(key, counter, out):
    """Uniform numbers on [0, 1) of rows 0, 1, … of one chain, as `row_numbers`.

    key (2,) uint64; out (n,), n a multiple of 16.
    """
    to = address(out, 0)
    real = out[0]
    for i in range(0, out.size, 64 // out.itemsize):
        u = row_numbers(key[0], key[1], counter, i, real)
        store(to, i, u * INVERSE_SCALE(u))
