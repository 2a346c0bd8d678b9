"""What kernels that iterate towards fixed points share: chains one after another, each until it has converged."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from spinbench.api import Backend, Kernel, Tables
from spinbench.backends.numba.simd import Array
from spinbench.methods.messages.fixed_points import FixedPointMethod, State


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
