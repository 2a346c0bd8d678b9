"""Importance and rejection sampling in compiled code, draw by draw."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.simd.functions import OPTIONS
from spinbench.backends.numba.simd.random import chain_keys, uniform
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.baselines.draws import Layers, Tables
from spinbench.methods.baselines.weighted import Rejection, Weighted
from spinbench.models import Model

Array = npt.NDArray[Any]

_RAISE = 40.0
"""Nats by which a weight may pass the one that sums are relative to, before they are scaled anew."""


class Law(NamedTuple):
    """The proposal, its variables in the order in which they are drawn.

    Attributes:
        rows, parents: (N,) variables, and their parents or -1.
        passed, logs: (N, K, K) as of `draws.Layers`.
    """

    rows: Array
    parents: Array
    passed: Array
    logs: Array


class Weights(NamedTuple):
    """The model's factors, as of `FactorTables`; firsts: (N,) where each variable's states begin among all states;
    most: the largest log weight of a draw."""

    values: Array
    offsets: Array
    scope_starts: Array
    scope_variables: Array
    scope_strides: Array
    firsts: Array
    most: float


class Sums(NamedTuple):
    """What is written of each chain.

    Attributes:
        weights: (C, 3) what sums are relative to, Σ w, Σ w².
        states: (C, S) of all states of all variables Σ w of draws with it, or how many of those accepted have it.
        accepted: (C,) draws.
    """

    weights: Array
    states: Array
    accepted: Array


@nb.njit(cache=True, error_model="numpy", nogil=True)
def run(law, model, keys, numbers, rejects, sums):
    """Of steps numbers[0] … numbers[1] - 1, each of numbers[2] draws, of each chain; keys (2, C).

    Of those of a step that would be accepted the first is.
    """
    first, end, tries = numbers
    n = len(law.rows)
    x = np.zeros(n, np.int64)
    for chain in range(keys.shape[1]):
        start, gamma = keys[0, chain], keys[1, chain]
        scale, total, squares = -np.inf, 0.0, 0.0
        for step in range(first, end):
            kept = False
            for one in range(tries):
                counter = (np.uint64(step) * np.uint64(tries) + np.uint64(one)) * np.uint64(n + 1)
                log = _log_weight(model, x, _drawn(law, start, gamma, counter, x))
                if log == -np.inf:
                    continue
                if scale == -np.inf:
                    scale = log
                elif log > scale + _RAISE:
                    factor = math.exp(scale - log)
                    total, squares, scale = total * factor, squares * factor * factor, log
                    if not rejects:
                        for s in range(sums.states.shape[1]):
                            sums.states[chain, s] *= factor
                weight = math.exp(log - scale)
                total += weight
                squares += weight * weight
                if not rejects:
                    _count(model, x, weight, sums.states[chain])
                elif not kept and uniform(start, gamma, counter + np.uint64(n)) < math.exp(log - model.most):
                    kept = True
                    sums.accepted[chain] += 1.0
                    _count(model, x, 1.0, sums.states[chain])
        sums.weights[chain, 0], sums.weights[chain, 1], sums.weights[chain, 2] = scale, total, squares


@nb.njit(**OPTIONS)
def _drawn(law, start, gamma, counter, x):
    """A draw into x, from the roots on; its log q."""
    total = law.logs.dtype.type(0)
    for k in range(len(law.rows)):
        parent = law.parents[k]
        above = x[parent] if parent >= 0 else 0
        u, state = uniform(start, gamma, counter + np.uint64(k)), 0
        while u >= law.passed[k, above, state]:
            state += 1
        while state > 0 and law.logs[k, above, state] == -np.inf:  # where rounding left something of a sum of 1
            state -= 1
        x[law.rows[k]] = state
        total += law.logs[k, above, state]
    return total


@nb.njit(**OPTIONS)
def _log_weight(model, x, log_q):
    """Of state x, less the model's constant."""
    total = -log_q
    for f in range(len(model.offsets) - 1):
        place = model.offsets[f]
        for k in range(model.scope_starts[f], model.scope_starts[f + 1]):
            place += x[model.scope_variables[k]] * model.scope_strides[k]
        total += model.values[place]
    return total


@nb.njit(**OPTIONS)
def _count(model, x, weight, states):
    for v in range(len(x)):
        states[model.firsts[v] + x[v]] += weight


@dataclass(frozen=True)
class Drawn:
    """One run: the keys (2, C) of its chains, and the index of the next step."""

    keys: Array
    index: int


class WeightedKernel(Kernel):
    """Sums are float64; proposal and weights have the precision that is asked for."""

    def __init__(self, method: Weighted, backend: Backend, model: Model, tables: Tables) -> None:
        real = np.dtype(backend.precision)
        factors = factor_tables(model)
        cards = factors.cardinalities
        self._law = _flat(tables.layers, len(cards), real)
        self._weights = Weights(
            factors.values.astype(real),
            factors.offsets,
            factors.scope_starts,
            factors.scope_variables,
            factors.scope_strides,
            np.cumsum(cards) - cards,
            float(tables.bounds[1]),
        )
        self._reported = self._weights.firsts[tables.variables] + tables.states
        self._states, self._tries = int(cards.sum()), int(tables.tries)
        self._rejects = isinstance(method, Rejection)

    def init(self, seed: int, start: np.ndarray) -> Drawn:
        return Drawn(chain_keys(seed, start.shape[1]), 0)

    def warm(self, state: Drawn, steps: int) -> Drawn:
        """There is nothing to burn in."""
        return replace(state, index=state.index + steps)

    def advance(self, state: Drawn, steps: int) -> tuple[Drawn, dict[str, np.ndarray]]:
        chains, end = state.keys.shape[1], state.index + steps
        sums = Sums(np.zeros((chains, 3)), np.zeros((chains, self._states)), np.zeros(chains))
        run(self._law, self._weights, state.keys, (state.index, end, self._tries), self._rejects, sums)
        scale, total, squares = sums.weights.T
        tried = np.log(self._tries)
        with np.errstate(divide="ignore"):
            shift = np.where(scale > -np.inf, scale, 0.0)
            found = {"z": np.log(total) + shift - tried, "square": np.log(squares) + 2 * shift - tried}
            states = sums.states[:, self._reported].T
            if self._rejects:
                found |= {"s": states, "kept": sums.accepted}
            else:
                found["p"] = np.log(states) + shift
        return replace(state, index=end), found


def _flat(layers: Layers, n: int, real: np.dtype[Any]) -> Law:
    rows, parents = layers.rows.ravel(), layers.parents.ravel()
    there = rows < n
    above = np.where(parents[there] < n, parents[there], -1)
    most = layers.logs.shape[-1]
    passed, logs = (part.reshape(-1, most, most)[there].astype(real) for part in (layers.passed, layers.logs))
    return Law(rows[there].astype(np.int64), above.astype(np.int64), passed, logs)
