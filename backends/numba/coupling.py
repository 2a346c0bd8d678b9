"""Coupled Gibbs sweeps, compiled whatever the backend; `spinbench.methods.gibbs.coupling` says what for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np

from spinbench.api.coupling import Coupling
from spinbench.backends.numba import NumbaBackend
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.gibbs.coupling import CoupledPairs, start_coupled_pairs
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import Model


class GibbsCoupling(Coupling[CoupledPairs]):
    """By the maximal coupling of conditionals."""

    name = Gibbs.name
    backends = (NumbaBackend.name, "numpy")

    def __init__(self, model: Model, scan: str) -> None:
        # The constructor sets the folder of compiled code before any kernel is loaded.
        NumbaBackend()
        from spinbench.backends.numba.tables.coupled import advance

        self._sweep, self._tables = advance, factor_tables(model)
        self._order = sweep_order(self._tables, cast('Literal["chromatic", "raster"]', scan))[0]

    def start(self, seed: Sequence[int], x: np.ndarray, y: np.ndarray) -> CoupledPairs:
        return start_coupled_pairs(seed, x, y)

    def advance(self, pairs: CoupledPairs, lag: int, first: int, last: int) -> None:
        self._sweep(self._tables, self._order, pairs, lag, first, last)
