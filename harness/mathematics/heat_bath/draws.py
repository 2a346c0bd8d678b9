"""Draws of binary variables given their fields, and their probabilities, over a backend's arrays; see `updates`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinbench.api import Array, Backend


class Draws:
    """Of fields x and uniform numbers u of one shape."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def draw(self, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s): p(s = 1 | rest), and states drawn from it."""
        p = self._backend.sigmoid(x)
        return p, self._xp.astype(u < p, self._backend.real)

    def log_probability(self, x: Array, target: Array) -> Array:
        """log p(s = target | rest)."""
        xp = self._xp
        away = (1 - 2 * target) * x
        return -xp.log1p(xp.exp(-xp.abs(away))) - xp.maximum(away, xp.zeros_like(away))
