"""Philox 4×32-10: four random words for each counter, without any sequence between them.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

# Shape (…) and dtype uint32; the words of a counter or a key broadcast.
Words = jax.Array

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
# Added to the key after each round: the golden ratio and √3 - 1, times 2^32.
KEY_STEPS = 0x9E3779B9, 0xBB67AE85


def philox(counter: tuple[Words, Words, Words, Words], key: Words) -> tuple[Words, Words, Words, Words]:
    """Four words for a counter; key (2,). Needs JAX's 64-bit mode."""
    a, b, c, d = counter
    left, right = key[0], key[1]
    for _ in range(ROUNDS):
        first, second = _wide_product(MULTIPLIERS[0], a), _wide_product(MULTIPLIERS[1], c)
        a, b, c, d = _high(second) ^ b ^ left, _low(second), _high(first) ^ d ^ right, _low(first)
        left, right = left + np.uint32(KEY_STEPS[0]), right + np.uint32(KEY_STEPS[1])
    return a, b, c, d


def _wide_product(factor: int, operands: Words) -> jax.Array:
    """uint64."""
    return operands.astype(jnp.uint64) * np.uint64(factor)


def _high(product: jax.Array) -> Words:
    return (product >> np.uint64(32)).astype(jnp.uint32)


def _low(product: jax.Array) -> Words:
    return product.astype(jnp.uint32)
