"""The generic program of parallel tempering over any replicas that can be swept at a β and weighed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from spinbench.api import Array, Backend, Index, Key, Namespace
from spinbench.api import Tables as SweptTables
from spinbench.methods.chain_program import ChainProgram
from spinbench.methods.tempering.ladders import Ladders, Places, Rungs, Sums, SwapStatistics


class Tables(NamedTuple):
    """What `ParallelTempering.plan` prepares.

    Attributes:
        betas: (R,) ascending from 0 to 1, where a run begins.
        replicas: the tables of what is swept.
        rows: (M,) of p, in the order of the variables and their states; of binary models those of state 1.
        signs: (M,) 1, or -1 where the row holds 1 - p, or 0 where p is 1.
        low, high: (M,) between which they lie whatever the state.
        base: () log Z at β = 0, and what is added to every log weight.
    """

    betas: Array
    replicas: ReplicaTables
    rows: Array
    signs: Array
    low: Array
    high: Array
    base: Array


class ReplicaTables(Protocol):
    """The tables of what is swept."""

    def over(self, backend: Backend) -> Replicas:
        """What sweeps them, over a backend's arrays."""


class Replicas(Protocol):
    """States (N, C) of C chains, each at a β of its own (C,)."""

    def arrange_states(self, t: SweptTables, start: Array) -> Array:
        """From states of the variables (N, C)."""

    def initial_conditionals(self, t: SweptTables, x: Array) -> Array:
        """(M, C) 0, as p before any sweep."""

    def sweep(self, key: Key, t: SweptTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p): p (M, C) conditional probabilities as of the updates; `x` is given up."""

    def log_weights(self, t: SweptTables, x: Array) -> tuple[Array, Array | None]:
        """(C,) D, and how many hard zeros the states meet; None where there are none."""

    def states_by_variable(self, t: SweptTables, x: Array) -> Array:
        """States of the variables (N, C), as `arrange_states` got them."""


class State(NamedTuple):
    """L ladders of R slots.

    Attributes:
        x: (N, R, L) states; p: (M, R, L) conditional probabilities as of their last updates.
        places: of the replicas; seen: by the last step; sums: of burn-in.
        rungs: adapted in burn-in.
    """

    x: Array
    p: Array
    places: Places
    last_swaps: SwapStatistics
    sums: Sums
    rungs: Rungs


def assign_start_ladders(xp: Namespace, rungs: int, ladders: int) -> Array:
    """(R, L) the ladder in whose start each rung begins: the last rung in its own's, the one before in the next's, …"""
    return (xp.arange(rungs - 1, -1, -1)[:, None] + xp.arange(ladders)[None, :]) % ladders


class TemperingProgram(ChainProgram):
    """Init, step, observe, warm and adapt; `sweeps` sweeps come between swaps."""

    def __init__(self, backend: Backend, sweeps: int) -> None:
        super().__init__(backend)
        self._sweeps, self._ladders = sweeps, Ladders(backend)

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The last rungs begin in `start` (N, L), the others in that of a ladder beside."""
        xp, backend = self._xp, self._backend
        rungs, ladders = t.betas.shape[0], start.shape[1]
        replicas = t.replicas.over(backend)
        x = replicas.arrange_states(
            t.replicas, xp.take(start, xp.reshape(assign_start_ladders(xp, rungs, ladders), (-1,)), axis=1)
        )
        p = replicas.initial_conditionals(t.replicas, x)
        like = xp.zeros((rungs, ladders), dtype=backend.real)
        places, none = self._ladders.initial_places(rungs, start[0, :]), like[1:, :]
        swaps = SwapStatistics(places.slot[-1, :], none, none, none, like[0, :], like[0, :], like)
        x = xp.reshape(x, (x.shape[0], rungs, ladders))
        p = xp.reshape(p, (p.shape[0], rungs, ladders))
        betas = t.betas + xp.zeros_like(t.betas)
        return State(x, p, places, swaps, self._ladders.zero_sums(like), Rungs(betas, xp.zeros_like(betas[1:])))

    def step(self, key: Key, t: Tables, state: State, index: Index) -> State:
        """Sweeps of all replicas, then swaps of even or odd rungs."""
        xp, backend, replicas = self._xp, self._backend, t.replicas.over(self._backend)
        beta = xp.reshape(backend.take(state.rungs.betas, state.places.rung), (-1,))
        x, p = xp.reshape(state.x, (state.x.shape[0], -1)), state.p
        for k in range(self._sweeps):
            x, fresh = replicas.sweep(backend.fold_in(key, k + 1), t.replicas, x, beta)
            p = fresh if k == 0 else p + fresh
        if self._sweeps > 1:
            p = p / self._sweeps
        shape = state.places.slot.shape
        weights, hard_zeros = (
            None if part is None else xp.reshape(part, shape) for part in replicas.log_weights(t.replicas, x)
        )
        u = backend.uniform(backend.fold_in(key, 0), (shape[0] - 1, shape[1]))
        places, swaps = self._ladders.swap_neighbours(u, index % 2, state.rungs, state.places, weights, hard_zeros)
        return state._replace(
            x=xp.reshape(x, state.x.shape), p=xp.reshape(p, state.p.shape), places=places, last_swaps=swaps
        )

    def warm(self, key: Key, t: Tables, state: State, index: Index) -> State:
        """A step that is counted for the ladder's adaptation."""
        state = self.step(key, t, state, index)
        return state._replace(sums=self._ladders.add_step(state.sums, state.last_swaps))

    def adapt(self, t: Tables, state: State, last: bool) -> State:
        """The ladder by what the window has shown."""
        rungs = self._ladders.adapt_rungs(state.rungs, state.sums)
        return state._replace(rungs=rungs, sums=self._ladders.zero_sums(state.sums.at))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """Of the last rungs p; of neighbouring rungs what joins them; the trips that ended."""
        xp, swaps = self._xp, state.last_swaps
        ladders = swaps.cold.shape[0]
        cold = swaps.cold * ladders + xp.arange(ladders, dtype=swaps.cold.dtype)
        p = xp.take(xp.reshape(state.p, (state.p.shape[0], -1)), cold, axis=1)
        levels = state.rungs.levels[:, None] + xp.zeros_like(swaps.up)
        statistics = {"p": p, "up": swaps.up, "down": swaps.down, "rejected": swaps.rejected}
        return statistics | {"trips": swaps.trips, "lost": swaps.lost, "levels": levels}

    def states(self, t: Tables, state: State) -> Array:
        """(N, L) of the replicas that stand at β = 1 now."""
        xp, slot = self._xp, state.places.slot
        ladders = slot.shape[1]
        cold = slot[-1, :] * ladders + xp.arange(ladders, dtype=slot.dtype)
        x = xp.take(xp.reshape(state.x, (state.x.shape[0], -1)), cold, axis=1)
        return t.replicas.over(self._backend).states_by_variable(t.replicas, x)
