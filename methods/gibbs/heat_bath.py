"""Heat-bath sweeps, single updates and transition probabilities over a backend's arrays.

Symbols as in `spinbench.methods.gibbs.gibbs`. States are (N, C) of 0 and 1 in the row order of the tables. Two forms of
sweeps, see `graphs.sweep_layouts`: over the blocks of a `Sweep`, unrolled, or over the chunks of a `Scan`, in a loop.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.sweep_layouts import Block, Scan, Sweep
from spinbench.mathematics.graphs.windows import Windows

GATHER_AT_ONCE = 8
"""Up to so many neighbours are added one by one, without a temporary array of all of them."""


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

    # Sweeps

    def sweep(self, key: Key, sweep: Sweep | Scan, s: Array, *, backward: bool) -> Array:
        """One sweep, forward or with its blocks in reverse order."""
        u = self._backend.uniform(key, s.shape)
        if isinstance(sweep, Scan):
            return self.sweep_chunks(sweep, s, (), u, backward=backward)[0]
        if not backward:
            return self.sweep_blocks(sweep, s, u, self.first_fields(sweep, s))[0]
        for low, high, block in reversed(_spans(sweep)):
            drawn = self._draw_block(block, self.fields(block, s, low), u[low:high])[1]
            s = self._backend.place(s, slice(low, high), drawn)
        return s

    def sweep_blocks(self, sweep: Sweep, s: Array, u: Array, fields: list[Array]) -> tuple[Array, list[Array]]:
        """Forward, with uniforms u (N, C) and the fields of the first blocks; (s, p of each block)."""
        probabilities = []
        for index, (low, high, block) in enumerate(_spans(sweep)):
            x = fields[index] if index < len(fields) else self.fields(block, s, low)
            p, drawn = self._draw_block(block, x, u[low:high])
            s = self._backend.place(s, slice(low, high), drawn)
            probabilities.append(p)
        return s, probabilities

    def first_fields(self, sweep: Sweep, s: Array) -> list[Array]:
        """The fields of the first blocks, which are the same before a sweep and when the blocks' turn comes."""
        return [self.fields(block, s, low) for low, _, block in _spans(sweep)[: len(sweep.first)]]

    def fields(self, block: Block, s: Array, low: int) -> Array:
        """(n, C) or (K, G, C): a_i + Σ_j W_ij s_j of the block whose rows begin at `low`."""
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
            x = x + xp.zeros_like(s[:1])
            for near, weights in zip(block.neighbours, block.weights, strict=True):
                x = self._backend.add_product(x, xp.take(s, near, axis=0), weights)
        else:
            x = x + xp.zeros_like(s[:1])
        return x if block.biases.ndim == 1 else xp.reshape(x, (*block.biases.shape, -1))

    def _dense_product(self, weights: Array, s: Array, low: int) -> Array:
        """Σ_j W_ij s_j for the rows of a block, among which there are no couplings: at an end, they are left out."""
        high = low + weights.shape[0]
        if low == 0:
            return self._xp.matmul(weights[:, high:], s[high:])
        if high == s.shape[0]:
            return self._xp.matmul(weights[:, :low], s[:low])
        return self._xp.matmul(weights, s)

    def _windowed_product(self, windows: Windows, weights: Array, s: Array, x: Array) -> Array:
        """x + Σ_j W_ij s_j, window by window."""
        xp = self._xp
        margin = xp.zeros_like(s[:1]) + xp.reshape(windows.margin, (-1, 1))
        padded = xp.concat([margin, s, margin], axis=0)
        x = x + xp.zeros_like(s[:1])
        for start, column in zip(windows.starts, weights, strict=True):
            x = self._backend.add_product(x, self._backend.window(padded, start, weights.shape[1]), column)
        return x

    def _draw_block(self, block: Block, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of the block's rows, (n, C)."""
        if block.biases.ndim == 1:
            p = self._backend.sigmoid(x)
            return p, self._as_real(u < p)
        groups = block.biases.shape[1]
        off = self._xp.full_like(block.biases[0], -math.inf)[:, None]
        p, drawn = self._draw_member(x, off, u[:groups])
        return self._xp.reshape(p, u.shape), self._xp.reshape(drawn, u.shape)

    def sweep_chunks(self, scan: Scan, s: Array, p: Array, u: Array, *, backward: bool) -> tuple[Array, Array]:
        """A sweep with uniforms u (N, C); (s, p), where p is passed through if it is ()."""
        chunks = scan.rows.shape[0]

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            b = chunks - 1 - i if backward else i
            return self.update_chunk(scan, b, *carry, self._xp.take(u, scan.rows[b][:, 0], axis=0))

        swept: tuple[Array, Array] = self._backend.repeat(chunks, body, (s, p))
        return swept

    def update_chunk(self, scan: Scan, b: Any, s: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """Update the units of chunk b with uniforms u (w, C); p is passed through where it is ()."""
        members = scan.rows[b]
        x = self._scan_fields(scan, members, s)
        fresh, drawn = self._draw_unit(*_unit_tables(scan, b), x, u)
        rows = self._xp.reshape(members.T, (-1,))
        s = self._backend.place(s, rows, self._xp.reshape(drawn, (-1, s.shape[1])))
        if isinstance(p, tuple):
            return s, p
        return s, self._backend.place(p, rows, self._xp.reshape(fresh, (-1, s.shape[1])))

    def _draw_unit(self, absent: Array, off: Array, x: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of members x (K, …) with uniforms u (…); `absent` (K, …) and `off` (…) are None without groups."""
        if absent is None:
            p = self._backend.sigmoid(x)
            return p, self._as_real(u < p)
        p, drawn = self._draw_member(x + absent, off, u)
        repeats = absent < 0  # a repeated member is the first
        return self._xp.where(repeats, p[:1], p), self._xp.where(repeats, drawn[:1], drawn)

    def _scan_fields(self, scan: Scan, members: Array, s: Array) -> Array:
        """(K, w, C) for members (w, K)."""
        xp = self._xp
        flat = xp.reshape(members.T, (-1,))
        if scan.columns is None:
            pull = xp.matmul(xp.take(scan.weights, flat, axis=0), s)
        else:
            columns, weights = self._entries(scan, flat)
            near = xp.reshape(xp.take(s, xp.reshape(columns, (-1,)), axis=0), (*columns.shape, -1))
            pull = xp.sum(weights[..., None] * near, axis=0)
        return xp.reshape(pull + xp.take(scan.biases, flat)[:, None], (*members.T.shape, -1))

    def _entries(self, scan: Scan, rows: Array) -> tuple[Array, Array]:
        """Neighbours and couplings of `rows` (…), each (D, …); weights are 0 where there are fewer than D."""
        xp = self._xp
        window = xp.reshape(scan.window, (-1, *[1] * rows.ndim))
        entries = xp.take(scan.start, rows) + window
        weights = xp.where(window < xp.take(scan.degree, rows), xp.take(scan.weights, entries), 0.0)
        return xp.take(scan.columns, entries), weights

    # Random scan: every chain updates a unit of its own

    def update_anywhere(self, scan: Scan, s: Array, p: Array, where: Array, u: Array) -> tuple[Array, Array]:
        """`where`, u: (C,) uniforms that choose the unit and its state."""
        xp, units = self._xp, scan.rows.shape[0]
        chosen = xp.minimum(xp.asarray(xp.floor(where * units), dtype=scan.rows.dtype), units - 1)
        members = xp.take(scan.rows, chosen, axis=0)[:, 0, :].T
        chains = xp.arange(s.shape[1])
        flat = xp.reshape(s, (-1,))
        if scan.columns is None:
            pull = xp.sum(xp.take(scan.weights, members, axis=0) * s.T, axis=-1)
        else:
            columns, weights = self._entries(scan, members)
            pull = xp.sum(weights * xp.take(flat, columns * s.shape[1] + chains), axis=0)
        x = xp.take(scan.biases, members) + pull
        absent = None if scan.absent is None else xp.take(scan.absent, chosen, axis=0)[:, 0, :].T
        off = None if scan.off is None else xp.take(scan.off, chosen, axis=0)[:, 0]
        fresh, drawn = self._draw_unit(absent, off, x, u)
        cells = xp.reshape(members * s.shape[1] + chains, (-1,))
        s = xp.reshape(self._backend.place(flat, cells, xp.reshape(drawn, (-1,))), s.shape)
        if not isinstance(p, tuple):
            flat = self._backend.place(xp.reshape(p, (-1,)), cells, xp.reshape(fresh, (-1,)))
            p = xp.reshape(flat, p.shape)
        return s, p

    def conditionals(self, sweep: Sweep | Scan, s: Array) -> Array:
        """(N, C) p(s_i = 1 | rest) of all variables."""
        if isinstance(sweep, Sweep):
            spans = _spans(sweep)
            return self._xp.concat(
                [self._draw_block(b, self.fields(b, s, low), s[low:high])[0] for low, high, b in spans], axis=0
            )

        def body(b: Any, p: Array) -> Array:
            members = sweep.rows[b]
            absent, off = _unit_tables(sweep, b)
            u = self._xp.take(s, members[:, 0], axis=0)
            fresh = self._draw_unit(absent, off, self._scan_fields(sweep, members, s), u)[0]
            rows = self._xp.reshape(members.T, (-1,))
            return self._backend.place(p, rows, self._xp.reshape(fresh, (-1, s.shape[1])))

        return self._backend.repeat(sweep.rows.shape[0], body, self._xp.zeros_like(s))

    # Chib's transition probability: a sweep in which every draw is forced to s*

    def log_transition(self, t: Tables, s: Array) -> Array:
        """(C,) log T(s* <- s)."""
        sweep = t.sweep
        if isinstance(sweep, Sweep):
            return self.log_transition_of_blocks(t, sweep, s, self.first_fields(sweep, s))

        def body(b: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            mixed, total = carry
            members = sweep.rows[b]
            absent, off = _unit_tables(sweep, b)
            x = self._scan_fields(sweep, members, mixed)
            target = self._xp.take(t.mode, members)
            parts = self._log_probability(absent, off, x, target.T[..., None])
            rows = self._xp.reshape(members.T, (-1,))
            forced = self._xp.zeros_like(x) + target.T[..., None]
            mixed = self._backend.place(mixed, rows, self._xp.reshape(forced, (-1, s.shape[1])))
            return mixed, total + self._xp.sum(sweep.valid[b][:, None] * parts, axis=0)

        return self._backend.repeat(sweep.rows.shape[0], body, (s + 0.0, self._xp.zeros_like(s[0])))[1]

    def log_transition_of_blocks(self, t: Tables, sweep: Sweep, s: Array, fields: list[Array]) -> Array:
        """The same for blocks, given the fields of the first; the last do not depend on s."""
        total = self._xp.zeros_like(s[0]) + t.fixed
        for index, (low, high, block) in enumerate(_spans(sweep)[: len(sweep.first + sweep.middle)]):
            x = fields[index] if index < len(fields) else self.fields(block, s, low)
            target = self._xp.reshape(t.mode[low:high], (*block.biases.shape, 1))
            if block.biases.ndim == 1:
                parts = self._log_probability(None, None, x[None], target[None])
            else:
                parts = self._log_probability(self._xp.zeros_like(target), -math.inf, x, target)
            total = total + self._xp.sum(parts, axis=0)
            if sweep.middle:
                forced = self._xp.zeros_like(s[low:high]) + t.mode[low:high, None]
                s = self._backend.update(s, slice(low, high), forced)
        return total

    # Draws

    def _log_probability(self, absent: Array, off: Array, x: Array, target: Array) -> Array:
        """(…) log p(unit's members = target | rest), members x and `target` (K, …)."""
        xp = self._xp
        if absent is None:
            away = (1 - 2 * target[0]) * x[0]
            return -xp.log1p(xp.exp(-xp.abs(away))) - xp.maximum(away, xp.zeros_like(away))
        x = x + absent
        top = xp.maximum(xp.max(x, axis=0), xp.zeros_like(x[0]) + off)
        total = xp.sum(xp.exp(x - top), axis=0) + xp.exp(off - top)
        there = xp.where(absent < 0, 0.0, target)
        chosen = xp.sum(xp.where(there > 0, x, 0.0), axis=0)  # 0 is the log weight of a binary variable at 0
        return chosen - top - xp.log(total)

    def _draw_member(self, x: Array, off: Array, u: Array) -> tuple[Array, Array]:
        """(p, s) of members x (K, …) with uniforms u (…): one of them is 1, or none with log weight `off` (…)."""
        xp = self._xp
        top = xp.maximum(xp.max(x, axis=0), xp.zeros_like(x[0]) + off)
        weights = xp.exp(x - top)
        p = weights / (xp.sum(weights, axis=0) + xp.exp(off - top))
        # u falls into [Σ_{l > k} p_l, Σ_{l >= k} p_l) for member k; member 0 of a group takes what rounding leaves.
        upper = xp.flip(xp.cumulative_sum(xp.flip(p, axis=0), axis=0), axis=0)
        lower = xp.concat([upper[1:], xp.zeros_like(upper[:1])], axis=0)
        first = xp.where(off < 0, xp.inf, upper[:1])
        upper = xp.concat([first, upper[1:]], axis=0)
        return p, self._as_real((u >= lower) & (u < upper))

    def _as_real(self, mask: Array) -> Array:
        return self._xp.asarray(mask, dtype=self._backend.real)


def _spans(sweep: Sweep) -> list[tuple[int, int, Block]]:
    """(first row, end, block) of each block; all static."""
    spans, low = [], 0
    for block in sweep.first + sweep.middle + sweep.last:
        high = low + math.prod(block.biases.shape)
        spans.append((low, high, block))
        low = high
    return spans


def _unit_tables(scan: Scan, b: Any) -> tuple[Array, Array]:
    """(K, w, 1) and (w, 1) `absent` and `off` of chunk b, or None."""
    if scan.absent is None or scan.off is None:
        return None, None
    return scan.absent[b].T[:, :, None], scan.off[b][:, None]
