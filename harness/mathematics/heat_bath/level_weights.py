"""Weights of states that are a function of their log weight D alone: piecewise linear, or the exponential of such."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from spinbench.api import Array, Backend


class LevelWeights(NamedTuple):
    """A piecewise linear function of D; below the first knot it is constant.

    Attributes:
        first: () the first of the knots, which are equally spaced; width: () between two of them.
        values: (M,) at the knots.
        slope: beyond the last knot.
        logs: whether the function is the logarithm of the weight, or the weight itself.
    """

    first: Array
    width: Array
    values: Array
    slope: float
    logs: bool

    def interpolate(self, backend: Backend, d: Array) -> tuple[Array, Array, Array]:
        """(values, numbers of the knots below, shares of the knots above) at D of any shape."""
        xp, last = backend.xp, self.values.shape[0] - 1
        place = (d - self.first) / self.width
        inside = xp.where(place < 0, 0.0, xp.where(place > last, xp.zeros_like(place) + last, place))
        low = xp.minimum(xp.astype(xp.floor(inside), xp.int32), xp.zeros_like(xp.astype(d, xp.int32)) + (last - 1))
        part = inside - xp.astype(low, d.dtype)
        value = (1 - part) * backend.take(self.values, low) + part * backend.take(self.values, low + 1)
        if self.slope:
            above = d - (self.first + self.width * last)
            value = value + self.slope * xp.where(above > 0, above, 0.0)
        return value, low, part
