"""Sweeps of blocks over a backend's arrays: buckets one after another, each a table (S, K, C) for all C chains."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from spinbench.api import Array, Backend, Index, Key, Program
from spinbench.methods.blocks.buckets import BucketElimination
from spinbench.methods.blocks.tables import Tables

# Number of sweeps of the descent to s*, at inverse temperatures 1, 2, 4, …, 32. At 32 a draw with the uniform number ½
# picks the likeliest state.
DESCENT_SWEEPS = 6


class State(NamedTuple):
    """What chains carry.

    Attributes:
        x: (N, C) states, int.
        p: (N K, C) probabilities of states given what the blocks that hold the variable were drawn from.
        mode: (N, C) s* in every chain.
        weight: (C,) log p*(s*) less the model's constant, in every chain.
    """

    x: Array
    p: Array
    mode: Array
    weight: Array


class BlocksProgram:
    """Init, step and observe, with what logs of Z need."""

    def __init__(self, backend: Backend, has_probes: bool) -> None:
        self._backend = backend
        self._xp = backend.xp
        self._buckets = BucketElimination(backend)
        self._has_probes = has_probes

    def program(self) -> Program:
        """As the settings ask."""
        program = Program(
            self.init,
            self.step,
            self.observe,
            temper=self.temper,
            slope=self.slope,
            states=lambda t, state: state.x,
        )
        if self._has_probes:
            return replace(program, adapt=self.adapt, look=self.look)
        return program

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """From states, with s* where a descent from them ends."""
        xp = self._xp
        x = xp.astype(start, t.variable.dtype)
        p = xp.zeros((start.shape[0] * t.states.shape[0], start.shape[1]), dtype=self._backend.real)
        state = State(x, p, x, xp.zeros_like(start[0, :]) - xp.inf)
        if not self._has_probes:
            return state
        return self._update_mode(t, state)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """Every block once."""
        x, p = self.sweep(key, t, state.x, state.p)
        return state._replace(x=x, p=p)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """p of all states but the first of each variable."""
        return {"p": self._backend.take(state.p, t.rows)}

    def sweep(
        self,
        key: Key,
        t: Tables,
        x: Array,
        p: Array = (),
        beta: Array | None = None,
        fixed_uniform: float | None = None,
    ) -> tuple[Array, Array]:
        """Every block once.

        Args:
            key: of the draws.
            t: tables.
            x: (N, C) states.
            p: (N K, C), to be replaced by the probabilities before each draw; (): nothing is wanted.
            beta: (C,) inverse temperatures of the chains; None: all are 1, which takes no exponentials of factors.
            fixed_uniform: takes the place of all random numbers.

        Returns:
            x and p.
        """
        backend, xp, shape = self._backend, self._xp, (t.places.shape[0], x.shape[1])
        updates_marginals = not isinstance(p, tuple)

        def body(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, p = carry
            block = backend.take(t.sweep, i)
            tables = self._buckets.eliminate_block(t, block, x, beta)
            if updates_marginals:
                p = self._buckets.add_marginals(t, block, tables, p)
            if fixed_uniform is None:
                u = backend.uniform(backend.fold_in(key, i), shape)
            else:
                u = xp.full(shape, fixed_uniform, dtype=backend.real)
            return self._buckets.draw_block(t, block, tables, x, u), p

        begin = (x, xp.zeros_like(p) if updates_marginals else p)
        swept: tuple[Array, Array] = backend.fori_loop(0, t.sweep.shape[0], body, begin)
        return swept

    def adapt(self, t: Tables, state: State, last: bool) -> State:
        """At the end of burn-in s* is looked for once more."""
        if not last:
            return state
        return self._update_mode(t, state)

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """log T(s* <- s) / p*(s*) at the chains' states, and at what sweeps in reverse order make of s*."""
        xp, chains = self._xp, state.x.shape[1]
        reversed_states = self._sweep_in_reverse(key, t, state.mode + 0)
        both, mode = (xp.concat(pair, axis=1) for pair in ((state.x, reversed_states), (state.mode, state.mode)))
        logs = self._log_transition_to_mode(t, both, mode)
        return {"log_t": logs[:chains] - state.weight, "log_r": logs[chains:] - state.weight}

    def temper(self, key: Key, t: Tables, state: State, beta: Array) -> State:
        """A sweep at β, a number or (C,)."""
        beta = beta + self._xp.zeros_like(state.weight)
        return state._replace(x=self.sweep(key, t, state.x, beta=beta)[0])

    def slope(self, t: Tables, state: State) -> dict[str, Array]:
        """log p*, less the model's constant."""
        return {"slope": self._buckets.log_weight(t, state.x)}

    def _update_mode(self, t: Tables, state: State) -> State:
        """With the likeliest of s* and the ends of all chains' descents for s*."""
        backend, xp = self._backend, self._xp

        def body(i: Index, x: Array) -> Array:
            beta = xp.zeros_like(state.weight) + 2.0 ** xp.astype(xp.asarray(i), backend.real)
            return self.sweep(None, t, x, beta=beta, fixed_uniform=0.5)[0]

        x = backend.fori_loop(0, DESCENT_SWEEPS, body, state.x)
        weight = self._buckets.log_weight(t, x)
        best = xp.argmax(weight)
        better = weight[best] > state.weight
        mode = xp.where(better[None, :], backend.take(x.T, best)[:, None], state.mode)
        return state._replace(mode=mode, weight=xp.where(better, weight[best], state.weight))

    def _log_transition_to_mode(self, t: Tables, x: Array, mode: Array) -> Array:
        """(C,) log of how likely the transition's blocks, the first one last, end in s*."""
        backend, count = self._backend, t.transition.shape[0]

        def body(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, total = carry
            block = backend.take(t.transition, count - 1 - i)
            tables = self._buckets.eliminate_block(t, block, x)
            total = total + self._buckets.block_log_probability(t, block, tables, mode)
            return self._buckets.assign_block(t, block, x, mode), total

        zero = self._xp.zeros(x.shape[1:], dtype=backend.real)
        return backend.fori_loop(0, count, body, (x, zero))[1]

    def _sweep_in_reverse(self, key: Key, t: Tables, x: Array) -> Array:
        """The transition's blocks drawn, the first one first."""
        backend = self._backend

        def body(i: Index, x: Array) -> Array:
            block = backend.take(t.transition, i)
            tables = self._buckets.eliminate_block(t, block, x)
            u = backend.uniform(backend.fold_in(key, i), (t.places.shape[0], x.shape[1]))
            return self._buckets.draw_block(t, block, tables, x, u)

        return backend.fori_loop(0, t.transition.shape[0], body, x)
