"""The generic program of Gibbs sampling; see `gibbs`."""

from __future__ import annotations

from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.sweep_layouts import Scan
from spinbench.methods.gibbs.assembly import Wanted
from spinbench.methods.gibbs.tempering import Slopes, tempered
from spinbench.methods.gibbs.transition import Tables, Transition


class State(NamedTuple):
    """What chains carry; parts that the settings do not need are ().

    Attributes:
        s: (N, C).
        p: (N, C) p(s_i = 1 | rest) as of the last update of i.
        log_t: (C,) log T(s* <- s) for s at the begin of the last sweep.
        position: () number of the next single update within its sweep, int.
        mode: (N, C) s* in every chain, for looks. Not made when it is needed: XLA (jaxlib 0.10.2 on a CPU) overwrites
            what it broadcasts inside a sweep while other blocks still read it.
    """

    s: Array
    p: Array
    log_t: Array
    position: Array
    mode: Array


class GibbsProgram:
    """Init, step and observe over a backend's arrays.

    Args:
        backend: the backend.
        wanted: what it does.
    """

    def __init__(self, backend: Backend, wanted: Wanted) -> None:
        self._backend = backend
        self._bath = Transition(backend)
        self._xp = backend.xp
        self._wanted = wanted
        self._slopes = Slopes(backend)

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        xp = self._xp
        s = xp.take(start, t.order, axis=0)
        zeros = xp.zeros_like(s[0, :])
        count = xp.zeros_like(t.order[0])
        p: Array = ()
        if self._wanted.averaged:
            p = self._bath.conditionals(t.sweep, s) if self._wanted.random or self._wanted.single else xp.zeros_like(s)
        mode = xp.zeros_like(s) + t.mode[:, None] if self._wanted.looks else ()
        return State(s, p, zeros if self._wanted.chib else (), count if self._wanted.single else (), mode)

    def warm(self, key: Key, t: Tables, state: State) -> State:
        """A step; a sweep without log T."""
        return self._step(key, t, state, chib=self._wanted.chib and self._wanted.single)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """One sample."""
        return self._step(key, t, state, chib=self._wanted.chib)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Gibbs.reductions`."""
        seen = {"p": state.p} if self._wanted.averaged else {"s": state.s}
        if self._wanted.chib:
            seen["log_t"] = state.log_t
        return seen

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """log_t: log T(s* <- s) of the chains; log_r: the same of as many draws of R(. <- s*)."""
        drawn = self._bath.sweep(key, t.sweep, state.mode + 0.0, backward=True)  # sweeps may write into their states
        return {"log_t": self._bath.log_transition(t, state.s), "log_r": self._bath.log_transition(t, drawn)}

    def temper(self, key: Key, t: Tables, state: State, beta: Array) -> State:
        """A sweep by colour or level, whatever the scan."""
        s = self._bath.sweep(key, tempered(t.sweep, beta), state.s, backward=False)
        stale = self._wanted.averaged and (self._wanted.random or self._wanted.single)
        return state._replace(s=s, p=self._bath.conditionals(t.sweep, s) if stale else state.p)

    def slope(self, t: Tables, state: State) -> dict[str, Array]:
        """log p*, less the model's constant."""
        return {"slope": self._slopes.of(t.sweep, state.s)}

    def states(self, t: Tables, state: State) -> Array:
        """(N, C), variable by variable."""
        return self._xp.take(state.s, self._xp.argsort(t.order), axis=0)

    # Steps

    def _step(self, key: Key, t: Tables, state: State, *, chib: bool) -> State:
        backend, xp = self._backend, self._xp
        main = backend.fold_in(key, 0)
        if not self._wanted.single:
            if self._wanted.random:
                log_t = self._bath.log_transition(t, state.s) if chib else state.log_t
                s, p = self._random_updates(main, t, state.s, state.p)
                return state._replace(s=s, p=p, log_t=log_t)
            s, p, log_t = self._sweep_and_log_t(main, t, state, chib=chib)
            return state._replace(s=s, p=p, log_t=log_t)
        if chib:
            begins = xp.astype(state.position == 0, xp.int32)
            log_t = backend.fori_loop(0, begins, lambda _, __: self._bath.log_transition(t, state.s), state.log_t)
            state = state._replace(log_t=log_t)
        scan: Any = t.single
        u = backend.uniform(main, (2, state.s.shape[1]))
        if self._wanted.random:
            s, p = self._bath.update_anywhere(scan, state.s, state.p, u[0, :], u[1, :])
        else:
            s, p = self._bath.update_chunk(scan, state.position, state.s, state.p, u[1:, :])
        position = (state.position + 1) % scan.rows.shape[0]
        return state._replace(s=s, p=p, position=position)

    def _sweep_and_log_t(self, key: Key, t: Tables, state: State, *, chib: bool) -> tuple[Array, Array, Array]:
        u = self._backend.uniform(key, state.s.shape)
        if isinstance(t.sweep, Scan):
            log_t = self._bath.log_transition(t, state.s) if chib else state.log_t
            s, p = self._bath.sweep_chunks(t.sweep, state.s, state.p, u, backward=False)
            return s, p, log_t
        fields = self._bath.first_fields(t.sweep, state.s)
        log_t = self._bath.log_transition_of_blocks(t, t.sweep, state.s, fields) if chib else state.log_t
        s, p = self._bath.sweep_blocks(t.sweep, state.s, u, fields)
        return s, self._xp.concat(p, axis=0) if self._wanted.averaged else (), log_t

    def _random_updates(self, key: Key, t: Tables, s: Array, p: Array) -> tuple[Array, Array]:
        scan: Any = t.single
        count = scan.rows.shape[0]
        u = self._backend.uniform(key, (2 * count, s.shape[1]))

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return self._bath.update_anywhere(scan, *carry, self._backend.take(u, i), self._backend.take(u, count + i))

        updated: tuple[Array, Array] = self._backend.fori_loop(0, count, body, (s, p))
        return updated
