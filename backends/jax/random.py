"""Counter-based random numbers: number i of a key is a hash of (key, i), without any sequence between numbers.

XLA fuses the hash into what uses the numbers and vectorises it; on a CPU it is several times faster than the
Threefry of `jax.random`. Keys are two 32-bit words, k and l. Number i is

    m(m(i xor k) + l),     m: xor-shift 16, multiply 0x21f0aaad, xor-shift 15, multiply 0xd35a2d97, xor-shift 15,

m being the 32-bit finalizer of least known avalanche bias (Wellons and TheIronBorn, "hash-prospector"). For one key
that is a permutation of the 32-bit words; two keys share a stretch of numbers only if their l are equal and their
k close. Folding hashes with another finalizer, so that no key is a number of its parent.

The numbers are not cryptographic. tests/backends/jax/test_random.py holds what was tested.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from spinbench.api import Index

# A key has shape (2,) and dtype uint32.
Key = jax.Array

# 2^32 over the golden ratio: spreads the keys that are folded from one key.
SIBLING = 0x9E3779B9
# Coefficients of sin(π/4 √z) / √z and cos(π/4 √z) on 0 <= z <= 1, by bytes of the type; errors 2e-9 and 6e-16.
# fmt: off
SINE = {
    4: (0.7853981609766183, -0.08074543470810158, 0.0024900068014925836, -3.5954290725115357e-05),
    8: (0.7853981633974485, -0.08074551218829275, 0.002490394570326135, -3.6576204741781536e-05,
        3.1336274730620067e-07, -1.758150704387975e-09, 7.210993706913931e-12),
}
COSINE = {
    4: (0.9999999999524891, -0.30842513515828135, 0.015854325228403916, -0.0003259385858800123, 3.529797104073023e-06),
    8: (0.9999999999999998, -0.30842513753401957, 0.015854344243519974, -0.00032599188553561476,
        3.5908573785548015e-06, -2.4607942350485246e-08, 1.1314682524243835e-10),
}
# fmt: on
LEFT, RIGHT = np.uint32(0x243F6A88), np.uint32(0xB7E15162)


def new_key(seed: int) -> Key:
    """From a non-negative integer of any size."""
    return jnp.asarray(np.random.SeedSequence(seed).generate_state(2, np.uint32))


def fold_in(key: Key, index: Index) -> Key:
    """A key for each integer; the keys of different integers below 2^32 differ."""
    number = jnp.asarray(index)
    low = number.astype(jnp.uint32)
    high = (number >> 32).astype(jnp.uint32) if number.dtype.itemsize == 8 else jnp.zeros_like(low)
    k, el = key[0], key[1]
    left = _stir(_stir((low ^ k) + LEFT) + el) + high
    right = _stir(_stir((low ^ el) + RIGHT) ^ k) + _stir(high ^ RIGHT)
    return jnp.stack([_stir(left ^ right), _stir(right)])


def bits(key: Key, shape: tuple[int, ...]) -> jax.Array:
    """uint32."""
    index = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return _mix(_mix(index ^ key[0]) + key[1])


def uniform(key: Key, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> jax.Array:
    """[0, 1): multiples of 2^-24 (float32) or 2^-53 (float64)."""
    high = bits(key, shape)
    if dtype.itemsize == 4:
        return (high >> 8).astype(dtype) * np.float32(2.0**-24)
    low = bits(_sibling(key, 1), shape)
    return ((high >> 5).astype(dtype) * 2.0**26 + (low >> 6).astype(dtype)) * 2.0**-53


def normal(key: Key, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> jax.Array:
    """Standard normal by Box and Muller's method; at most 6.7 (float32) or 8.7 (float64) in size.

    XLA's cosine is slow on a CPU, and so is whatever would use both numbers of a pair. The cosine of an angle in
    the first quadrant, with a random sign, needs two short polynomials: cos(π/4 + φ) = (cos φ - sin φ) / √2.
    """
    first, second = bits(key, shape), bits(_sibling(key, 1), shape)
    if dtype.itemsize == 4:
        radius = ((first >> 1).astype(dtype) + np.float32(0.5)) * np.float32(2.0**-31)
        # Bit 0 of `second` is already used as the sign; half a unit makes the angle symmetric about 0.
        turn = ((second >> 1).astype(dtype) + np.float32(0.5)) * np.float32(2.0**-30) - 1
    else:
        low, low_angle = bits(_sibling(key, 2), shape), bits(_sibling(key, 3), shape)
        radius = ((first >> 6).astype(dtype) * 2.0**26 + (low >> 6).astype(dtype) + 0.5) * 2.0**-52
        turn = ((second >> 1).astype(dtype) * 2.0**21 + (low_angle >> 11).astype(dtype) + 0.5) * 2.0**-51 - 1
    length = jnp.sqrt(-jnp.log(radius))
    square = turn * turn
    point = _polynomial(COSINE[dtype.itemsize], square) - turn * _polynomial(SINE[dtype.itemsize], square)
    return jnp.where(second & 1 == 0, length, -length) * point


def _sibling(key: Key, number: int) -> Key:
    return key ^ jnp.asarray([0, number * SIBLING % 2**32], dtype=jnp.uint32)


def _polynomial(coefficients: tuple[float, ...], z: jax.Array) -> jax.Array:
    value = jnp.full_like(z, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * z + c
    return value


def _mix(x: jax.Array) -> jax.Array:
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def _stir(x: jax.Array) -> jax.Array:
    """Another finalizer of the same source."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)
