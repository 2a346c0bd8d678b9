"""What the kernels of block Gibbs and DHMC do on the host before their first step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.relaxed.factors import WIDEST_BAND, two_colours
from spinbench.backends.numba.relaxed.tiles import Layout
from spinbench.backends.numba.simd import Array
from spinbench.mathematics.relaxation.density import Relaxation
from spinbench.methods.relaxed.tables import RelaxedTables, draw_position, noise_rows
from spinbench.models import PairwiseModel


class RelaxedKernel(Kernel):
    """The layout of chains, and where they begin."""

    def __init__(self, method: Any, backend: Backend, model: PairwiseModel, tables: RelaxedTables) -> None:
        self._real = np.dtype(backend.precision)
        self._method, self._tables = method, tables
        needed = tables.precision is not None
        self._halves = two_colours(Relaxation(model, tables.d).gram) if needed else None

    def _layout(self, chains: int) -> Layout:
        n = len(self._tables.bias)
        order = np.arange(n) if self._halves is None else np.concatenate(self._halves[1:])
        return Layout(chains, self._real, order, n if self._tables.edges is None else min(n, WIDEST_BAND))

    def _first_position(self, seed: int, start: npt.NDArray[np.int8]) -> Array:
        """(N, C): x ~ p(x|s), in float64. That of a chain does not depend on C."""
        rows, chains = noise_rows(self._tables), start.shape[1]
        noise = np.random.default_rng([seed, rows]).standard_normal((chains, rows)).T
        # products of what is contiguous do not depend on C
        return np.asarray(draw_position(np, self._tables, start.astype(np.float64), np.ascontiguousarray(noise)))
