"""Draws of the Gaussian upper bound in compiled code: numbers and weights; the product with the root is BLAS's."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from spinbench.api import Backend
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.simd.functions import exp, log1p
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.backends.numba.simd.random_fills import fill_normal
from spinbench.methods.relaxed.gaussian_draws import GaussianKernel, GaussianState
from spinbench.methods.relaxed.gaussian_fit import Fit, log_cosh
from spinbench.models import PairwiseModel


@nb.njit(**JIT)
def _fill(keys, out):
    fill_normal(keys, np.uint64(0), out)


@nb.njit(**JIT)
def _weigh(u, half, above, log_w, p):
    """Log weights (M,) of draws u (N, M), and p (N, M) of ones."""
    log_w[:] = -above
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            x = np.float64(u[i, j])
            small = exp(-2.0 * abs(x))
            log_w[j] += abs(x) + log1p(small) - half[i] * x * x
            p[i, j] = (1.0 if x > 0.0 else small) / (1.0 + small)
    for j in range(log_w.size):
        log_w[j] = min(log_w[j], 0.0)


@nb.njit(**JIT)
def _add(log_w, p, total, squares, rows, top):
    """Adds draws of C chains one after another, (steps C,) and (N, steps C), to sums relative to e^top, (C,)."""
    chains = total.size
    for c in range(chains):
        highest = -np.inf
        for j in range(c, log_w.size, chains):
            highest = max(highest, log_w[j])
        top[c] = highest
    for j in range(log_w.size):
        c = j % chains
        log_w[j] = exp(log_w[j] - top[c])
        total[c] += log_w[j]
        squares[c] += log_w[j] * log_w[j]
    for i in range(p.shape[0]):
        for j in range(log_w.size):
            rows[i, j % chains] += log_w[j] * p[i, j]


class NumbaGaussianKernel(GaussianKernel):
    """The bound and weights are float64 whatever precision is asked for; draws have it."""

    def __init__(self, method: Any, backend: Backend, model: PairwiseModel, tables: Fit) -> None:
        super().__init__(method, backend, model, tables)
        self._half = tables.slopes / 2
        self._above = float((log_cosh(tables.xi) + np.log(2) - tables.slopes * tables.xi**2 / 2).sum())

    def _drawn(self, state: GaussianState, index: int, steps: int) -> dict[str, np.ndarray]:
        u = self._mean + self._root @ self._normal(state, index, steps)
        n, chains = len(u), state.chains
        log_w, p = np.empty(u.shape[1]), np.empty(u.shape)
        _weigh(u, self._half, self._above, log_w, p)
        total, squares, rows, top = np.zeros(chains), np.zeros(chains), np.zeros((n, chains)), np.empty(chains)
        _add(log_w, p, total, squares, rows, top)
        return {
            "log_weight": np.log(total) + top,
            "log_square": np.log(squares) + 2 * top,
            "rows": np.log(np.maximum(rows, 1e-300)) + top,
        }

    def _normal(self, state: GaussianState, index: int, steps: int) -> np.ndarray:
        """Step k of a chain has the numbers of its stream from k times so many on."""
        n = len(self._fit.xi)
        starts, gammas = chain_keys(state.seed, state.chains)
        numbers = np.arange(index, index + steps, dtype=np.uint64) * np.uint64(n + 2)
        keys = np.empty((2, steps, state.chains), dtype=np.uint64)
        keys[0], keys[1] = starts + gammas * numbers[:, None], gammas
        found = np.empty((n, steps * state.chains), dtype=self._root.dtype)
        _fill(keys.reshape(2, -1), found)
        return found
