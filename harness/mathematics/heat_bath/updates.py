"""Heat-bath sweeps and single updates over a backend's arrays; their tables are made by `graphs.sweep_layouts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinbench.foundation.arithmetic import Arithmetic, make_operations
from spinbench.mathematics.graphs.rows import Windows
from spinbench.mathematics.graphs.sweep_layouts import Block, Scan, Sweep
from spinbench.mathematics.heat_bath.tiles import Tiles, in_tiles

if TYPE_CHECKING:
    from spinbench.api import Array, Backend, Index, Key

# Up to this many neighbours are added one by one: gathering all of them would multiply the memory of the states by
# their number.
GATHER_AT_ONCE = 8


class Draws:
    """Of fields x and uniform numbers u of one shape."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._sigmoid = make_operations(backend, Arithmetic).sigmoid

    def draw(self, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s): p(s = 1 | rest), and states drawn from it."""
        p = self._sigmoid(x)
        return p, self._xp.astype(u < p, self._backend.real)

    def log_probability(self, x: Array, target: Array) -> Array:
        """log p(s = target | rest)."""
        xp = self._xp
        away = (1 - 2 * target) * x
        # -softplus(away), without overflow of either term.
        return -xp.log1p(xp.exp(-xp.abs(away))) - xp.maximum(away, xp.zeros_like(away))


class Fields:
    """Of states s (N, C)."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._arithmetic = backend, make_operations(backend, Arithmetic)
        self._xp = backend.xp

    def of_block(self, block: Block, s: Array, low: int) -> Array:
        """(n, C) a_i + Σ_j W_ij s_j of the block whose rows begin at `low`."""
        xp = self._xp
        x = xp.reshape(block.biases, (-1, 1))
        if block.windows is not None:
            x = self._window_product(block.windows, block.weights, s, x)
        elif block.neighbours is None:
            x = self._arithmetic.add(self._dense_product(block.weights, s, low), x)
        elif block.neighbours.shape[0] > GATHER_AT_ONCE:
            flat = xp.take(s, xp.reshape(block.neighbours, (-1,)), axis=0)
            x = x + xp.sum(block.weights * xp.reshape(flat, (*block.neighbours.shape, -1)), axis=0)
        elif block.neighbours.shape[0] > 0:
            x = x + xp.zeros_like(s[:1, :])
            for k in range(block.neighbours.shape[0]):
                near = xp.take(s, block.neighbours[k, :], axis=0)
                x = self._arithmetic.add_product(x, near, block.weights[k, ...])
        else:
            x = x + xp.zeros_like(s[:1, :])
        return x

    def _dense_product(self, weights: Array, s: Array, low: int) -> Array:
        """Σ_j W_ij s_j for the rows of a block, among which there are no couplings: at an end, they are left out."""
        high = low + weights.shape[0]
        if low == 0:
            return self._xp.matmul(weights[:, high:], s[high:, :])
        if high == s.shape[0]:
            return self._xp.matmul(weights[:, :low], s[:low, :])
        return self._xp.matmul(weights, s)

    def _window_product(self, windows: Windows, weights: Array, s: Array, x: Array) -> Array:
        """x + Σ_j W_ij s_j, window by window."""
        xp = self._xp
        margin = xp.zeros_like(s[:1, :]) + xp.reshape(windows.margin, (-1, 1))
        padded = xp.concat([margin, s, margin], axis=0)
        x = x + xp.zeros_like(s[:1, :])
        for k in range(weights.shape[0]):
            near = self._arithmetic.window(padded, windows.starts[k], weights.shape[1])
            x = self._arithmetic.add_product(x, near, weights[k, ...])
        return x

    def of_chunk(self, scan: Scan, rows: Array, s: Array) -> Array:
        """(w, C) for rows (w,)."""
        xp = self._xp
        if scan.columns is None:
            pull = xp.matmul(xp.take(scan.weights, rows, axis=0), s)
        else:
            columns, weights = self.entries(scan, rows)
            near = xp.reshape(xp.take(s, xp.reshape(columns, (-1,)), axis=0), (*columns.shape, -1))
            pull = xp.sum(weights[..., None] * near, axis=0)
        return pull + xp.take(scan.biases, rows)[:, None]

    def entries(self, scan: Scan, rows: Array) -> tuple[Array, Array]:
        """Neighbours and couplings of `rows` (…), each (D, …); weights are 0 where there are fewer than D."""
        backend, xp = self._backend, self._xp
        window = xp.reshape(scan.window, (-1, *[1] * rows.ndim))
        entries = backend.take(scan.start, rows) + window
        weights = xp.where(window < backend.take(scan.degree, rows), backend.take(scan.weights, entries), 0.0)
        return backend.take(scan.columns, entries), weights


