"""Heat-bath sweeps and single updates over a backend's arrays; their tables are made by `graphs.sweep_layouts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinbench.mathematics.graphs.sweep_layouts import Block, Scan, Sweep
from spinbench.mathematics.heat_bath.draws import Draws
from spinbench.mathematics.heat_bath.fields import Fields
from spinbench.mathematics.heat_bath.tiles import Tiles, in_tiles

if TYPE_CHECKING:
    from spinbench.api import Array, Backend, Key


class HeatBath:
    """Updates of binary variables from their conditionals, for generic programs.

    States s are (N, C) of 0 and 1 in the backend's real type, in the row order of the tables (`Layout.order`), and are
    given up: what is returned takes their place. Sweeps have two forms: over the few blocks of a `Sweep`, unrolled, or
    over the chunks of a `Scan`, in a loop.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self.fields, self.draws, self.tiles = Fields(backend), Draws(backend), Tiles(backend)

    # Sweeps

    def sweep(self, key: Key, sweep: Sweep | Scan, s: Array, *, backward: bool = False) -> Array:
        """One sweep, forward or with its blocks in reverse order: (N, C) new states."""
        u = self._backend.uniform(key, s.shape)
        if isinstance(sweep, Scan):
            return self.sweep_chunks(sweep, s, (), u, backward=backward)[0]
        if not backward:
            return self.sweep_blocks(sweep, s, u)[0]
        for low, high, block in reversed(spans(sweep)):
            drawn = self.draws.draw(self.fields.of_block(block, s, low), u[low:high, :])[1]
            s = self._backend.update(s, slice(low, high), drawn, donate=True)
        return s

    def sweep_blocks(self, sweep: Sweep, s: Array, u: Array, beta: Array | None = None) -> tuple[Array, list[Array]]:
        """Forward, with uniforms u (N, C), and fields times beta (C,); (s, p of each block)."""
        probabilities = []
        for low, high, block in spans(sweep):
            x = self.fields.of_block(block, s, low)
            p, drawn = self.draws.draw(x if beta is None else x * beta, u[low:high, :])
            s = self._backend.update(s, slice(low, high), drawn, donate=True)
            probabilities.append(p)
        return s, probabilities

    def sweep_chunks(
        self, scan: Scan, s: Array, p: Array, u: Array, *, backward: bool, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """The same of chunks, in either order; (s, p), where p is passed through if it is ()."""
        if in_tiles(scan):
            return self.tiles.sweep(scan, s, p, u, backward=backward, beta=beta)
        chunks = scan.rows.shape[0]

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            b = chunks - 1 - i if backward else i
            own = self._xp.take(u, self._backend.take(scan.rows, b), axis=0)
            return self.update_chunk(scan, b, *carry, own, beta)

        swept: tuple[Array, Array] = self._backend.fori_loop(0, chunks, body, (s, p))
        return swept

    def update_chunk(
        self, scan: Scan, b: Any, s: Array, p: Array, u: Array, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """Update the rows of chunk b with uniforms u (w, C); p is passed through where it is ()."""
        rows = self._backend.take(scan.rows, b)
        x = self.fields.of_chunk(scan, rows, s)
        fresh, drawn = self.draws.draw(x if beta is None else x * beta, u)
        s = self._backend.update(s, rows, drawn, donate=True)
        return s, p if isinstance(p, tuple) else self._backend.update(p, rows, fresh, donate=True)

    # Random scan: every chain updates a variable of its own

    def update_anywhere(self, scan: Scan, s: Array, p: Array, where: Array, u: Array) -> tuple[Array, Array]:
        """`where`, u: (C,) uniforms that choose the variable and its state."""
        xp, count = self._xp, scan.rows.shape[0]
        chosen = xp.minimum(xp.astype(xp.floor(where * count), scan.rows.dtype), count - 1)
        rows = xp.take(scan.rows, chosen, axis=0)[:, 0]
        chains = xp.arange(s.shape[1])
        flat = xp.reshape(s, (-1,))
        if scan.columns is None:
            pull = xp.sum(self._backend.take(scan.weights, rows) * s.T, axis=-1)
        else:
            columns, weights = self.fields.entries(scan, rows)
            pull = xp.sum(weights * self._backend.take(flat, columns * s.shape[1] + chains), axis=0)
        fresh, drawn = self.draws.draw(self._backend.take(scan.biases, rows) + pull, u)
        cells = rows * s.shape[1] + chains
        s = xp.reshape(self._backend.update(flat, cells, drawn, donate=True), s.shape)
        if not isinstance(p, tuple):
            p = xp.reshape(self._backend.update(xp.reshape(p, (-1,)), cells, fresh, donate=True), p.shape)
        return s, p

    def conditionals(self, sweep: Sweep | Scan, s: Array) -> Array:
        """(N, C) p(s_i = 1 | rest) of all variables."""
        if isinstance(sweep, Sweep):
            found = []
            for low, _, block in spans(sweep):
                found.append(self._backend.sigmoid(self.fields.of_block(block, s, low)))
            return self._xp.concat(found, axis=0)
        if in_tiles(sweep):
            return self.tiles.conditionals(sweep, s)

        def body(b: Any, p: Array) -> Array:
            rows = self._backend.take(sweep.rows, b)
            fresh = self._backend.sigmoid(self.fields.of_chunk(sweep, rows, s))
            return self._backend.update(p, rows, fresh, donate=True)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, self._xp.zeros_like(s))


def spans(sweep: Sweep) -> list[tuple[int, int, Block]]:
    """(first row, end, block) of each block; all static."""
    found, low = [], 0
    for block in sweep.first + sweep.middle + sweep.last:
        high = low + block.biases.shape[0]
        found.append((low, high, block))
        low = high
    return found
