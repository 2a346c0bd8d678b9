"""Heat-bath sweeps, single updates and transition probabilities over a backend's arrays.

Symbols as in `spinbench.methods.gibbs.gibbs`. States are (N, C) of 0 and 1 in the row order of the tables. Two forms of
sweeps, see `graphs.sweep_layouts`: over the blocks of a `Sweep`, unrolled, or over the chunks of a `Scan`, in a loop.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.sweep_layouts import Block, Scan, Sweep
from spinbench.methods.gibbs.draws import Draws
from spinbench.methods.gibbs.fields import Fields


class Tables(NamedTuple):
    """What `Gibbs.plan` prepares; arrays are in row order.

    Attributes:
        order: (N,) int32 or int64, variable of each row.
        sweep: the sweep; also the kernel T of Chib's estimator.
        single: single units in the order of single updates; None where only sweeps are made.
        mode: (N,) s*, 0 and 1.
        mode_log_weight: () log p*(s*), the model's constant included.
        fixed: () the part of log T(s* <- s) that does not depend on s (blocks that come last).
    """

    order: Array
    sweep: Sweep | Scan
    single: Scan | None
    mode: Array
    mode_log_weight: Array
    fixed: Array


class HeatBath:
    """Sweeps and single updates over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._fields, self._draws = Fields(backend), Draws(backend)

    # Sweeps

    def sweep(self, key: Key, sweep: Sweep | Scan, s: Array, *, backward: bool) -> Array:
        """One sweep, forward or with its blocks in reverse order."""
        u = self._backend.uniform(key, s.shape)
        if isinstance(sweep, Scan):
            return self.sweep_chunks(sweep, s, (), u, backward=backward)[0]
        if not backward:
            return self.sweep_blocks(sweep, s, u, self.first_fields(sweep, s))[0]
        for low, high, block in reversed(spans(sweep)):
            drawn = self._draws.of_block(block, self._fields.of_block(block, s, low), u[low:high, :])[1]
            s = self._backend.update(s, slice(low, high), drawn, donate=True)
        return s

    def sweep_blocks(self, sweep: Sweep, s: Array, u: Array, fields: list[Array]) -> tuple[Array, list[Array]]:
        """Forward, with uniforms u (N, C) and the fields of the first blocks; (s, p of each block)."""
        probabilities = []
        for index, (low, high, block) in enumerate(spans(sweep)):
            x = fields[index] if index < len(fields) else self._fields.of_block(block, s, low)
            p, drawn = self._draws.of_block(block, x, u[low:high, :])
            s = self._backend.update(s, slice(low, high), drawn, donate=True)
            probabilities.append(p)
        return s, probabilities

    def first_fields(self, sweep: Sweep, s: Array) -> list[Array]:
        """The fields of the first blocks, which are the same before a sweep and when the blocks' turn comes."""
        return [self._fields.of_block(block, s, low) for low, _, block in spans(sweep)[: len(sweep.first)]]

    def sweep_chunks(self, scan: Scan, s: Array, p: Array, u: Array, *, backward: bool) -> tuple[Array, Array]:
        """A sweep with uniforms u (N, C); (s, p), where p is passed through if it is ()."""
        chunks = scan.rows.shape[0]

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            b = chunks - 1 - i if backward else i
            return self.update_chunk(scan, b, *carry, self._xp.take(u, self._backend.take(scan.rows, b)[:, 0], axis=0))

        swept: tuple[Array, Array] = self._backend.fori_loop(0, chunks, body, (s, p))
        return swept

    def update_chunk(self, scan: Scan, b: Any, s: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """Update the units of chunk b with uniforms u (w, C); p is passed through where it is ()."""
        members = self._backend.take(scan.rows, b)
        x = self._fields.of_chunk(scan, members, s)
        fresh, drawn = self._draws.of_units(*self._unit_tables(scan, b), x, u)
        rows = self._xp.reshape(members.T, (-1,))
        s = self._backend.update(s, rows, self._xp.reshape(drawn, (-1, s.shape[1])), donate=True)
        if isinstance(p, tuple):
            return s, p
        return s, self._backend.update(p, rows, self._xp.reshape(fresh, (-1, s.shape[1])), donate=True)

    # Random scan: every chain updates a unit of its own

    def update_anywhere(self, scan: Scan, s: Array, p: Array, where: Array, u: Array) -> tuple[Array, Array]:
        """`where`, u: (C,) uniforms that choose the unit and its state."""
        xp, units = self._xp, scan.rows.shape[0]
        chosen = xp.minimum(xp.astype(xp.floor(where * units), scan.rows.dtype), units - 1)
        members = xp.take(scan.rows, chosen, axis=0)[:, 0, :].T
        chains = xp.arange(s.shape[1])
        flat = xp.reshape(s, (-1,))
        if scan.columns is None:
            pull = xp.sum(self._backend.take(scan.weights, members) * s.T, axis=-1)
        else:
            columns, weights = self._fields.entries(scan, members)
            pull = xp.sum(weights * self._backend.take(flat, columns * s.shape[1] + chains), axis=0)
        x = self._backend.take(scan.biases, members) + pull
        absent = None if scan.absent is None else xp.take(scan.absent, chosen, axis=0)[:, 0, :].T
        off = None if scan.off is None else xp.take(scan.off, chosen, axis=0)[:, 0]
        fresh, drawn = self._draws.of_units(absent, off, x, u)
        cells = xp.reshape(members * s.shape[1] + chains, (-1,))
        s = xp.reshape(self._backend.update(flat, cells, xp.reshape(drawn, (-1,)), donate=True), s.shape)
        if not isinstance(p, tuple):
            flat = self._backend.update(xp.reshape(p, (-1,)), cells, xp.reshape(fresh, (-1,)), donate=True)
            p = xp.reshape(flat, p.shape)
        return s, p

    def conditionals(self, sweep: Sweep | Scan, s: Array) -> Array:
        """(N, C) p(s_i = 1 | rest) of all variables."""
        if isinstance(sweep, Sweep):
            found = []
            for low, high, block in spans(sweep):
                found.append(self._draws.of_block(block, self._fields.of_block(block, s, low), s[low:high, :])[0])
            return self._xp.concat(found, axis=0)

        def body(b: Any, p: Array) -> Array:
            members = self._backend.take(sweep.rows, b)
            absent, off = self._unit_tables(sweep, b)
            u = self._xp.take(s, members[:, 0], axis=0)
            fresh = self._draws.of_units(absent, off, self._fields.of_chunk(sweep, members, s), u)[0]
            rows = self._xp.reshape(members.T, (-1,))
            return self._backend.update(p, rows, self._xp.reshape(fresh, (-1, s.shape[1])), donate=True)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, self._xp.zeros_like(s))

    # Chib's transition probability: a sweep in which every draw is forced to s*

    def log_transition(self, t: Tables, s: Array) -> Array:
        """(C,) log T(s* <- s)."""
        sweep = t.sweep
        if isinstance(sweep, Sweep):
            return self.log_transition_of_blocks(t, sweep, s, self.first_fields(sweep, s))

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            mixed, total = carry
            members = self._backend.take(sweep.rows, b)
            absent, off = self._unit_tables(sweep, b)
            x = self._fields.of_chunk(sweep, members, mixed)
            target = self._backend.take(t.mode, members)
            parts = self._draws.log_probability(absent, off, x, target.T[..., None])
            rows = self._xp.reshape(members.T, (-1,))
            forced = self._xp.zeros_like(x) + target.T[..., None]
            mixed = self._backend.update(mixed, rows, self._xp.reshape(forced, (-1, s.shape[1])), donate=True)
            return mixed, total + self._xp.sum(self._backend.take(sweep.valid, b)[:, None] * parts, axis=0)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, (s + 0.0, self._xp.zeros_like(s[0, :])))[1]

    def log_transition_of_blocks(self, t: Tables, sweep: Sweep, s: Array, fields: list[Array]) -> Array:
        """The same for blocks, given the fields of the first; the last do not depend on s."""
        total = self._xp.zeros_like(s[0, :]) + t.fixed
        for index, (low, high, block) in enumerate(spans(sweep)[: len(sweep.first + sweep.middle)]):
            x = fields[index] if index < len(fields) else self._fields.of_block(block, s, low)
            target = self._xp.reshape(t.mode[low:high], (*block.biases.shape, 1))
            if block.biases.ndim == 1:
                parts = self._draws.log_probability(None, None, x[None, ...], target[None, ...])
            else:
                parts = self._draws.log_probability(self._xp.zeros_like(target), -math.inf, x, target)
            total = total + self._xp.sum(parts, axis=0)
            if sweep.middle:
                forced = self._xp.zeros_like(s[low:high, :]) + t.mode[low:high, None]
                s = self._backend.update(s, slice(low, high), forced)
        return total

    def _unit_tables(self, scan: Scan, b: Any) -> tuple[Array, Array]:
        """(K, w, 1) and (w, 1) `absent` and `off` of chunk b, or None."""
        if scan.absent is None or scan.off is None:
            return None, None
        return self._backend.take(scan.absent, b).T[:, :, None], self._backend.take(scan.off, b)[:, None]


def spans(sweep: Sweep) -> list[tuple[int, int, Block]]:
    """(first row, end, block) of each block; all static."""
    found, low = [], 0
    for block in sweep.first + sweep.middle + sweep.last:
        high = low + math.prod(block.biases.shape)
        found.append((low, high, block))
        low = high
    return found
