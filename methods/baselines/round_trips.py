"""The generic program of tempered transitions."""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Index, Key
from spinbench.methods.chain_program import TableProgram
from spinbench.methods.tempering.replicas import GraphTables


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


class TemperedTransitionsProgram(TableProgram):
    """Init, step, observe, look and states."""

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        none = self._xp.zeros_like(start[0, :])
        return State(self._xp.astype(start, self._xp.int32), t.graph.blank[:, None] + none, none, none, none)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """A sweep, and a transition."""
        backend, xp, sweep = self._backend, self._xp, t.graph.sweep
        ones, steps = xp.ones_like(state.up), t.betas.shape[0] - 1
        x, p = self._bath.sweep_and_conditionals(backend.fold_in(key, 0), sweep, state.x, state.p, ones)

        def climb(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return move(1 + i, steps - i, steps - 1 - i, carry)

        def descend(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            return move(1 + steps + i, i, i + 1, carry, backward=True)

        def move(
            number: Index, rung: Index, target: Index, carry: tuple[Array, Array], *, backward: bool = False
        ) -> tuple[Array, Array]:
            (y, work), beta = carry, backend.take(t.betas, target)
            work = work + (beta - backend.take(t.betas, rung)) * self.log_weights(sweep.entries, y)
            return self._bath.sweep(backend.fold_in(key, number), sweep, y, ones * beta, backward=backward), work

        y, up = backend.fori_loop(0, steps, climb, (x + 0, xp.zeros_like(ones)))
        # One sweep fewer than on the way up: the last factor is evaluated at β = 1, where hard zeros are exact, and no
        # sweep follows it.
        y, down = backend.fori_loop(0, steps - 1, descend, (y, xp.zeros_like(ones)))
        last = 1 - t.betas[steps - 1]
        lost = self._bath.log_weights(sweep.entries, y) == -xp.inf
        down = xp.where(lost, -xp.inf, down + last * self.log_weights(sweep.entries, y))
        # The product of all ratios is the exponential of these two sums of (β' - β) D.
        chance = xp.exp(xp.where(up + down < 0, up + down, 0.0))
        accepted = backend.uniform(backend.fold_in(key, 2 * steps + 1), ones.shape) < chance
        x = xp.where(accepted[None, :], y, x)
        return State(x, p, up, down, xp.astype(accepted, ones.dtype))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """p (R, C), accepted (C,)."""
        return {"p": state.p, "accepted": state.accepted}

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """The last transition's products."""
        return {"up": state.up, "down": state.down}

    def states(self, t: Tables, state: State) -> Array:
        """(N, C)."""
        return state.x
