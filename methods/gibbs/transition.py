"""Chib's transition probability: a sweep in which every draw is forced to s*. Symbols as in `gibbs`."""

from __future__ import annotations

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
        single: single variables in the order of single updates; None where only sweeps are made.
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
            return self.tiles.forced_fields(sweep, s, t.mode, self.draws.log_probability, total)

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            mixed, total = carry
            rows = self._backend.take(sweep.rows, b)
            x = self.fields.of_chunk(sweep, rows, mixed)
            target = self._backend.take(t.mode, rows)[:, None]
            parts = self.draws.log_probability(x, target)
            mixed = self._backend.update(mixed, rows, self._xp.zeros_like(x) + target, donate=True)
            return mixed, total + self._xp.sum(self._backend.take(sweep.valid, b)[:, None] * parts, axis=0)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, (s + 0.0, total))[1]

    def log_transition_of_blocks(self, t: Tables, sweep: Sweep, s: Array, fields: list[Array]) -> Array:
        """The same for blocks, given the fields of the first; the last do not depend on s."""
        total = self._xp.zeros_like(s[0, :]) + t.fixed
        for index, (low, high, block) in enumerate(spans(sweep)[: len(sweep.first + sweep.middle)]):
            x = fields[index] if index < len(fields) else self.fields.of_block(block, s, low)
            parts = self.draws.log_probability(x, t.mode[low:high, None])
            total = total + self._xp.sum(parts, axis=0)
            if sweep.middle:
                forced = self._xp.zeros_like(s[low:high, :]) + t.mode[low:high, None]
                s = self._backend.update(s, slice(low, high), forced)
        return total
