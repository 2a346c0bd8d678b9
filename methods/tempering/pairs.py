"""Replicas of binary pairwise models: Gibbs sweeps over a backend's arrays, each chain at a β of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Scan,
    Sweep,
    chosen_tables,
    layout,
)
from spinbench.mathematics.heat_bath.draws import Draws
from spinbench.mathematics.heat_bath.fields import Fields
from spinbench.mathematics.heat_bath.tiles import Tiles, in_tiles
from spinbench.mathematics.heat_bath.updates import spans
from spinbench.methods.gibbs.tempering import Slopes
from spinbench.models import PairwiseModel


class PairTables(NamedTuple):
    """Attributes: order (N,) the variable of each row; sweep: its tables."""

    order: Array
    sweep: Sweep | Scan


def pair_tables(model: PairwiseModel) -> PairTables:
    """Of a model without groups, colour by colour."""
    plan = layout(model, "chromatic")
    rows = compressed_rows(model, plan.order)
    return PairTables(plan.order, chosen_tables(model, plan, rows))


class PairReplicas:
    """States s (N, C) of 0 and 1 in the backend's real type, rows in the tables' order."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._fields, self._draws, self._slopes = Fields(backend), Draws(backend), Slopes(backend)
        self._tiles = Tiles(backend)

    def begin(self, t: PairTables, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return self._xp.take(start, t.order, axis=0)

    def unseen(self, t: PairTables, s: Array) -> Array:
        """(N, C) 0."""
        return self._xp.zeros_like(s)

    def sweep(self, key: Key, t: PairTables, s: Array, beta: Array) -> tuple[Array, Array]:
        """(s, p), p (N, C) of p(s_i = 1 | rest)^β as of the update; `s` is given up."""
        u = self._backend.uniform(key, tuple(s.shape))
        if isinstance(t.sweep, Scan):
            return self._chunks(t.sweep, s, u, beta)
        seen = []
        for low, high, block in spans(t.sweep):
            p, drawn = self._draws.draw(self._fields.of_block(block, s, low) * beta, u[low:high, :])
            s = self._backend.update(s, slice(low, high), drawn, donate=True)
            seen.append(p)
        return s, self._xp.concat(seen, axis=0)

    def log_weights(self, t: PairTables, s: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        return self._slopes.of(t.sweep, s), None

    def states(self, t: PairTables, s: Array) -> Array:
        """(N, C), variable by variable."""
        return self._xp.take(s, self._xp.argsort(t.order), axis=0)

    def _chunks(self, scan: Scan, s: Array, u: Array, beta: Array) -> tuple[Array, Array]:
        if in_tiles(scan):
            return self._tiles.sweep(scan, s, self._xp.zeros_like(s), u, beta=beta)

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            s, p = carry
            rows = self._backend.take(scan.rows, b)
            x = self._fields.of_chunk(scan, rows, s) * beta
            fresh, drawn = self._draws.draw(x, self._xp.take(u, rows, axis=0))
            s = self._backend.update(s, rows, drawn, donate=True)
            return s, self._backend.update(p, rows, fresh, donate=True)

        swept: tuple[Array, Array] = self._backend.fori_loop(0, scan.rows.shape[0], body, (s, self._xp.zeros_like(s)))
        return swept
