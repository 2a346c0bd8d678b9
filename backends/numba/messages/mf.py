"""Naive mean field in compiled code: sweeps over the variables in their order, one chain after another.

Of binary pairwise models alone. On others arrays of all chains are swept: on a torus of 400 variables of three states a
call with one chain takes 1.4 times as long as by compiled sums over tables, with 16 chains half, with 100 a third.

What all kernels that iterate towards fixed points share is here, too: chains one after another, each until it has
converged.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from spinbench.api import Backend, Kernel, Model, PairwiseModel, States, Tables
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd import Array
from spinbench.methods.messages import mf
from spinbench.methods.messages.fixed_points import FixedPointMethod, State, statistics


class FixedPointKernel(Kernel[Tables, State]):
    """Float32 and float64; the arrays of a `State` are consumed by `advance`."""

    def __init__(self, method: FixedPointMethod, backend: Backend, tables: Tables) -> None:
        self._tables = tables
        self._real = np.dtype(backend.precision)
        self._tolerance = method.smallest_change(backend.precision)

    @abstractmethod
    def _iterate(self, state: State, c: int, steps: int) -> tuple[int, float]:
        """At most so many iterations of chain c, until it has converged: their number and the last residual."""

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, Array]]:
        for c in range(len(state.residual)):
            # A converged chain is not updated: further sweeps would change it by rounding, and its answer would depend
            # on how long other chains take.
            if not state.converged[c]:
                done, state.residual[c] = self._iterate(state, c, steps)
                state.iterations[c] += done
                state.converged[c] = state.residual[c] <= self._tolerance
        return state, {name: np.array(part) for name, part in self._observe(state).items()}

    @abstractmethod
    def _observe(self, state: State) -> dict[str, Array]:
        """The method's statistics."""


class MFKernel(FixedPointKernel):
    """`MeanField` in raster order. Values of chains are the probabilities (2 N,) of both states of all variables."""

    @classmethod
    def refuses(cls, method: mf.MeanField, backend: Backend, model: Model) -> str:
        if isinstance(model, PairwiseModel) and not model.groups:
            return ""
        return f"compiled sweeps of mean field are of binary pairwise models, which {model.name} is not"

    def __init__(self, method: mf.MeanField, backend: Backend, model: PairwiseModel, tables: mf.Tables) -> None:
        super().__init__(method, backend, tables)
        theta, near = tables.graph.theta, tables.ascent.neighbours
        none = np.zeros((4, len(theta)), dtype=np.int64)
        weights, others, start, degree = near[:4] if near else none
        self._pairs = theta.astype(self._real), start, degree, others, weights.astype(self._real)

    def init(self, seed: int, start: States) -> State:
        q = mf.start_probabilities(self._tables, start.astype(np.float64), np)
        flat = q.reshape(-1, start.shape[1])[self._tables.ascent.states].T
        return State(np.ascontiguousarray(flat, dtype=self._real), *np.zeros((3, len(flat))))

    def _observe(self, state: State) -> dict[str, Array]:
        return statistics("q", state.values.T.astype(np.float64), state)

    def _iterate(self, state: State, c: int, steps: int) -> tuple[int, float]:
        return sweeps(self._pairs, state.values[c], self._tolerance, steps)  # type: ignore[no-any-return]


@njit(cache=True, error_model="numpy")
def sweeps(pairs, q, tolerance, steps):
    """Sweeps until no probability changes much; their number and the last sweep's largest change."""
    theta, start, degree, others, weights = pairs
    change = 0.0
    for step in range(steps):
        change = 0.0
        for v in range(theta.size):
            # E[log f | x_v] of a pair differs between the two states of v by w q(x_u = 1).
            pull = 0.0
            for k in range(start[v], start[v] + degree[v]):
                pull += weights[k] * q[2 * others[k] + 1]
            field = theta[v] + pull
            weight = math.exp(-abs(field))
            # That of the likelier state is 1, so that no exponential overflows.
            p, rest = 1 / (1 + weight), weight / (1 + weight)
            if field < 0:
                p, rest = rest, p
            change = max(change, abs(p - q[2 * v + 1]), abs(rest - q[2 * v]))
            q[2 * v], q[2 * v + 1] = rest, p
        if change <= tolerance:
            return step + 1, change
    return steps, change
