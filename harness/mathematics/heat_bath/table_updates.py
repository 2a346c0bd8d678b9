"""Heat-bath sweeps over flat factor tables in a backend's arrays, each chain at an inverse temperature of its own.

States x are (N, C) int32, inverse temperatures beta (C,). A chain's law is p*^beta, in which at beta < 1 a hard zero
counts `table_layouts.FLOOR` nats less than the lowest other entry of its factor, so that chains pass it; at beta = 1 it
is a zero, and a chain there must stand at a state of positive weight. At beta = 0 a sweep makes independent draws.

A conditional takes one entry a factor and state, found from the states of the factor's other variables: nothing is
kept beside x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spinbench.mathematics.graphs.table_layouts import Entries, Section, TableSweep

if TYPE_CHECKING:
    from spinbench.api import Array, Backend, Index, Key


class LevelWeights(NamedTuple):
    """A piecewise linear function of D; below the first knot it is constant.

    Attributes:
        first: () the first of the knots, which are equally spaced; width: () between two of them.
        values: (M,) at the knots.
        slope: beyond the last knot.
        logs: whether the function is the logarithm of the weight, or the weight itself.
    """

    first: Array
    width: Array
    values: Array
    slope: float
    logs: bool

    def interpolate(self, backend: Backend, d: Array) -> tuple[Array, Array, Array]:
        """(values, numbers of the knots below, shares of the knots above) at D of any shape."""
        xp, last = backend.xp, self.values.shape[0] - 1
        place = (d - self.first) / self.width
        inside = xp.where(place < 0, 0.0, xp.where(place > last, xp.zeros_like(place) + last, place))
        low = xp.minimum(xp.astype(xp.floor(inside), xp.int32), xp.zeros_like(xp.astype(d, xp.int32)) + (last - 1))
        part = inside - xp.astype(low, d.dtype)
        value = (1 - part) * backend.take(self.values, low) + part * backend.take(self.values, low + 1)
        if self.slope:
            above = d - (self.first + self.width * last)
            value = value + self.slope * xp.where(above > 0, above, 0.0)
        return value, low, part


class TableBath:
    """Sweeps and single updates, conditional probabilities and log weights.

    `p` is (R + 1, C): conditional probabilities of the R states that `marginal_rows` names, as of their variables' last
    updates; its last row means nothing. Where it is (), it stays.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def sweep(self, key: Key, t: TableSweep, x: Array, beta: Array, *, backward: bool = False) -> Array:
        """x after each variable has been drawn once given the rest, in the layout's order or in its reverse."""
        return self.sweep_and_conditionals(key, t, x, (), beta, backward=backward)[0]

    def sweep_and_conditionals(
        self, key: Key, t: TableSweep, x: Array, p: Array, beta: Array, *, backward: bool = False
    ) -> tuple[Array, Array]:
        """The same, and p."""
        u = self._backend.uniform(key, x.shape)
        shift = self.halves(t.entries, beta)
        for section in reversed(t.sections) if backward else t.sections:
            count = section.rows.shape[0]

            def body(
                b: Index, carry: tuple[Array, Array], section: Section = section, count: int = count
            ) -> tuple[Array, Array]:
                place = count - 1 - b if backward else b
                of_section = self._backend.take(u, self._backend.take(section.rows, place))
                x, p = carry
                return self._update(t.entries, section, place, x, p, beta, shift, of_section)

            x, p = self._backend.fori_loop(0, count, body, (x, p))
        return x, p

    def sweep_by_level(self, key: Key, t: TableSweep, x: Array, d: Array, weights: LevelWeights) -> tuple[Array, Array]:
        """(x, d) after each of the single variables has been drawn once given the rest, where states weigh what their
        D, of floored entries, does; d (C,) that of x."""
        backend, xp, single = self._backend, self._xp, t.single
        if single is None:
            return x, d
        u = backend.uniform(key, (single.rows.shape[0], d.shape[0]))
        shift = xp.zeros_like(x[0, :]) + t.entries.floored

        def body(b: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, d = carry
            row = backend.take(single.rows, b)
            logits = xp.sum(backend.take(t.entries.values, self.places(single, b, x, shift)), axis=1)
            numbers = self._numbers(logits)
            current = xp.sum(xp.where(numbers == backend.take(x, row), logits, 0.0), axis=0)
            # Axes of `offered`: (K, 1, C).
            offered = d + logits - current
            level_weights = weights.interpolate(backend, offered)[0]
            # Padding repeats the last state, which then differs from its own number.
            is_state = backend.take(single.states, b)[..., None] == numbers
            if weights.logs:
                level_weights = xp.exp(level_weights - xp.max(xp.where(is_state, level_weights, -xp.inf), axis=0))
            state, _ = self._draw_states_and_totals(xp.where(is_state, level_weights, 0.0), backend.take(u, b)[None, :])
            d = xp.sum(xp.where(numbers == state, offered, 0.0), axis=0)[0, :]
            return backend.update(x, row, state, donate=True), d

        swept: tuple[Array, Array] = backend.fori_loop(0, single.rows.shape[0], body, (x + 0, d))
        return swept

    def conditionals(self, t: TableSweep, x: Array, p: Array) -> Array:
        """p of x as it is, at beta = 1."""
        ones = self._xp.ones_like(p[0, :])
        shift = self.halves(t.entries, ones)
        for section in t.sections:

            def body(b: Index, p: Array, section: Section = section) -> Array:
                weights = self._chunk_weights(t.entries, section, b, x, ones, shift)
                return self._store_probabilities(section, b, p, weights / self._xp.sum(weights, axis=0))

            p = self._backend.fori_loop(0, section.rows.shape[0], body, p)
        return p

    def update_chunk(self, t: TableSweep, b: Index, x: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """(x, p) after an update, at beta = 1, of number b of the single variables; u (1, C)."""
        assert t.single is not None
        beta = self._xp.ones_like(u[0, :])
        return self._update(t.entries, t.single, b, x, p, beta, self.halves(t.entries, beta), u)

    def update_anywhere(self, t: TableSweep, x: Array, p: Array, u: Array, v: Array) -> tuple[Array, Array]:
        """(x, p) after an update, at beta = 1, of a variable that u (C,) chooses for each chain; v (C,)."""
        xp, take, single = self._xp, self._backend.take, t.single
        assert single is not None
        chain = xp.arange(x.shape[1], dtype=xp.int32)
        number = xp.astype(xp.floor(u * single.rows.shape[0]), xp.int32)
        number = xp.minimum(number, xp.zeros_like(number) + (single.rows.shape[0] - 1))
        flat = xp.reshape(x, (-1,))
        index = take(single.bases[:, :, 0], number)
        for axis in range(single.others.shape[1]):
            near = take(flat, take(single.others[:, axis, :, 0], number) * x.shape[1] + chain[:, None])
            index = index + take(single.steps[:, axis, :, 0], number) * near
        states = take(single.states[:, :, 0], number)
        every = index[:, :, None] + states[:, None, :] * take(single.strides[:, :, 0], number)[:, :, None]
        logits = xp.sum(take(t.entries.values, every), axis=1).T[:, None, :]
        weights = self._weights(states.T[:, None, :], logits, xp.ones_like(u))
        state, total = self._draw_states_and_totals(weights, v[None, :])
        where = take(single.rows[:, 0], number) * x.shape[1] + chain
        x = xp.reshape(self._backend.update(flat, where, state[0, :], donate=True), x.shape)
        if isinstance(p, tuple):
            return x, p
        places = take(single.places[:, :, 0], number).T * p.shape[1] + chain
        probabilities = xp.reshape((weights / total)[:, 0, :], (-1,))
        flat = self._backend.update(xp.reshape(p, (-1,)), xp.reshape(places, (-1,)), probabilities, donate=True)
        return x, xp.reshape(flat, p.shape)

    def log_transition(self, t: TableSweep, x: Array, mode: Array) -> Array:
        """(C,) log T(mode <- x): of a sweep at beta = 1 in which every draw is forced to `mode` (N,) int32."""
        total = self._xp.zeros_like(self.log_weights(t.entries, x))
        ones = total + 1.0
        shift = self.halves(t.entries, ones)
        for section in t.sections:

            def body(b: Index, carry: tuple[Array, Array], section: Section = section) -> tuple[Array, Array]:
                mixed, total = carry
                weights = self._chunk_weights(t.entries, section, b, mixed, ones, shift)
                rows = self._backend.take(section.rows, b)
                target = self._backend.take(mode, rows)[:, None] + self._xp.zeros_like(mixed[:1, :])
                chosen = self._xp.sum(self._xp.where(self._numbers(weights) == target, weights, 0.0), axis=0)
                never = chosen == 0
                share = self._xp.where(never, 1.0, chosen) / self._xp.where(never, 1.0, self._xp.sum(weights, axis=0))
                parts = self._xp.where(never, -self._xp.inf, self._xp.log(share))
                is_variable = self._backend.take(section.valid, b)[:, None] > 0
                total = total + self._xp.sum(self._xp.where(is_variable, parts, 0.0), axis=0)
                return self._backend.update(mixed, rows, target, donate=True), total

            x, total = self._backend.fori_loop(0, section.rows.shape[0], body, (x + 0, total))
        return total

    def log_weights(self, entries: Entries, x: Array, *, floored: bool = False) -> Array:
        """(C,) sums of the factors' entries, without the model's constant: d log p*^beta / d beta where floored."""
        xp = self._xp
        if entries.bases.shape[0] == 0:
            return xp.zeros(x.shape[1:], dtype=self._backend.real)
        index = entries.bases[:, None] + xp.zeros_like(x[:1, :]) + (entries.floored if floored else 0)
        for axis in range(entries.variables.shape[0]):
            near = self._backend.take(x, entries.variables[axis, :])
            index = index + entries.strides[axis, :][:, None] * near
        return xp.sum(self._backend.take(entries.values, index), axis=0)

    def halves(self, entries: Entries, beta: Array) -> Array:
        """(C,) int32: where the entries begin that a chain looks up, those with zeros or the floored ones."""
        return self._xp.astype(beta < 1, self._xp.int32) * entries.floored

    def _chunk_weights(
        self, entries: Entries, section: Section, b: Index, x: Array, beta: Array, shift: Array
    ) -> Array:
        """(K, w, C) what the states of a chunk's variables weigh at beta given the rest, the heaviest of each 1."""
        entries_of_states = self._backend.take(entries.values, self.places(section, b, x, shift))
        return self._weights(
            self._backend.take(section.states, b)[:, :, None], self._xp.sum(entries_of_states, axis=1), beta
        )

    def places(self, section: Section, b: Index, x: Array, shift: Array) -> Array:
        """(K, d, w, C) int32: where in `Entries.values` those of a chunk's variables stand; shift (C,) of `halves`."""
        take = self._backend.take
        index = take(section.bases, b)[:, :, None] + shift
        others, steps = take(section.others, b), take(section.steps, b)
        for axis in range(section.others.shape[1]):
            index = index + steps[axis, :, :][:, :, None] * take(x, others[axis, :, :])
        states = take(section.states, b)
        return index[None, ...] + states[:, None, :, None] * take(section.strides, b)[None, :, :, None]

    def _weights(self, states: Array, logits: Array, beta: Array) -> Array:
        xp = self._xp
        # Padding repeats the last state, which then differs from its own number.
        none = (states != self._numbers(states)) | (logits == -xp.inf)
        top = xp.max(xp.where(none, -xp.inf, logits), axis=0)
        top = xp.where(top == -xp.inf, 0.0, top)
        return xp.where(none, 0.0, xp.exp(beta * (xp.where(none, top, logits) - top)))

    def _numbers(self, weights: Array) -> Array:
        """0 … K - 1 along the first axis of three."""
        return self._xp.arange(weights.shape[0], dtype=self._xp.int32)[:, None, None]

    def _update(
        self, entries: Entries, section: Section, b: Index, x: Array, p: Array, beta: Array, shift: Array, u: Array
    ) -> tuple[Array, Array]:
        weights = self._chunk_weights(entries, section, b, x, beta, shift)
        states, total = self.choose(section, b, weights, x, u)
        x = self._backend.update(x, self._backend.take(section.rows, b), states, donate=True)
        # With hard zeros in a chain's state, no state of the variable may be left.
        whole = self._xp.where(total > 0, total, 1.0)
        return x, self._store_probabilities(section, b, p, weights / whole)

    def choose(self, section: Section, b: Index, weights: Array, x: Array, u: Array) -> tuple[Array, Array]:
        """(w, C) the next states of a chunk's variables, and the sums of their weights: the step of all sweeps.

        Args:
            section, b: the chunk.
            weights: (K, w, C) of the states given the rest.
            x: (N, C) before the step.
            u: (w, C) uniform.
        """
        return self._draw_states_and_totals(weights, u)

    def _draw_states_and_totals(self, weights: Array, u: Array) -> tuple[Array, Array]:
        """(states, their variables' sums of weights): no state of weight 0 is drawn, whatever is rounded."""
        xp = self._xp
        upto = xp.cumulative_sum(weights, axis=0)
        total = upto[-1, ...]
        # The second condition keeps a u near 1 from passing the last state of positive weight.
        beyond = (upto <= u * total) & (upto < total)
        return xp.sum(xp.astype(beyond, xp.int32), axis=0, dtype=xp.int32), total

    def _store_probabilities(self, section: Section, b: Index, p: Array, probabilities: Array) -> Array:
        if isinstance(p, tuple):
            return p
        places = self._xp.reshape(self._backend.take(section.places, b), (-1,))
        return self._backend.update(p, places, self._xp.reshape(probabilities, (-1, p.shape[1])), donate=True)
