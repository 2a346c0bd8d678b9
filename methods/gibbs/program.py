"""The generic program of Gibbs sampling; see `gibbs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps


class Wanted(NamedTuple):
    """What a program does.

    Attributes:
        random: random scan.
        single: a step is one update, not a sweep.
        averaged: keep p (Rao-Blackwellised marginals).
        looks: look from both sides, at chains and at draws of R(. <- s*).
        climbs: know temperatures.
        chib: keep log T of every step.
    """

    random: bool
    single: bool
    averaged: bool
    looks: bool
    climbs: bool
    chib: bool


class State(NamedTuple):
    """What chains carry; parts that the settings do not need are ().

    Attributes:
        x: (N, C) states.
        p: conditional probabilities as of the last updates.
        log_t: (C,) log T(s* <- s) for s at the begin of the last sweep.
        position: () number of the next single update within its sweep, int.
        mode: (N, C) s* in every chain, for looks. Not made when it is needed: XLA (jaxlib 0.10.2 on a CPU) overwrites
            what it broadcasts inside a sweep while other blocks still read it.
    """

    x: Array
    p: Array
    log_t: Array
    position: Array
    mode: Array


class GibbsProgram:
    """Init, step and observe over a backend's arrays.

    Args:
        backend: the backend.
        wanted: what it does.
        sweeps: of the tables.
    """

    def __init__(self, backend: Backend, wanted: Wanted, sweeps: Callable[[Any], PairSweeps | GraphSweeps]) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._wanted, self._of = wanted, sweeps
        self._stale = wanted.averaged and (wanted.random or wanted.single)

    def program(self) -> Program:
        """The contract's view."""
        program = Program(self.init, self.step, self.observe, self.warm, states=self.states)
        if self._wanted.climbs:
            program = replace(program, temper=self.temper, slope=self.slope)
        return replace(program, look=self.look) if self._wanted.looks else program

    def init(self, key: Key, t: Any, start: Array) -> State:
        """The chains' states are `start` itself."""
        xp, sweeps, wanted = self._xp, self._of(t), self._wanted
        x, none = sweeps.begin(t, start), 0.0 * start[0, :]
        p: Array = sweeps.unseen(t, x) if wanted.averaged else ()
        if self._stale:
            p = sweeps.conditionals(t, x, p)
        position = xp.zeros_like(start[0, 0], dtype=xp.int32) if wanted.single else ()
        mode = xp.zeros_like(x) + t.mode[:, None] if wanted.looks else ()
        return State(x, p, none if wanted.chib else (), position, mode)

    def states(self, t: Any, state: State) -> Array:
        """(N, C), variable by variable."""
        return self._of(t).states(t, state.x)

    def warm(self, key: Key, t: Any, state: State) -> State:
        """A step; a sweep without log T, which single updates hold from the begin of a sweep on."""
        return self._step(key, t, state, chib=self._wanted.chib and self._wanted.single)

    def step(self, key: Key, t: Any, state: State) -> State:
        """One sample."""
        return self._step(key, t, state, chib=self._wanted.chib)

    def observe(self, t: Any, state: State) -> dict[str, Array]:
        """The statistics of `Gibbs.reductions`."""
        seen = {"p" if self._wanted.averaged else "s": self._of(t).reported(t, state.x, state.p)}
        return seen | ({"log_t": state.log_t} if self._wanted.chib else {})

    def look(self, key: Key, t: Any, state: State) -> dict[str, Array]:
        """log_t: log T(s* <- s) of the chains; log_r: the same of as many draws of R(. <- s*)."""
        sweeps = self._of(t)
        drawn = sweeps.back(key, t, state.mode + 0)  # sweeps may write into their states
        return {"log_t": sweeps.log_transition(t, state.x), "log_r": sweeps.log_transition(t, drawn)}

    def temper(self, key: Key, t: Any, state: State, beta: Array) -> State:
        """A sweep by colour or level, whatever the scan."""
        sweeps = self._of(t)
        x, _ = sweeps.advance(key, t, state.x, (), beta + self._xp.zeros(state.x.shape[1:], dtype=self._backend.real))
        return state._replace(x=x, p=sweeps.conditionals(t, x, state.p) if self._stale else state.p)

    def slope(self, t: Any, state: State) -> dict[str, Array]:
        """log p*, less the model's constant."""
        return {"slope": self._of(t).slope(t, state.x)}

    def _step(self, key: Key, t: Any, state: State, *, chib: bool) -> State:
        backend, sweeps, x, p = self._backend, self._of(t), state.x, state.p
        units = sweeps.units(t)
        if not self._wanted.single:
            log_t = sweeps.log_transition(t, x) if chib else state.log_t
            x, p = self._random_updates(key, t, x, p) if self._wanted.random else sweeps.advance(key, t, x, p)
            return state._replace(x=x, p=p, log_t=log_t)
        if chib:
            begins = self._xp.astype(state.position == 0, self._xp.int32)
            log_t = backend.fori_loop(0, begins, lambda _, __: sweeps.log_transition(t, x), state.log_t)
            state = state._replace(log_t=log_t)
        if not units:  # no variable has two states
            return state
        u = backend.uniform(key, (2, x.shape[1]))
        if self._wanted.random:
            x, p = sweeps.update_anywhere(t, x, p, u[0, :], u[1, :])
        else:
            x, p = sweeps.update_next(t, state.position, x, p, u[1, :])
        return state._replace(x=x, p=p, position=(state.position + 1) % units)

    def _random_updates(self, key: Key, t: Any, x: Array, p: Array) -> tuple[Array, Array]:
        sweeps, take = self._of(t), self._backend.take
        units = sweeps.units(t)
        u = self._backend.uniform(key, (2 * units, x.shape[1]))

        def body(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return sweeps.update_anywhere(t, *carry, take(u, i), take(u, units + i))

        updated: tuple[Array, Array] = self._backend.fori_loop(0, units, body, (x, p))
        return updated
