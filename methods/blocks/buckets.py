"""One block's buckets over a backend's arrays: sums, draws, marginals and probabilities, given the other variables.

Tables of a block are (P, S, K, C), p(v | separator) of bucket after bucket, in which what lies beyond a bucket's own
separators and states has no meaning, or probability 0.
"""

from __future__ import annotations

from spinbench.api import Array, Index
from spinbench.methods.blocks.tables import COLD_FLOOR_NATS, Tables
from spinbench.methods.chain_program import ArrayOperations


class BucketElimination(ArrayOperations):
    """Functions of the tables, a block's number and states x (N, C)."""

    def eliminate_block(self, t: Tables, block: Index, x: Array, beta: Array | None = None) -> Array:
        """Sum the block's variables out, given the others.

        Args:
            t: tables.
            block: its number.
            x: (N, C) states.
            beta: (C,) inverse temperatures; a hard zero is one of the `floors`, which from 1 on lie `COLD_FLOOR_NATS`
                lower. None: all are 1, and hard zeros -inf.
        """
        backend, xp, (low, high) = self._backend, self._xp, self._bucket_range(t, block)
        max_buckets, S, K, C = t.places.shape[0], t.separators.shape[0], t.states.shape[0], x.shape[1]
        tables = xp.zeros((max_buckets, S, K, C), dtype=backend.real)
        messages = xp.zeros((max_buckets, S, C), dtype=backend.real)

        def body(b: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            tables, messages = carry
            logs = self._bucket_log_product(t, b, low, x, messages, beta)
            top = xp.max(logs, axis=1)
            # All entries are impossible for this state of the separator: -∞ - -∞ would be NaN.
            top = xp.where(top > -xp.inf, top, xp.zeros_like(top))
            weights = xp.exp(logs - top[:, None, :])
            total = xp.sum(weights, axis=1)
            possible = total > 0
            share = weights / xp.where(possible, total, xp.ones_like(total))[:, None, :]
            message = xp.where(possible, top + xp.log(xp.where(possible, total, xp.ones_like(total))), -xp.inf)
            tables = backend.update(tables, b - low, share, donate=True)
            return tables, backend.update(messages, b - low, message, donate=True)

        tables_of_block: Array = backend.fori_loop(low, high, body, (tables, messages))[0]
        return tables_of_block

    def draw_block(self, t: Tables, block: Index, tables: Array, x: Array, u: Array) -> Array:
        """x with the block drawn, by uniform numbers u (P, C)."""
        backend, xp, (low, high) = self._backend, self._xp, self._bucket_range(t, block)

        def body(i: Index, x: Array) -> Array:
            b = high - 1 - i
            summed = xp.cumulative_sum(self._conditional_row(t, b, b - low, tables, x), axis=0)
            beyond = summed <= (backend.take(u, b - low) * summed[-1, :])[None, :]
            state = xp.count_nonzero(beyond, axis=0)
            last = backend.take(t.cards, b)[0] - 1
            state = xp.astype(xp.minimum(xp.astype(state, x.dtype), last), x.dtype)
            return backend.update(x, backend.take(t.variable, b), state, donate=True)

        return backend.fori_loop(0, high - low, body, x + 0)

    def block_log_probability(self, t: Tables, block: Index, tables: Array, target: Array) -> Array:
        """(C,) log p(the block is in the states of target (N, C) | the rest)."""
        backend, xp, (low, high) = self._backend, self._xp, self._bucket_range(t, block)

        def body(b: Index, total: Array) -> Array:
            row = self._conditional_row(t, b, b - low, tables, target)
            state = backend.take(target, backend.take(t.variable, b))
            p = xp.sum(xp.where(t.states[:, None] == state[None, :], row, xp.zeros_like(row)), axis=0)
            return total + xp.where(p > 0, xp.log(xp.where(p > 0, p, xp.ones_like(p))), -xp.inf)

        return backend.fori_loop(low, high, body, xp.zeros_like(tables[0, 0, 0, :]))

    def add_marginals(self, t: Tables, block: Index, tables: Array, p: Array) -> Array:
        """p (N K, C) with the block's marginals given the rest, times each variable's share, added."""
        backend, xp, (low, high) = self._backend, self._xp, self._bucket_range(t, block)
        max_buckets, S, K, C = tables.shape
        entries = xp.arange(S + 1, dtype=t.separators.dtype)

        def body(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            joint, p = carry
            b = high - 1 - i
            parent = backend.take(t.parent, b)
            above = xp.where(parent >= 0, parent, b)
            to = xp.where(
                self._valid_entries(t, above), self._entry_positions(t, above, backend.take(t.up, b)), xp.asarray(S)
            )
            to = xp.reshape(to, (-1,))
            order = xp.argsort(to, stable=True)
            # Groups differ in size, so that their sums are computed as differences of cumulative sums.
            summed = xp.cumulative_sum(
                backend.take(xp.reshape(backend.take(joint, above - low), (S * K, C)), order),
                axis=0,
                include_initial=True,
            )
            ends = backend.take(summed, xp.searchsorted(backend.take(to, order), entries))
            alone = xp.astype(t.separators == 0, backend.real)[:, None] + xp.zeros_like(ends[1:, :])
            separator = xp.where(parent >= 0, ends[1:, :] - ends[:-1, :], alone)
            # Rounding can make differences of cumulative sums negative.
            bucket_joint = backend.take(tables, b - low) * xp.maximum(separator, xp.zeros_like(separator))[:, None, :]
            rows = backend.take(t.variable, b) * K + t.states
            share = xp.sum(bucket_joint, axis=0) * backend.take(t.share, b)
            p = backend.update(p, rows, backend.take(p, rows) + share, donate=True)
            return backend.update(joint, b - low, bucket_joint, donate=True), p

        empty = xp.zeros((max_buckets, S, K, C), dtype=backend.real)
        added: Array = backend.fori_loop(0, high - low, body, (empty, p))[1]
        return added

    def assign_block(self, t: Tables, block: Index, x: Array, target: Array) -> Array:
        """x with the block in the states of target."""
        backend, (low, high) = self._backend, self._bucket_range(t, block)

        def body(b: Index, x: Array) -> Array:
            v = backend.take(t.variable, b)
            return backend.update(x, v, backend.take(target, v), donate=True)

        return backend.fori_loop(low, high, body, x + 0)

    def log_weight(self, t: Tables, x: Array) -> Array:
        """(C,) log p*(x), less the model's constant."""
        xp, backend = self._xp, self._backend
        steps = t.strides[:, :, None] * backend.take(x, t.members)
        return xp.sum(backend.take(t.values, t.offsets[:, None] + xp.sum(steps, axis=1)), axis=0)

    def _bucket_range(self, t: Tables, block: Index) -> tuple[Array, Array]:
        return self._backend.take(t.starts, block), self._backend.take(t.starts, block + 1)

    def _bucket_log_product(
        self, t: Tables, b: Index, low: Index, x: Array, messages: Array, beta: Array | None
    ) -> Array:
        """(S, K, C) logs of the product of a bucket's factors and messages; -inf beyond its states."""
        backend, xp = self._backend, self._xp
        _, S, C = messages.shape
        flat = xp.reshape(messages, (-1, C))

        def factor(i: Index, total: Array) -> Array:
            f = backend.take(t.factors, i)
            steps = backend.take(t.outer_strides, i)[:, None] * backend.take(x, backend.take(t.outer, i))
            base = backend.take(t.offsets, f) + xp.sum(steps, axis=0)
            entries = self._entry_positions(t, b, backend.take(t.inner, i))
            logs = backend.take(t.values, entries[:, :, None] + base[None, None, :])
            if beta is not None:
                floors = backend.take(t.floors, f) - xp.where(beta < 1, xp.zeros_like(beta), COLD_FLOOR_NATS)
                # Hard zeros are replaced by finite floors at β < 1: β · -∞ is NaN at β = 0.
                logs = xp.maximum(logs, xp.astype(floors, backend.real)) * beta
            return total + logs

        def message(i: Index, total: Array) -> Array:
            child = backend.take(t.children, i)
            entries = self._entry_positions(t, b, backend.take(t.up, child))
            return total + backend.take(flat, (child - low) * S + entries)

        total = xp.where(self._valid_entries(t, b)[:, :, None], xp.zeros((1, 1, C), dtype=backend.real), -xp.inf)
        first, end = backend.take(t.factor_starts, b), backend.take(t.factor_starts, b + 1)
        total = backend.fori_loop(first, end, factor, total)
        first, end = backend.take(t.child_starts, b), backend.take(t.child_starts, b + 1)
        return backend.fori_loop(first, end, message, total)

    def _entry_positions(self, t: Tables, b: Index, strides: Array) -> Array:
        """(S, K) where entries of a bucket lie in what has these strides along its scope."""
        backend, xp = self._backend, self._xp
        cards, steps = backend.take(t.cards, b), backend.take(t.steps, b)
        digits = t.separators[None, :] // xp.maximum(steps, xp.ones_like(steps))[:, None] % cards[:, None]
        separator = xp.sum(digits[1:, :] * strides[1:, None], axis=0)
        return xp.minimum(t.states, cards[0] - 1)[None, :] * strides[0] + separator[:, None]

    def _valid_entries(self, t: Tables, b: Index) -> Array:
        """(S, K) which entries a bucket has."""
        cards = self._backend.take(t.cards, b)
        return (t.separators < self._xp.prod(cards[1:]))[:, None] & (t.states < cards[0])[None, :]

    def _conditional_row(self, t: Tables, b: Index, place: Index, tables: Array, x: Array) -> Array:
        """(K, C) a bucket's probabilities given the separator's states in x."""
        backend, xp = self._backend, self._xp
        _, S, K, C = tables.shape
        steps = backend.take(t.steps, b)[:, None] * backend.take(x, backend.take(t.scope, b))
        row = (place * S + xp.sum(steps, axis=0)) * K
        entries = (row[None, :] + t.states[:, None]) * C + xp.arange(C, dtype=x.dtype)[None, :]
        return backend.take(xp.reshape(tables, (-1,)), entries)
