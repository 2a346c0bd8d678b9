"""Fields a_i + Σ_j W_ij s_j of blocks and of chunks over a backend's arrays; s (N, C) as in `updates`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinbench.mathematics.graphs.sweep_layouts import Block, Scan
from spinbench.mathematics.graphs.windows import Windows

if TYPE_CHECKING:
    from spinbench.api import Array, Backend

GATHER_AT_ONCE = 8
"""Up to so many neighbours are added one by one, without a temporary array of all of them."""


class Fields:
    """Of states s (N, C)."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def of_block(self, block: Block, s: Array, low: int) -> Array:
        """(n, C) a_i + Σ_j W_ij s_j of the block whose rows begin at `low`."""
        xp = self._xp
        x = xp.reshape(block.biases, (-1, 1))
        if block.windows is not None:
            x = self._windowed_product(block.windows, block.weights, s, x)
        elif block.neighbours is None:
            x = self._backend.add(self._dense_product(block.weights, s, low), x)
        elif block.neighbours.shape[0] > GATHER_AT_ONCE:
            flat = xp.take(s, xp.reshape(block.neighbours, (-1,)), axis=0)
            x = x + xp.sum(block.weights * xp.reshape(flat, (*block.neighbours.shape, -1)), axis=0)
        elif block.neighbours.shape[0] > 0:
            x = x + xp.zeros_like(s[:1, :])
            for k in range(block.neighbours.shape[0]):
                near = xp.take(s, block.neighbours[k, :], axis=0)
                x = self._backend.add_product(x, near, block.weights[k, ...])
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

    def _windowed_product(self, windows: Windows, weights: Array, s: Array, x: Array) -> Array:
        """x + Σ_j W_ij s_j, window by window."""
        xp = self._xp
        margin = xp.zeros_like(s[:1, :]) + xp.reshape(windows.margin, (-1, 1))
        padded = xp.concat([margin, s, margin], axis=0)
        x = x + xp.zeros_like(s[:1, :])
        for k in range(weights.shape[0]):
            near = self._backend.window(padded, windows.starts[k], weights.shape[1])
            x = self._backend.add_product(x, near, weights[k, ...])
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
