"""The generic program of tempered transitions."""

from __future__ import annotations

from typing import Any, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.tempering.graphs import GraphTables


class Tables(NamedTuple):
    """What `TemperedTransitions.plan` prepares.

    Attributes:
        betas: (T + 1,) ascending from 0 to 1.
        graph: of the sweeps.
        rows: (M,) of p, and signs (M,) of p there, see `state_rows`.
        base: () log Z at β = 0, and what is added to every log weight.
        barrier: () Λ.
    """

    betas: Array
    graph: GraphTables
    rows: Array
    signs: Array
    base: Array
    barrier: Array


class State(NamedTuple):
    """Of C chains.

    Attributes:
        x: (N, C) int32; p: (R + 1, C) of the last sweep at β = 1.
        up, down: (C,) the logs of the last transition's products.
        accepted: (C,) whether it was.
    """

    x: Array
    p: Array
    up: Array
    down: Array
    accepted: Array


class RoundTrips:
    """Init, step, observe and look over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._xp = backend, backend.xp
        self._bath: TableBath = backend.operations(TableBath)

    def program(self) -> Program:
        """The contract's view."""
        return Program(
            init=self.init, step=self.step, observe=self.observe, look=self.look, states=lambda t, state: state.x
        )

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        none = self._xp.zeros_like(start[0, :])
        return State(self._xp.astype(start, self._xp.int32), t.graph.blank[:, None] + none, none, none, none)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """A sweep, and a transition."""
        backend, xp = self._backend, self._xp
        one, steps = xp.ones_like(state.up), t.betas.shape[0] - 1
        fold = backend.fold_in
        x, p = self._bath.sweep_and_conditionals(fold(key, 0), t.graph.sweep, state.x, state.p, one)

        def climb(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            y, work = carry
            before, beta = backend.take(t.betas, steps - i), backend.take(t.betas, steps - 1 - i)
            work = work + (beta - before) * self._log_weights(t, y)
            return self._bath.sweep(fold(key, 1 + i), t.graph.sweep, y, one * beta), work

        def descend(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            y, work = carry
            before, beta = backend.take(t.betas, i), backend.take(t.betas, i + 1)
            work = work + (beta - before) * self._log_weights(t, y)
            return self._bath.sweep(fold(key, 1 + steps + i), t.graph.sweep, y, one * beta, backward=True), work

        y, up = backend.fori_loop(0, steps, climb, (x + 0, xp.zeros_like(one)))
        y, down = backend.fori_loop(0, steps - 1, descend, (y, xp.zeros_like(one)))
        last = 1 - t.betas[steps - 1]
        lost = self._bath.log_weights(t.graph.sweep.entries, y) == -xp.inf
        down = xp.where(lost, -xp.inf, down + last * self._log_weights(t, y))
        accepted = backend.uniform(fold(key, 2 * steps + 1), one.shape) < xp.exp(
            xp.where(up + down < 0, up + down, 0.0)
        )
        x = xp.where(accepted[None, :], y, x)
        return State(x, p, up, down, xp.astype(accepted, one.dtype))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """p (R, C), accepted (C,)."""
        return {"p": state.p, "accepted": state.accepted}

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """The last transition's products."""
        return {"up": state.up, "down": state.down}

    def _log_weights(self, t: Tables, y: Array) -> Array:
        """(C,) D with soft zeros."""
        return self._bath.log_weights(t.graph.sweep.entries, y, floored=True)
