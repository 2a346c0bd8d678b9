"""Draws of units given their fields, and the probabilities of draws, over a backend's arrays; see `updates`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spinbench.mathematics.graphs.sweep_layouts import Block

if TYPE_CHECKING:
    from spinbench.api import Array, Backend


class Draws:
    """Of binary variables and 1-of-K groups, with uniform numbers u."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def of_block(self, block: Block, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of the block's rows, (n, C)."""
        if block.biases.ndim == 1:
            p = self._backend.sigmoid(x)
            return p, self._as_real(u < p)
        groups = block.biases.shape[1]
        off = self._xp.full_like(block.biases[0, :], -math.inf)[:, None]
        p, drawn = self._draw_member(x, off, u[:groups, :])
        return self._xp.reshape(p, u.shape), self._xp.reshape(drawn, u.shape)

    def of_units(self, absent: Array, off: Array, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of members x (K, …) with uniforms u (…); `absent` (K, …) and `off` (…) are None without groups."""
        if absent is None:
            p = self._backend.sigmoid(x)
            return p, self._as_real(u < p)
        p, drawn = self._draw_member(x + absent, off, u)
        repeats = absent < 0  # a repeated member is the first
        return self._xp.where(repeats, p[:1, ...], p), self._xp.where(repeats, drawn[:1, ...], drawn)

    def log_probability(self, absent: Array, off: Array, x: Array, target: Array) -> Array:
        """(…) log p(unit's members = target | rest), members x and `target` (K, …)."""
        xp = self._xp
        if absent is None:
            away = (1 - 2 * target[0, ...]) * x[0, ...]
            return -xp.log1p(xp.exp(-xp.abs(away))) - xp.maximum(away, xp.zeros_like(away))
        x = x + absent
        top = xp.maximum(xp.max(x, axis=0), xp.zeros_like(x[0, ...]) + off)
        total = xp.sum(xp.exp(x - top), axis=0) + xp.exp(off - top)
        there = xp.where(absent < 0, 0.0, target)
        chosen = xp.sum(xp.where(there > 0, x, 0.0), axis=0)  # 0 is the log weight of a binary variable at 0
        return chosen - top - xp.log(total)

    def _draw_member(self, x: Array, off: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of members x (K, …) with uniforms u (…): one of them is 1, or none with log weight `off` (…)."""
        xp = self._xp
        top = xp.maximum(xp.max(x, axis=0), xp.zeros_like(x[0, ...]) + off)
        weights = xp.exp(x - top)
        p = weights / (xp.sum(weights, axis=0) + xp.exp(off - top))
        # u falls into [Σ_{l > k} p_l, Σ_{l >= k} p_l) for member k; member 0 of a group takes what rounding leaves.
        upper = xp.flip(xp.cumulative_sum(xp.flip(p, axis=0), axis=0), axis=0)
        lower = xp.concat([upper[1:, ...], xp.zeros_like(upper[:1, ...])], axis=0)
        first = xp.where(off < 0, xp.inf, upper[:1, ...])
        upper = xp.concat([first, upper[1:, ...]], axis=0)
        return p, self._as_real((u >= lower) & (u < upper))

    def _as_real(self, mask: Array) -> Array:
        return self._xp.astype(mask, self._backend.real)
