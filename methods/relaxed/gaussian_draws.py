"""Draws of the Gaussian of `gaussian_fit`, with their weights.

A step is a draw of each chain. Its weight, relative to the bound, is at most 1 whatever it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Key, Program
from spinbench.methods.relaxed.gaussian_fit import Fit


class State(NamedTuple):
    """Of the last draws. Attributes: log_w (C,) of their weights; p (N, C) p(s_i = 1 | u)."""

    log_w: Array
    p: Array


class Draws:
    """Init, step and observe over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._xp = backend, backend.xp

    def program(self) -> Program:
        """A step knows nothing of those before it; there is nothing to burn in."""
        return Program(self.init, self.step, self.observe, warm=lambda key, t, state: state)

    def init(self, key: Key, t: Fit, start: Array) -> State:
        """Of no draw."""
        none = 0.0 * start
        return State(self._xp.sum(none, axis=0), none)

    def step(self, key: Key, t: Fit, state: State) -> State:
        """A draw of each chain."""
        xp, half = self._xp, t.slopes[:, None] / 2
        u = t.mean[:, None] + t.root @ self._backend.normal(key, state.p.shape)
        over = self._log_cosh(u) - half * u**2 - (self._log_cosh(t.xi) - t.slopes * t.xi**2 / 2)[:, None]
        log_w = xp.sum(over, axis=0)
        return State(xp.where(log_w < 0, log_w, 0.0), self._backend.sigmoid(2 * u))

    def observe(self, t: Fit, state: State) -> dict[str, Array]:
        """The statistics of `GaussianBound.reductions`."""
        xp, some = self._xp, state.p > 0
        rows = xp.where(some, xp.log(xp.where(some, state.p, 1.0)), -xp.inf)
        return {"log_weight": state.log_w, "log_square": 2 * state.log_w, "rows": state.log_w + rows}

    def _log_cosh(self, u: Array) -> Array:
        size = self._xp.abs(u)
        return size + self._xp.log1p(self._xp.exp(-2 * size)) - float(np.log(2))
