"""Sweeps at inverse temperatures β over a backend's arrays: tables times β, and d log p*^β / dβ = log p*.

Symbols as in `gibbs`. Tables are arguments of what is compiled, so that another β compiles nothing.
"""

from __future__ import annotations

from spinbench.api import Array, Backend
from spinbench.mathematics.graphs.sweep_layouts import Block, Scan, Sweep
from spinbench.mathematics.heat_bath.fields import Fields
from spinbench.mathematics.heat_bath.updates import spans


def tempered(sweep: Sweep | Scan, beta: Array) -> Sweep | Scan:
    """The tables of p*^β."""
    if isinstance(sweep, Scan):
        return sweep._replace(biases=beta * sweep.biases, weights=beta * sweep.weights)

    def of(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(b._replace(biases=beta * b.biases, weights=beta * b.weights) for b in blocks)

    return Sweep(of(sweep.first), of(sweep.middle), of(sweep.last))


class Slopes:
    """a·s + ½ sᵀWs of states, over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._fields = Fields(backend)

    def of(self, sweep: Sweep | Scan, s: Array) -> Array:
        """(C,) of states s (N, C)."""
        xp = self._xp
        if isinstance(sweep, Sweep):
            found = xp.zeros_like(s[0, :])
            for low, high, block in spans(sweep):
                both = self._fields.of_block(block, s, low) + block.biases[:, None]
                found = found + xp.sum(s[low:high, :] * both, axis=0)
            return found / 2

        def body(b: Array, total: Array) -> Array:
            rows = self._backend.take(sweep.rows, b)
            both = self._fields.of_chunk(sweep, rows, s) + self._backend.take(sweep.biases, rows)[:, None]
            there = self._backend.take(sweep.valid, b)[:, None] * self._backend.take(s, rows)
            return total + xp.sum(there * both, axis=0)

        twice: Array = self._backend.fori_loop(0, sweep.rows.shape[0], body, xp.zeros_like(s[0, :]))
        return twice / 2
