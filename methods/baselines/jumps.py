"""The generic program of locally balanced jumps: rates of all single changes, kept up to date near each jump; and what
it is planned with: whose rates a change of one variable touches, and by which entries."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Index, Key
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import Section
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.chain_program import ChainProgram


class Neighbourhoods(NamedTuple):
    """Of each of N variables v up to M variables u, itself the first, and up to S factors that hold both.

    Spare factors have the entry 0 of `FactorTables.values` with a 0 appended, spare variables are v itself.

    Attributes:
        rows: (N, M) int32, u.
        bases: (N, M, S) int32, where the factor's entries begin.
        strides, moved: (N, M, S) int32, of u and of v.
        others: (N, o, M, S) int32, the factor's other variables; steps: (N, o, M, S) int32, their strides.
    """

    rows: Array
    bases: Array
    strides: Array
    moved: Array
    others: Array
    steps: Array


class Tables(NamedTuple):
    """What `Zanella.plan` prepares; K is the largest number of states.

    Attributes:
        sections: of all variables of two states or more.
        values: (P, T + 1) log tables and a 0; where there are zeros, these as 0, and a second row with 1 for each.
        neighbourhoods: of each variable.
        last: (N, 1) int32, its last state; exists: (N, K) 1 where it has the state, else 0.
        jumps: (J,) 0, for its length, the jumps of a step.
        variables, states: (R,) int32, what is reported.
    """

    sections: tuple[Section, ...]
    values: Array
    neighbourhoods: Neighbourhoods
    last: Array
    exists: Array
    jumps: Array
    variables: Array
    states: Array


def build_neighbourhoods(tables: FactorTables) -> Neighbourhoods:
    """Of all variables."""
    shared = _factors_by_neighbour(tables)
    count = len(tables.cardinalities)
    max_neighbours = 1 + max(map(len, shared), default=0)
    max_factors = max((len(factors) for neighbours in shared for factors in neighbours.values()), default=1)
    max_others = max(int(np.diff(tables.scope_starts).max(initial=2)) - 2, 0)
    rows = np.repeat(np.arange(count)[:, None], max_neighbours, axis=1)
    bases = np.full((count, max_neighbours, max_factors), len(tables.values))
    strides, moved = np.zeros((2, count, max_neighbours, max_factors), dtype=np.int64)
    others, steps = np.zeros((2, count, max_others, max_neighbours, max_factors), dtype=np.int64)
    for v, factors_by_neighbour in enumerate(shared):
        for m, (u, factors) in enumerate(factors_by_neighbour.items(), start=1):
            rows[v, m] = u
            for s, f in enumerate(factors):
                begin, end = tables.scope_starts[f : f + 2]
                scope, step = tables.scope_variables[begin:end], tables.scope_strides[begin:end]
                bases[v, m, s] = tables.offsets[f]
                strides[v, m, s], moved[v, m, s] = step[scope == u][0], step[scope == v][0]
                rest = (scope != u) & (scope != v)
                others[v, : rest.sum(), m, s], steps[v, : rest.sum(), m, s] = scope[rest], step[rest]
    return Neighbourhoods(*(part.astype(np.int32) for part in (rows, bases, strides, moved, others, steps)))


def _factors_by_neighbour(tables: FactorTables) -> list[dict[int, list[int]]]:
    """For each variable its neighbours, and the factors that they share; variables of one state are left out."""
    by_neighbour: list[dict[int, list[int]]] = [{} for _ in tables.cardinalities]
    for f in range(len(tables.offsets) - 1):
        scope = tables.scope_variables[tables.scope_starts[f] : tables.scope_starts[f + 1]]
        free = scope[tables.cardinalities[scope] > 1].tolist()
        for v, u in permutations(free, 2):
            by_neighbour[v].setdefault(u, []).append(f)
    return by_neighbour


# No jump is made where the sum of rates is below this: 1 / rate would overflow in float32.
MIN_TOTAL_RATE = 1e-30


class State(NamedTuple):
    """Attributes: x (N, C) int32; of the last step, s (R, C) time in states, w (C,) time, stuck (C,) no jumps."""

    x: Array
    s: Array
    w: Array
    stuck: Array


class Walk(NamedTuple):
    """Within a step. Flat arrays: x (N C,) of the state, logits of N K C states for each table, rates (N K C,)."""

    state: State
    logits: tuple[Array, ...]
    rates: Array


class Jumps(ChainProgram):
    """Init, step and observe."""

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        none = self._xp.zeros_like(start[0, :])
        s = self._xp.zeros((t.variables.shape[0], start.shape[1]), dtype=self._backend.real)
        return State(self._xp.astype(start, self._xp.int32), s, none, none)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Zanella.reductions`."""
        return {"s": state.s, "w": state.w, "stuck": state.stuck}

    def step(self, key: Key, t: Tables, state: State) -> State:
        """As many jumps as `t.jumps` is long."""
        return self.make_jumps(t, self._backend.uniform(key, (t.jumps.shape[0], state.x.shape[1])), state.x)

    def make_jumps(self, t: Tables, u: Array, x: Array) -> State:
        """Jumps from x (N, C) by uniform numbers u (J, C)."""
        xp = self._xp
        logits = self._compute_logits(t, x)
        levels = xp.arange(t.exists.shape[1], dtype=xp.int32)[None, :, None]
        shape = (*t.exists.shape, x.shape[1])
        rates = self._barker_rates(
            tuple(xp.reshape(part, shape) for part in logits), levels == x[:, None, :], t.exists[:, :, None], 1
        )
        none = xp.zeros_like(u[0, :])
        s = xp.zeros((t.variables.shape[0], u.shape[1]), dtype=self._backend.real)
        walk = Walk(State(xp.reshape(x, (-1,)), s, none, none), logits, xp.reshape(rates, (-1,)))
        walked: Walk = self._backend.fori_loop(
            0, t.jumps.shape[0], lambda j, walk: self._jump(t, self._backend.take(u, j), walk), walk
        )
        return walked.state._replace(x=xp.reshape(walked.state.x, x.shape))

    def _compute_logits(self, t: Tables, x: Array) -> tuple[Array, ...]:
        """(N K C,) of each table: sums of its entries at the states of each variable given the rest."""
        xp, take, (count, max_states) = self._xp, self._backend.take, t.exists.shape
        blank = xp.zeros((count * max_states, x.shape[1]), dtype=self._backend.real)
        shift = xp.zeros_like(x[0, :])
        parts, bath = range(t.values.shape[0]), TableBath(self._backend)
        logits = tuple(blank + 0 for _ in parts)
        for section in t.sections:
            levels = xp.arange(section.states.shape[1], dtype=xp.int32)[:, None]

            def body(
                b: Index, logits: tuple[Array, ...], section: Section = section, levels: Array = levels
            ) -> tuple[Array, ...]:
                places = bath.places(section, b, x, shift)
                rows = xp.reshape(take(section.rows, b)[None, :] * max_states + levels, (-1,))
                sums = (xp.reshape(xp.sum(take(t.values[p, :], places), axis=1), (-1, x.shape[1])) for p in parts)
                return tuple(
                    self._backend.update(f, rows, new, donate=True) for f, new in zip(logits, sums, strict=True)
                )

            logits = self._backend.fori_loop(0, section.rows.shape[0], body, logits)
        return tuple(xp.reshape(part, (-1,)) for part in logits)

    def _barker_rates(self, logits: tuple[Array, ...], is_current: Array, exists: Array, axis: int) -> Array:
        """Barker's, of the states along the axis, `is_current` being the state that is left."""
        xp = self._xp
        current = xp.sum(xp.where(is_current, logits[0], 0.0), axis=axis, keepdims=True)
        change = logits[0] - current
        # σ(change), computed with exponentials of negative numbers only, which do not overflow.
        rates = xp.exp(xp.where(change < 0, change, 0.0)) / (1 + xp.exp(-xp.abs(change)))
        blocked = is_current | (exists == 0)
        return xp.where(blocked | (logits[1] > 0.5) if len(logits) > 1 else blocked, 0.0, rates)

    def _jump(self, t: Tables, u: Array, walk: Walk) -> Walk:
        xp, take, update, (x, s, w, stuck) = self._xp, self._backend.take, self._backend.update, walk.state
        max_states, chains = t.exists.shape[1], u.shape[0]
        chain = xp.arange(chains, dtype=xp.int32)
        cumulative = xp.cumulative_sum(xp.reshape(walk.rates, (-1, chains)), axis=0)
        total = cumulative[-1, :]
        moving = total > MIN_TOTAL_RATE
        time = 1 / xp.where(moving, total, 1.0)
        in_state = take(xp.reshape(x, (-1, chains)), t.variables) == t.states[:, None]
        # The second condition keeps rounding from choosing an index beyond the last state with a positive rate.
        choice = xp.sum(xp.astype((cumulative <= u * total) & (cumulative < total), xp.int32), axis=0, dtype=xp.int32)
        v = choice // max_states
        old = take(x, v * chains + chain)
        new = xp.where(moving, choice - v * max_states, old)
        x = update(x, v * chains + chain, new, donate=True)
        # Axes of `rows`: (C, M); of the arrays below: (C, M, S, K).
        rows = take(t.neighbourhoods.rows, v)
        places = self._entry_positions(t, v, rows, x, chain)
        moved = take(t.neighbourhoods.moved, v)[..., None]
        levels = xp.arange(max_states, dtype=xp.int32)
        flat = (rows[:, :, None] * max_states + levels) * chains + chain[:, None, None]
        after, before = (places + state[:, None, None, None] * moved for state in (new, old))
        new_logits = tuple(
            take(stored, flat) + xp.sum(take(t.values[p, :], after) - take(t.values[p, :], before), axis=2)
            for p, stored in enumerate(walk.logits)
        )
        is_current = levels == take(x, rows * chains + chain[:, None])[:, :, None]
        rates = xp.reshape(self._barker_rates(new_logits, is_current, take(t.exists, rows), 2), (-1,))
        flat = xp.reshape(flat, (-1,))
        statistics = s + xp.where(in_state, time, 0.0), w + time, stuck + xp.astype(~moving, time.dtype)
        return Walk(
            State(x, *statistics),
            logits=tuple(
                update(stored, flat, xp.reshape(part, (-1,)), donate=True)
                for stored, part in zip(walk.logits, new_logits, strict=True)
            ),
            rates=update(walk.rates, flat, rates, donate=True),
        )

    def _entry_positions(self, t: Tables, v: Array, rows: Array, x: Array, chain: Array) -> Array:
        """(C, M, S, K) of the factors that v shares with its neighbours, at each of their states and state 0 of v."""
        xp, take = self._xp, self._backend.take
        index = take(t.neighbourhoods.bases, v)
        others, steps = take(t.neighbourhoods.others, v), take(t.neighbourhoods.steps, v)
        for axis in range(others.shape[1]):
            neighbour_states = take(x, others[:, axis, :, :] * chain.shape[0] + chain[:, None, None])
            index = index + steps[:, axis, :, :] * neighbour_states
        levels = xp.arange(t.exists.shape[1], dtype=xp.int32)
        # Indices beyond a variable's last state read the entry of its last state, since the table ends there; their
        # rates are set to 0.
        states = xp.minimum(levels, take(t.last, rows))
        return index[..., None] + states[:, :, None, :] * take(t.neighbourhoods.strides, v)[..., None]
