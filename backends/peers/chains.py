"""Kernels of samplers in other libraries: they move states, and what is reported of these is found here.

Most libraries hand out states at the end of a call: one thinned draw of each chain, which then stands for the call's
steps. Calls are short, but long against what a call costs beside its sweeps. The mean is unbiased, and errors and
effective sizes, which are told from batches and chains, are those of the thinned draws. What is reported of a draw
(its state, the probabilities of its variables given the rest, log T(s* <- s) of the looks) the method's own program
finds on the host, as for every other backend.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from spinbench.api import Backend, Kernel, Model, State, States
from spinbench.backends.numpy import NumpyBackend
from spinbench.backends.peers.library import pairs_refusal, setting_refusal
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps
from spinbench.methods.gibbs.sweeps import Tables as GibbsTables

Array = np.ndarray
# Methods that these kernels implement.
SweepMethod = Gibbs | Metropolis

Library = TypeVar("Library")
"""Chains as the library keeps them."""

THINNED = "of the states those at the ends of calls count, and stand for the steps between"
UNCUT = "numbers depend on the seed and on how the budget is cut into batches"
ONE_SIDED = "there are no stepping stones: log Z is that of chib_bar, from its states"


@dataclass
class Chains(Generic[Library]):
    """What a run carries; consumed by `warm` and `advance`.

    Attributes:
        seed: of the run; step: steps and sweeps so far, of which a call's seed is made.
        library_state: the chains as the library keeps them.
        every: steps of a call.
    """

    seed: int
    step: int
    library_state: Library
    every: int = 1


class LibraryChains(Kernel["GibbsTables | GraphTables", Chains[Library]], Generic[Library]):
    """A sampler of another library, for `gibbs` and for `metropolis`.

    Class attributes:
        allowed: the values that it can do of settings of which it cannot do all.
        tempered: whether `move` heeds beta.
        call_updates, chain_updates: how many updates cost as much as a call in all, or as a chain's part of it, three
            times over: so many a call makes at least.
        batch_seconds: of a batch, for the same reason.
    """

    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    tempered: ClassVar[bool] = False
    call_updates: ClassVar[int] = 0
    chain_updates: ClassVar[int] = 0
    batch_seconds: ClassVar[float] = 0.05
    notes: tuple[str, ...] = (THINNED, UNCUT)
    compiles: ClassVar[bool] = False

    @classmethod
    def refuses(cls, method: SweepMethod, backend: Backend, model: Model) -> str:
        return setting_refusal(backend, method, cls.allowed) or pairs_refusal(backend.name, model)

    def __init__(self, method: SweepMethod, backend: Backend, model: Model, tables: GibbsTables | GraphTables) -> None:
        self.method, self._tables = method, tables
        self.averaged = "p" in method.reductions
        self._climbs = self.tempered and getattr(method, "may_use_stones", False)
        self._host = NumpyBackend()
        self._program: Any = method.program(self._host)
        in_graph = isinstance(tables, GraphTables)
        self._sweeps: Any = GraphSweeps(self._host) if in_graph else PairSweeps(self._host)
        self.order: Array = np.arange(model.num_variables) if isinstance(tables, GraphTables) else tables.order

    @abstractmethod
    def begin(self, states: Array) -> Library:
        """Chains at states (N, C) in `order`, 0 and 1, as the library keeps them."""

    @abstractmethod
    def move(self, library_state: Library, steps: int, seed: int, beta: float) -> Library:
        """The chains after so many sweeps at an inverse temperature; the seed is of 64 bits and not 0."""

    @abstractmethod
    def read(self, library_state: Library) -> Array:
        """(N, C) the states in `order`, 0 and 1."""

    def init(self, seed: int, start: States) -> Chains[Library]:
        n, chains = start.shape
        # A call has a fixed cost beside its updates: it makes enough of them for that cost to be at most a third of
        # theirs.
        least = max(self.call_updates / max(n * chains, 1), self.chain_updates / max(n, 1))
        return Chains(seed, 0, self.begin(start[self.order]), math.ceil(least) or 1)

    def warm(self, state: Chains[Library], steps: int) -> Chains[Library]:
        return self._advance_library(state, steps) if steps else state

    def advance(self, state: Chains[Library], steps: int) -> tuple[Chains[Library], dict[str, Array]]:
        total: Array | float = 0.0
        for done in range(0, steps, state.every):
            part = min(state.every, steps - done)
            state = self._advance_library(state, part)
            total = total + part * self._statistics(state)
        return state, {"p" if self.averaged else "s": np.asarray(total)}

    def look(self, state: Chains[Library]) -> dict[str, Array]:
        if getattr(self.method, "log_z", "none") == "none":
            return {}
        key = self._host.fold_in(self._host.key(state.seed), state.step)
        return dict(self._program.look(key, self._tables, self._state(state)))

    def temper(self, state: Chains[Library], betas: Array, sweeps: int) -> tuple[Chains[Library], Array]:
        if not self._climbs:
            return super().temper(state, betas, sweeps)
        slopes = []
        for beta in betas:
            for _ in range(sweeps):
                state = self._advance_library(state, 1, float(beta))
                slopes.append(self._slope(state))
        return state, np.array(slopes).reshape(len(betas), sweeps, -1).swapaxes(0, 1)

    def slope(self, state: Chains[Library]) -> dict[str, Array]:
        return {"slope": self._slope(state)} if self._climbs else {}

    def states(self, state: Chains[Library]) -> Array:
        return by_variable(self.order, self.read(state.library_state))

    def _advance_library(self, state: Chains[Library], steps: int, beta: float = 1.0) -> Chains[Library]:
        mixed = np.random.SeedSequence([state.seed, state.step]).generate_state(1, np.uint64)
        state.library_state = self.move(state.library_state, steps, int(mixed[0]) | 1, beta)
        state.step += steps
        return state

    def _state(self, state: Chains[Library]) -> State:
        return self._program.init(None, self._tables, self.states(state).astype(np.float64))

    def _slope(self, state: Chains[Library]) -> Array:
        return np.asarray(self._program.slope(self._tables, self._state(state))["slope"])

    def _statistics(self, state: Chains[Library]) -> Array:
        """(R, C) what the method's estimate averages, of states as they are."""
        sweeps, t = self._sweeps, self._tables
        x = sweeps.arrange_states(t, self.states(state).astype(np.float64))
        p = ()
        if self.averaged:
            p = sweeps.conditionals(t, x, sweeps.initial_conditionals(t, x))
        return np.asarray(sweeps.statistic(t, x, p))
