"""What the kernels of block Gibbs and DHMC do on the host: before their first step, and where log Z is looked for."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spinbench.api import Backend, PairwiseModel, States
from spinbench.api.kernel import LookingKernel
from spinbench.backends.numba.gibbs.form import Copies
from spinbench.backends.numba.relaxed import factors, tiles
from spinbench.backends.numba.simd import Array, zeros_aligned
from spinbench.mathematics.relaxation import density, estimators
from spinbench.methods.relaxed import block_gibbs, dhmc
from spinbench.methods.relaxed.tables import RelaxedTables, draw_position, normals_per_draw


@dataclass
class TiledState:
    """Chains that lie in tiles: how, and the counter of the next random number."""

    layout: tiles.Layout
    counter: np.uint64


StateT = TypeVar("StateT", bound=TiledState)
# Cost in steps of block Gibbs of a look at copied draws; relative to the longer steps of `dhmc` a look costs less.
LOOK_STEPS = 3


class RelaxedKernel(LookingKernel[RelaxedTables, StateT]):
    """The layout of chains, where they begin, and looks for log Z."""

    def __init__(
        self, method: block_gibbs.BlockGibbs | dhmc.DHMC, backend: Backend, model: PairwiseModel, tables: RelaxedTables
    ) -> None:
        self._real = np.dtype(backend.precision)
        self._method, self._tables = method, tables
        self._has_looks = method.log_z != "none" and len(tables.bias) <= estimators.MAX_VARIABLES
        needed = tables.precision is not None
        self._halves = factors.two_colours(density.Relaxation(model, tables.d).gram) if needed else None

    @abstractmethod
    def sample(self, state: StateT, steps: int, copies: Copies) -> dict[str, Array]:
        """So many steps of the state, their statistics, and copies of `positions` on the way."""

    @abstractmethod
    def positions(self, state: StateT) -> Array:
        """(T, P) or (T, N, L): u or x, all tiles."""

    def advance(self, state: StateT, steps: int) -> tuple[StateT, dict[str, Array]]:
        return state, self.sample(state, steps, self._copies(state.layout, steps + 1, 1, 0))

    def look(self, state: StateT) -> dict[str, Array]:
        # rounded as the tiles are, so that the α of a state does not depend on the batch
        return {"alpha": self._alpha(state.layout.gather(self.positions(state)))} if self._has_looks else {}

    def look_steps(self, state: StateT) -> int:
        return LOOK_STEPS if self._has_looks else 0

    def advance_and_look(
        self, state: StateT, steps: int, first: int, every: int
    ) -> tuple[StateT, dict[str, Array], dict[str, Array]]:
        copies = self._copies(state.layout, first, every, 1 + (steps - first) // every)
        statistics = self.sample(state, steps, copies)
        return state, statistics, {"alpha": self._alpha(state.layout.gather(copies.states))}

    def _copies(self, layout: tiles.Layout, first: int, every: int, count: int) -> Copies:
        return Copies(first, every, zeros_aligned((count, layout.tiles, *layout.shape(layout.n)), np.dtype(np.float64)))

    def _alpha(self, positions: Array) -> Array:
        """(…, N, C) from u or x."""
        return positions - self._tables.bias[:, None]

    def _layout(self, chains: int) -> tiles.Layout:
        n = len(self._tables.bias)
        order = np.arange(n) if self._halves is None else np.concatenate(self._halves[1:])
        return tiles.Layout(chains, self._real, order, n if self._tables.edges is None else min(n, factors.WIDEST_BAND))

    def _first_position(self, seed: int, start: States) -> Array:
        """(N, C): x ~ p(x|s), in float64. That of a chain does not depend on C."""
        rows, chains = normals_per_draw(self._tables), start.shape[1]
        noise = np.random.default_rng([seed, rows]).standard_normal((chains, rows)).T
        # contiguous operands make the rounding of products independent of C
        return np.asarray(draw_position(np, self._tables, start.astype(np.float64), np.ascontiguousarray(noise)))
