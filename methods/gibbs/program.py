"""The generic program of Gibbs sampling; see `gibbs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from spinbench.api import Array, Backend, Index, Key, Program, Tables
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps


class ProgramOptions(NamedTuple):
    """What a program does.

    Attributes:
        random_scan: random scan.
        single_updates: a step is one update, not a sweep.
        rao_blackwell: keep p (Rao-Blackwellised marginals).
        has_probes: look from both sides, at chains and at draws of R(. <- s*).
        has_temperatures: know temperatures.
        records_log_t: keep log T of every step.
    """

    random_scan: bool
    single_updates: bool
    rao_blackwell: bool
    has_probes: bool
    has_temperatures: bool
    records_log_t: bool


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

    def __init__(
        self, backend: Backend, options: ProgramOptions, sweeps_for: Callable[[Tables], PairSweeps | GraphSweeps]
    ) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._options, self._sweeps_for = options, sweeps_for
        self._recomputes_conditionals = options.rao_blackwell and (options.random_scan or options.single_updates)

    def program(self) -> Program:
        """The contract's view."""
        program = Program(self.init, self.step, self.observe, self.warm, states=self.states)
        if self._options.has_temperatures:
            program = replace(program, temper=self.temper, slope=self.slope)
        if self._options.has_probes:
            return replace(program, look=self.look)
        return program

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        xp, sweeps, options = self._xp, self._sweeps_for(t), self._options
        x, none = sweeps.arrange_states(t, start), 0.0 * start[0, :]
        p: Array = sweeps.initial_conditionals(t, x) if options.rao_blackwell else ()
        if self._recomputes_conditionals:
            p = sweeps.conditionals(t, x, p)
        position = ()
        if options.single_updates:
            position = xp.zeros_like(start[0, 0], dtype=xp.int32)
        mode = xp.zeros_like(x) + t.mode[:, None] if options.has_probes else ()
        return State(x, p, none if options.records_log_t else (), position, mode)

    def states(self, t: Tables, state: State) -> Array:
        """(N, C), variable by variable."""
        return self._sweeps_for(t).states_by_variable(t, state.x)

    def warm(self, key: Key, t: Tables, state: State) -> State:
        """A step; a sweep without log T, which single updates hold from the begin of a sweep on."""
        return self._make_sample(
            key, t, state, records_log_t=self._options.records_log_t and self._options.single_updates
        )

    def step(self, key: Key, t: Tables, state: State) -> State:
        """One sample."""
        return self._make_sample(key, t, state, records_log_t=self._options.records_log_t)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Gibbs.reductions`."""
        statistics = {"p" if self._options.rao_blackwell else "s": self._sweeps_for(t).statistic(t, state.x, state.p)}
        if self._options.records_log_t:
            statistics["log_t"] = state.log_t
        return statistics

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """log_t: log T(s* <- s) of the chains; log_r: the same of as many draws of R(. <- s*)."""
        sweeps = self._sweeps_for(t)
        # A copy, since sweeps may write into their states.
        reversed_states = sweeps.sweep_backward(key, t, state.mode + 0)
        return {
            "log_t": sweeps.log_transition_to_mode(t, state.x),
            "log_r": sweeps.log_transition_to_mode(t, reversed_states),
        }

    def temper(self, key: Key, t: Tables, state: State, beta: Array) -> State:
        """A sweep by colour or level, whatever the scan."""
        sweeps = self._sweeps_for(t)
        x, _ = sweeps.sweep_forward(
            key, t, state.x, (), beta + self._xp.zeros(state.x.shape[1:], dtype=self._backend.real)
        )
        p = state.p
        if self._recomputes_conditionals:
            p = sweeps.conditionals(t, x, state.p)
        return state._replace(x=x, p=p)

    def slope(self, t: Tables, state: State) -> dict[str, Array]:
        """log p*, less the model's constant."""
        return {"slope": self._sweeps_for(t).slope(t, state.x)}

    def _make_sample(self, key: Key, t: Tables, state: State, *, records_log_t: bool) -> State:
        backend, sweeps, x, p = self._backend, self._sweeps_for(t), state.x, state.p
        units = sweeps.count_single_updates(t)
        if not self._options.single_updates:
            log_t = sweeps.log_transition_to_mode(t, x) if records_log_t else state.log_t
            if self._options.random_scan:
                x, p = self._sweep_in_random_order(key, t, x, p)
            else:
                x, p = sweeps.sweep_forward(key, t, x, p)
            return state._replace(x=x, p=p, log_t=log_t)
        if records_log_t:
            # A loop of 0 or 1 iterations replaces a branch, which generic programs do not have.
            begins = self._xp.astype(state.position == 0, self._xp.int32)
            log_t = backend.fori_loop(0, begins, lambda _, __: sweeps.log_transition_to_mode(t, x), state.log_t)
            state = state._replace(log_t=log_t)
        # Every variable has a single state.
        if not units:
            return state
        u = backend.uniform(key, (2, x.shape[1]))
        if self._options.random_scan:
            x, p = sweeps.update_random_variable(t, x, p, u[0, :], u[1, :])
        else:
            x, p = sweeps.update_next_variable(t, state.position, x, p, u[1, :])
        return state._replace(x=x, p=p, position=(state.position + 1) % units)

    def _sweep_in_random_order(self, key: Key, t: Tables, x: Array, p: Array) -> tuple[Array, Array]:
        sweeps, take = self._sweeps_for(t), self._backend.take
        units = sweeps.count_single_updates(t)
        u = self._backend.uniform(key, (2 * units, x.shape[1]))

        def body(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return sweeps.update_random_variable(t, *carry, take(u, i), take(u, units + i))

        updated: tuple[Array, Array] = self._backend.fori_loop(0, units, body, (x, p))
        return updated