class HeatBath:
    """Updates of binary variables from their conditionals, for generic programs.

    States s are (N, C) of 0 and 1 in the backend's real type, in the row order of the tables (`Layout.order`), and are
    given up: what is returned takes their place. Sweeps have two forms: over the few blocks of a `Sweep`, unrolled, or
    over the chunks of a `Scan`, in a loop.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._sigmoid = make_operations(backend, Arithmetic).sigmoid
        self.fields, self.draws, self.tiles = Fields(backend), Draws(backend), make_operations(backend, Tiles)

    def sweep(self, key: Key, sweep: Sweep | Scan, s: Array, *, backward: bool = False) -> Array:
        """One sweep, forward or with its blocks in reverse order: (N, C) new states."""
        u = self._backend.uniform(key, s.shape)
        if isinstance(sweep, Scan):
            return self.sweep_chunks(sweep, s, (), u, backward=backward)[0]
        if not backward:
            return self.sweep_blocks(sweep, s, u)[0]
        for low, high, block in reversed(spans(sweep)):
            values = self.draws.draw(self.fields.of_block(block, s, low), u[low:high, :])[1]
            s = self._backend.update(s, slice(low, high), values, donate=True)
        return s

    def sweep_blocks(self, sweep: Sweep, s: Array, u: Array, beta: Array | None = None) -> tuple[Array, list[Array]]:
        """Forward, with uniforms u (N, C), and fields times beta (C,); (s, p of each block)."""
        probabilities = []
        for low, high, block in spans(sweep):
            x = self.fields.of_block(block, s, low)
            p, values = self.draws.draw(x if beta is None else x * beta, u[low:high, :])
            s = self._backend.update(s, slice(low, high), values, donate=True)
            probabilities.append(p)
        return s, probabilities

    def sweep_chunks(
        self, scan: Scan, s: Array, p: Array, u: Array, *, backward: bool, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """The same of chunks, in either order; (s, p), where p is passed through if it is ()."""
        if in_tiles(scan):
            return self.tiles.sweep(scan, s, p, u, backward=backward, beta=beta)
        chunks = scan.rows.shape[0]

        def body(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            b = chunks - 1 - i if backward else i
            of_chunk = self._xp.take(u, self._backend.take(scan.rows, b), axis=0)
            return self.update_chunk(scan, b, *carry, of_chunk, beta)

        swept: tuple[Array, Array] = self._backend.fori_loop(0, chunks, body, (s, p))
        return swept

    def update_chunk(
        self, scan: Scan, b: Index, s: Array, p: Array, u: Array, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """Update the rows of chunk b with uniforms u (w, C); p is passed through where it is ()."""
        rows = self._backend.take(scan.rows, b)
        x = self.fields.of_chunk(scan, rows, s)
        fresh, values = self.draws.draw(x if beta is None else x * beta, u)
        s = self._backend.update(s, rows, values, donate=True)
        return s, p if isinstance(p, tuple) else self._backend.update(p, rows, fresh, donate=True)

    # Random scan: every chain updates a variable drawn for it

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
        fresh, values = self.draws.draw(self._backend.take(scan.biases, rows) + pull, u)
        cells = rows * s.shape[1] + chains
        s = xp.reshape(self._backend.update(flat, cells, values, donate=True), s.shape)
        if not isinstance(p, tuple):
            p = xp.reshape(self._backend.update(xp.reshape(p, (-1,)), cells, fresh, donate=True), p.shape)
        return s, p

    def conditionals(self, sweep: Sweep | Scan, s: Array) -> Array:
        """(N, C) p(s_i = 1 | rest) of all variables."""
        if isinstance(sweep, Sweep):
            probabilities = []
            for low, _, block in spans(sweep):
                probabilities.append(self._sigmoid(self.fields.of_block(block, s, low)))
            return self._xp.concat(probabilities, axis=0)
        if in_tiles(sweep):
            return self.tiles.conditionals(sweep, s)

        def body(b: Index, p: Array) -> Array:
            rows = self._backend.take(sweep.rows, b)
            fresh = self._sigmoid(self.fields.of_chunk(sweep, rows, s))
            return self._backend.update(p, rows, fresh, donate=True)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, self._xp.zeros_like(s))


def spans(sweep: Sweep) -> list[tuple[int, int, Block]]:
    """(first row, end, block) of each block; all static."""
    blocks, low = [], 0
    for block in sweep.first + sweep.middle + sweep.last:
        high = low + block.biases.shape[0]
        blocks.append((low, high, block))
        low = high
    return blocks
