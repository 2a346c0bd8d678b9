"""Draws of the Gaussian of `gaussian_fit`, with their weights: the generic program, and a kernel in NumPy.

A step is a draw of each chain. Its weight, relative to the bound, is at most 1 whatever it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Kernel, Key, Program
from spinbench.mathematics.claims import expit
from spinbench.methods.relaxed.gaussian_fit import Fit, log_cosh
from spinbench.models import PairwiseModel


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


@dataclass
class GaussianState:
    """One run: seed, chains and the next step's index."""

    seed: int
    chains: int
    index: int


class GaussianKernel(Kernel):
    """In NumPy, many steps at once. Bound and weights are float64 whatever precision is asked for; draws have it."""

    block: ClassVar[int] = 2**18
    """Numbers that are drawn in one go, about."""

    def __init__(self, method: Any, backend: Backend, model: PairwiseModel, tables: Fit) -> None:
        self._fit, real = tables, np.dtype(backend.precision)
        self._mean, self._root = tables.mean.astype(real)[:, None], tables.root.astype(real)

    def init(self, seed: int, start: np.ndarray) -> GaussianState:
        return GaussianState(seed, start.shape[1], 1)

    def warm(self, state: GaussianState, steps: int) -> GaussianState:
        """There is nothing to forget."""
        return GaussianState(state.seed, state.chains, state.index + steps)

    def advance(self, state: GaussianState, steps: int) -> tuple[GaussianState, dict[str, np.ndarray]]:
        block = max(1, self.block // (max(len(self._fit.xi), 1) * state.chains))
        parts = [self._drawn(state, state.index + k, min(block, steps - k)) for k in range(0, steps, block)]
        found = {name: np.logaddexp.reduce([part[name] for part in parts]) for name in parts[0]}
        return GaussianState(state.seed, state.chains, state.index + steps), found

    def _drawn(self, state: GaussianState, index: int, steps: int) -> dict[str, np.ndarray]:
        """Of so many draws of each chain."""
        at, n, chains = self._fit, len(self._fit.xi), state.chains
        u = self._mean + self._root @ self._normal(state, index, steps)
        u = u.astype(np.float64)
        above = log_cosh(at.xi) - at.slopes * at.xi**2 / 2
        logs = np.minimum((log_cosh(u) - at.slopes[:, None] / 2 * u**2).sum(axis=0) - above.sum(), 0.0)
        each = logs.reshape(steps, chains)
        top = each.max(axis=0)
        shares = np.exp(each - top)
        rows = (shares * expit(2 * u).reshape(n, steps, chains)).sum(axis=1)
        return {
            "log_weight": np.log(shares.sum(axis=0)) + top,
            "log_square": np.log((shares**2).sum(axis=0)) + 2 * top,
            "rows": np.log(np.maximum(rows, 1e-300)) + top,
        }

    def _normal(self, state: GaussianState, index: int, steps: int) -> np.ndarray:
        """(N, steps C) normal numbers, of the precision that is asked for."""
        streams = (np.random.default_rng((state.seed, index + k)) for k in range(steps))
        shape = len(self._fit.xi), state.chains
        return np.concatenate([stream.standard_normal(shape) for stream in streams], axis=1).astype(self._root.dtype)
