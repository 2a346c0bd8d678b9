"""The generic program of Gibbs sampling of factor graphs; see `gibbs`."""

from __future__ import annotations

from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.gibbs.assembly import Wanted
from spinbench.methods.gibbs.graph_plan import GraphTables


class GraphState(NamedTuple):
    """What chains carry; parts that the settings do not need are ().

    Attributes:
        x: (N, C) int32.
        p: (R + 1, C) probabilities of what is reported given the rest, as of the last updates; the last row is none.
        log_t: (C,) log T(s* <- s) for s at the begin of the last sweep.
        position: () number of the next single update within its sweep, int.
        mode: (N, C) s* in every chain, for looks.
    """

    x: Array
    p: Array
    log_t: Array
    position: Array
    mode: Array


class GraphProgram:
    """Init, step and observe over a backend's arrays.

    Args:
        backend: the backend.
        wanted: what it does.
        bath: makes the steps; by default of heat-bath updates.
    """

    def __init__(self, backend: Backend, wanted: Wanted, bath: TableBath | None = None) -> None:
        self._backend = backend
        self._bath: TableBath = bath or backend.operations(TableBath)
        self._xp = backend.xp
        self._wanted = wanted

    def init(self, key: Key, t: GraphTables, start: Array) -> GraphState:
        """The chains' states are `start` itself."""
        xp = self._xp
        x = xp.astype(start, xp.int32)
        zeros = xp.zeros_like(start[0, :])
        p: Array = ()
        if self._wanted.averaged:
            p = t.blank[:, None] + zeros
            if self._wanted.random or self._wanted.single:
                p = self._bath.conditionals(t.sweep, x, p)
        mode = xp.zeros_like(x) + t.mode[:, None] if self._wanted.looks else ()
        return GraphState(x, p, zeros - xp.inf if self._wanted.chib else (), xp.zeros_like(t.mode[0]), mode)

    def states(self, t: GraphTables, state: GraphState) -> Array:
        """(N, C)."""
        return state.x

    def step(self, key: Key, t: GraphTables, state: GraphState) -> GraphState:
        """One sample."""
        return self._step(key, t, state, chib=self._wanted.chib)

    def warm(self, key: Key, t: GraphTables, state: GraphState) -> GraphState:
        """One step of burn-in; in single updates T is held from the begin of a sweep on."""
        return self._step(key, t, state, chib=self._wanted.chib and self._wanted.single)

    def observe(self, t: GraphTables, state: GraphState) -> dict[str, Array]:
        """p or s: (R, C), log_t: (C,)."""
        if self._wanted.averaged:
            seen = {"p": state.p[:-1, :]}
        else:
            there = self._backend.take(state.x, t.variables) == t.states[:, None]
            seen = {"s": self._xp.astype(there, self._backend.real)}
        return seen | ({"log_t": state.log_t} if self._wanted.chib else {})

    def look(self, key: Key, t: GraphTables, state: GraphState) -> dict[str, Array]:
        """log T(s* <- s) of the chains, and of as many draws of R(. <- s*)."""
        drawn = self._bath.sweep(key, t.sweep, state.mode + 0, self._ones(state.x), backward=True)
        return {
            "log_t": self._bath.log_transition(t.sweep, state.x, t.mode),
            "log_r": self._bath.log_transition(t.sweep, drawn, t.mode),
        }

    def temper(self, key: Key, t: GraphTables, state: GraphState, beta: Array) -> GraphState:
        """A sweep in the layout's order, whatever the scan."""
        x = self._bath.sweep(key, t.sweep, state.x, self._ones(state.x) * beta)
        stale = self._wanted.averaged and (self._wanted.random or self._wanted.single)
        return state._replace(x=x, p=self._bath.conditionals(t.sweep, x, state.p) if stale else state.p)

    def slope(self, t: GraphTables, state: GraphState) -> dict[str, Array]:
        """The sum of the factors' log entries."""
        return {"slope": self._bath.log_weights(t.sweep.entries, state.x, floored=True)}

    def _step(self, key: Key, t: GraphTables, state: GraphState, *, chib: bool) -> GraphState:
        backend, xp = self._backend, self._xp
        if not self._wanted.single:
            log_t = self._bath.log_transition(t.sweep, state.x, t.mode) if chib else state.log_t
            if self._wanted.random:
                x, p = self._random_updates(key, t, state.x, state.p)
            else:
                one = self._ones(state.x)
                x, p = self._bath.sweep_and_conditionals(key, t.sweep, state.x, state.p, one)
            return state._replace(x=x, p=p, log_t=log_t)
        if chib:
            begins = xp.astype(state.position == 0, xp.int32)
            log_t = backend.fori_loop(
                0, begins, lambda _, __: self._bath.log_transition(t.sweep, state.x, t.mode), state.log_t
            )
            state = state._replace(log_t=log_t)
        if t.sweep.single is None:  # no variable has two states
            return state
        u = backend.uniform(key, (2, state.x.shape[1]))
        if self._wanted.random:
            x, p = self._bath.update_anywhere(t.sweep, state.x, state.p, u[0, :], u[1, :])
        else:
            x, p = self._bath.update_chunk(t.sweep, state.position, state.x, state.p, u[1:, :])
        return state._replace(x=x, p=p, position=(state.position + 1) % t.sweep.single.rows.shape[0])

    def _ones(self, x: Array) -> Array:
        """(C,)."""
        return self._xp.ones(x.shape[1:], dtype=self._backend.real)

    def _random_updates(self, key: Key, t: GraphTables, x: Array, p: Array) -> tuple[Array, Array]:
        if t.sweep.single is None:
            return x, p
        units = t.sweep.single.rows.shape[0]
        u = self._backend.uniform(key, (2 * units, x.shape[1]))

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            own, other = self._backend.take(u, i), self._backend.take(u, units + i)
            return self._bath.update_anywhere(t.sweep, *carry, own, other)

        updated: tuple[Array, Array] = self._backend.fori_loop(0, units, body, (x, p))
        return updated
