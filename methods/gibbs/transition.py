"""Chib's transition probability: a sweep in which every draw is forced to s*. Symbols as in `gibbs`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from spinbench.api import Array
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.mathematics.heat_bath.tiles import in_tiles
from spinbench.mathematics.heat_bath.updates import HeatBath, spans


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


class Transition(HeatBath):
    """Sweeps, and how likely they are to end in s*."""

    def log_transition(self, t: Tables, s: Array) -> Array:
        """(C,) log T(s* <- s)."""
        sweep = t.sweep
        if isinstance(sweep, Sweep):
            return self.log_transition_of_blocks(t, sweep, s, self.first_fields(sweep, s))
        total = self._xp.zeros_like(s[0, :])
        if in_tiles(sweep):
            return self.tiles.forced_fields(sweep, s, t.mode, self._log_probability, total)

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            mixed, total = carry
            members = self._backend.take(sweep.rows, b)
            absent, off = self.unit_tables(sweep, b)
            x = self.fields.of_chunk(sweep, members, mixed)
            target = self._backend.take(t.mode, members)
            parts = self.draws.log_probability(absent, off, x, target.T[..., None])
            rows = self._xp.reshape(members.T, (-1,))
            forced = self._xp.zeros_like(x) + target.T[..., None]
            mixed = self._backend.update(mixed, rows, self._xp.reshape(forced, (-1, s.shape[1])), donate=True)
            return mixed, total + self._xp.sum(self._backend.take(sweep.valid, b)[:, None] * parts, axis=0)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, (s + 0.0, total))[1]

    def _log_probability(self, x: Array, target: Array) -> Array:
        """(n, C) log p(s_i = target | rest) of binary variables with fields x (n, C)."""
        return self.draws.log_probability(None, None, x[None, ...], target[None, ...])

    def log_transition_of_blocks(self, t: Tables, sweep: Sweep, s: Array, fields: list[Array]) -> Array:
        """The same for blocks, given the fields of the first; the last do not depend on s."""
        total = self._xp.zeros_like(s[0, :]) + t.fixed
        for index, (low, high, block) in enumerate(spans(sweep)[: len(sweep.first + sweep.middle)]):
            x = fields[index] if index < len(fields) else self.fields.of_block(block, s, low)
            target = self._xp.reshape(t.mode[low:high], (*block.biases.shape, 1))
            if block.biases.ndim == 1:
                parts = self._log_probability(x, target)
            else:
                parts = self.draws.log_probability(self._xp.zeros_like(target), -math.inf, x, target)
            total = total + self._xp.sum(parts, axis=0)
            if sweep.middle:
                forced = self._xp.zeros_like(s[low:high, :]) + t.mode[low:high, None]
                s = self._backend.update(s, slice(low, high), forced)
        return total
