"""Heat-bath sweeps of 32 chains a word, all in operations on bits.

Where few neighbours leave few levels, a level's p(s_i = 1 | rest) is a threshold of 32 bits. It is compared with one
random number of each chain, bit by bit of 32 chains at once, at each level; the neighbours' states then select. Only
the `PLANES` highest bits of a random number are the chain's own. Those below are one number of the word, and added to
its thresholds before they are cut: each chain's law is exact to 2^-32, and of two chains of a word the covariance at
an update is at most 4^-(PLANES + 1), or p 2^-PLANES where p is smaller than 2^-PLANES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spinbench.backends.jax.packed_layout import Colour
from spinbench.backends.jax.philox import philox

# uint32 (n, W) of rows, 32 chains a word; (n, L) of levels.
Words = jax.Array
# uint32 (n, L, T), p 2^32 of each level at each of T inverse temperatures, each of which so many words in turn have.
Thresholds = jax.Array
# SUM (N, G, W) of rows, of groups of the chains of a word; or anything else of rows that `Observe` gives.
Sums = jax.Array
# From the first row of a colour and its shape (n, W), a number that the chains of a word share, and `PLANES` bits of
# each chain's own, the highest first.
Draw = Callable[[int, tuple[int, int]], Sequence[Words]]
# From a colour's levels, their digits and its new states (n, W).
Observe = Callable[["Thresholds | Acceptance", Sequence[Words], Words], Sums]

# Bits of a chain's own, and one more number of the word: twelve words, three counters of Philox.
PLANES = 11
COUNTERS = 3
# Fraction bits of p, in thresholds and in sums, which are not rounded.
FRACTION_BITS = 32
SUM = np.uint64


class Acceptance(NamedTuple):
    """Levels of a colour for Metropolis' rule.

    Attributes:
        accepted: thresholds of min(p, 1 - p) / max(p, 1 - p), for leaving the state that weighs more.
        preferred: (n, L) of that state, all ones or zeros; it is entered whenever it is proposed.
        heat_bath: thresholds of p.
    """

    accepted: Thresholds
    preferred: Words
    heat_bath: Thresholds


def thresholds(fields: jax.Array, beta: jax.Array, bits: int = 32) -> Thresholds:
    """p of fields (n, L) times beta () or (T,); see `round_to_thresholds`."""
    return round_to_thresholds(1 / (1 + jnp.exp(-jnp.atleast_1d(beta) * fields[:, :, None])), bits)


def acceptance(fields: jax.Array) -> Acceptance:
    """Of fields (n, L)."""
    accepted = round_to_thresholds(jnp.exp(-jnp.abs(fields[:, :, None])))
    return Acceptance(accepted, _spread_bool(fields > 0), thresholds(fields, jnp.ones(1)))


def round_to_thresholds(p: jax.Array, bits: int = 32) -> Thresholds:
    """Multiples of 2^(32 - bits), p = 1 - 2^-bits at most; of float32 p, which have 24 bits, the largest number below
    2^bits that there is."""
    largest = np.nextafter(p.dtype.type(2.0**bits), p.dtype.type(0))
    rounded = jnp.minimum(jnp.rint(p * 2.0**bits), np.floor(largest)).astype(jnp.uint32)
    return rounded << np.uint32(32 - bits)


def draw_philox(key: jax.Array, index: jax.Array, low: int, shape: tuple[int, int]) -> list[Words]:
    """Numbers of sweep number `index` of a run, for `Draw`. Needs JAX's 64-bit mode."""
    rows = low + lax.broadcasted_iota(jnp.uint32, (shape[0], 1), 0)
    columns = lax.broadcasted_iota(jnp.uint32, (1, shape[1]), 1)
    numbers: list[Words] = []
    for draw in range(COUNTERS):
        numbers += philox((rows, columns, index.astype(jnp.uint32), jnp.full((1, 1), draw, jnp.uint32)), key)
    return numbers


def sweep(
    draw: Draw,
    colours: Sequence[Colour],
    levels: Sequence[Thresholds | Acceptance],
    packed_states: Words,
    sums: Sums | None = None,
    observe: Observe | None = None,
) -> tuple[Words, Sums | None]:
    """States (N + 1, W) after a sweep, and sums (N, G, W) with what is observed of each row, where that is asked for.
    The last row of states is of zeros; colours are in row order."""
    low = 0
    for colour, at_levels in zip(colours, levels, strict=True):
        rows = colour.neighbours.shape[1]
        high = low + rows
        digits = level_digits(colour, packed_states)
        states = update_states(at_levels, digits, draw(low, (rows, packed_states.shape[1])), packed_states[low:high])
        packed_states = lax.dynamic_update_slice_in_dim(packed_states, states, low, 0)
        if sums is not None and observe is not None:
            total = sums[low:high] + observe(at_levels, digits, states)
            sums = lax.dynamic_update_slice_in_dim(sums, total, low, 0)
        low = high
    return packed_states, sums


def level_digits(colour: Colour, packed_states: Words) -> list[Words]:
    """The binary digits of the rows' levels, the lowest first."""
    near = [packed_states[rows] for rows in colour.neighbours]
    if colour.flips is None:
        return near
    digits: list[Words] = []
    for count, (states, flip) in enumerate(zip(near, colour.flips, strict=True)):
        carry = states ^ flip
        for place in range(len(digits)):
            digits[place], carry = digits[place] ^ carry, digits[place] & carry
        # After 2^k neighbours for the first time a sum may have k + 1 digits.
        if count & (count + 1) == 0:
            digits.append(carry)
    return digits


def update_states(
    levels: Thresholds | Acceptance, digits: Sequence[Words], numbers: Sequence[Words], states: Words
) -> Words:
    """New states of rows, by the heat bath or by Metropolis' rule, from what `Draw` gives and their states (n, W)."""
    if not isinstance(levels, Acceptance):
        return draw_states(levels, digits, numbers[0], numbers[1:])
    accepted = draw_states(levels.accepted, digits, numbers[0], numbers[1:])
    preferred = _select(jnp.split(levels.preferred, levels.preferred.shape[1], axis=1), digits)
    return states ^ (accepted | (states ^ preferred))


def draw_states(threshold: Thresholds, digits: Sequence[Words], shared: Words, planes: Sequence[Words]) -> Words:
    """New states of rows, from a number that the chains of a word share, and bits of their own, the highest first."""
    dither, complements = shared >> np.uint32(PLANES), [~plane for plane in planes]
    states = []
    for level in range(threshold.shape[1]):
        rounded = _by_word(threshold[:, level], dither.shape[1]) + dither
        below = jnp.zeros_like(rounded)
        for plane in reversed(range(PLANES)):
            bit = _spread_top_bit(rounded << np.uint32(plane))
            # Of three bits the majority: threshold and complement differ from each other, or decide.
            below = (complements[plane] & bit) | ((complements[plane] ^ bit) & below)
        # A sum beyond 32 bits is a threshold that no number reaches.
        states.append(below | _spread_bool(rounded < dither))
    return _select(states, digits)


def sum_conditionals(levels: Thresholds | Acceptance, digits: Sequence[Words], masks: jax.Array) -> Sums:
    """(n, G, W) of p 2^`FRACTION_BITS` over the chains of masks (G, W), at one temperature."""
    threshold = levels.heat_bath if isinstance(levels, Acceptance) else levels
    at_level = [masks[None]]
    for digit in digits:
        of_digit = digit[:, None, :]
        at_level = [mask & ~of_digit for mask in at_level] + [mask & of_digit for mask in at_level]
    total: Sums = jnp.zeros((), dtype=SUM)
    for level in range(threshold.shape[1]):
        p = threshold[:, level, :, None].astype(SUM)
        total = total + lax.population_count(at_level[level]).astype(SUM) * p
    return total


def count_ones(packed_states: Words, masks: jax.Array) -> Sums:
    """(n, G, W) of states times 2^`FRACTION_BITS` over the chains of masks (G, W)."""
    return lax.population_count(packed_states[:, None, :] & masks).astype(SUM) << SUM(FRACTION_BITS)


def fold_columns(sums: Sums, groups: int) -> Sums:
    """(N, U) sums of V columns, v as part of group v % U, from (N, G, W)."""
    flat = sums.reshape(len(sums), -1)
    turns = -(-flat.shape[1] // groups)
    return jnp.pad(flat, ((0, 0), (0, turns * groups - flat.shape[1]))).reshape(len(flat), turns, groups).sum(axis=1)


def unpack(packed_states: Words, bits: jax.Array) -> jax.Array:
    """(N, B W) states 0 and 1 of the chains in bits (B,) of states (N, W), in the order of chains."""
    states = (packed_states[:, None, :] >> bits[:, None]) & np.uint32(1)
    return states.reshape(len(packed_states), -1)


def _by_word(values: jax.Array, width: int) -> jax.Array:
    """(n, W), or (n, 1) where it broadcasts, from (n, T): each for so many words in turn."""
    count = values.shape[1]
    return values if count == 1 else jnp.repeat(values, width // count, axis=1)


def _select(values: list[Words], digits: Sequence[Words]) -> Words:
    """Of one value a level, that whose binary digits are these; levels beyond the last do not occur."""
    for digit in digits:
        chosen = [(low & ~digit) | (high & digit) for low, high in zip(values[::2], values[1::2], strict=False)]
        values = chosen + values[len(chosen) * 2 :]
    return values[0]


def _spread_top_bit(packed_states: Words) -> Words:
    """All ones where the highest bit is 1, else zeros."""
    signed = lax.bitcast_convert_type(packed_states, jnp.int32)
    return lax.bitcast_convert_type(lax.shift_right_arithmetic(signed, jnp.int32(31)), jnp.uint32)


def _spread_bool(flags: jax.Array) -> Words:
    return np.uint32(0) - flags.astype(jnp.uint32)
