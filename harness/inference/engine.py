"""A generic program bound to a backend: compiled loops over steps that reduce the statistics as they go."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import SeedSequence

from spinbench.api import Array, Backend, Key, Program, Reduction, State, Tables
from spinbench.api.old_members import translate_kernel
from spinbench.api.trace import check_reported
from spinbench.backends.numpy import NumpyBackend
from spinbench.foundation import deadline
from spinbench.foundation.arithmetic import Arithmetic, make_operations, split_chains
from spinbench.foundation.trees import Tree, map_arrays

if TYPE_CHECKING:
    from spinbench.api import Index, States

# Folded into a step's key for the random numbers of a look, which must differ from the step's own; programs fold in
# small numbers.
LOOK = 2**31 - 1

# The same for the random numbers of sweeps at another temperature.
TEMPER = LOOK - 1

# Sweeps at one temperature per call: a fixed number, since their slopes form one array.
STRETCH = 32


class ProgramEngine:
    """The `Engine` of a generic program. Its state is (key, index of the next step, the program's state).

    What a program does on the host runs on `Host`, whatever the backend.
    """

    def __init__(self, program: Program, backend: Backend, tables: Tables, reductions: Mapping[str, Reduction]) -> None:
        self._program = program
        self._backend = backend = backend if program.compiled else Host(precision=backend.precision)
        self._step, self._warm_step = _accept_index(program.step), _accept_index(program.warm)
        self._reductions = dict(reductions)
        # Sums of float32 also carry what rounding took, without which sums of 10^6 equal terms are 1 % off.
        self._compensated = {
            name for name in reductions if reductions[name] == "sum" and backend.precision == "float32"
        }
        self.transfer_seconds = 0.0
        """Spent on moving arrays between host and device so far; parts of what the driver times."""
        self._arithmetic = make_operations(backend, Arithmetic)
        self._tables = self._put(tables)
        self._init = backend.compile(lambda key, tables, start: program.init(backend.fold_in(key, 0), tables, start))
        self._warm = backend.compile(self._run_warm)
        self._adapt = {
            last: backend.compile(lambda tables, inner, last=last: program.adapt(tables, inner, last))
            for last in (False, True)
        }
        self._advance = backend.compile(self._run_batch)
        self._look = backend.compile(self._run_look)
        self._temper = backend.compile(self._run_tempered)
        self._slope = backend.compile(program.slope)
        self._climbs = False
        self._states = program.states and backend.compile(program.states)

    def on(self, tables: Tables) -> ProgramEngine:
        """The same program on other tables; what has been compiled for their shapes stays so."""
        engine = copy.copy(self)
        engine.transfer_seconds = 0.0
        engine._tables = engine._put(tables)
        return engine

    @property
    def compiles(self) -> bool:
        """Whether first calls take longer than others."""
        return type(self._backend).compile is not Backend.compile

    def prepare(self, state: State) -> State:
        """Compile what every run calls, without a step: one of a large model may take longer than a run."""
        key, index, inner = state
        state = self.warm(state, 0)
        for last in (False, True):
            state = self.adapt(state, last)
        self.look(state)
        inner = state[2]
        # Twice: a batch may return arrays with another placement than its first arguments, for which JAX compiles
        # again.
        for _ in range(2):
            inner, _ = self._advance(key, index, 0, self._tables, inner)
        return key, index, self._wait_for(inner)

    def init(self, seed: int, start: States) -> State:
        key = self._backend.key(seed)
        first = split_chains(self._backend, self._put(start.astype(np.float64)))
        return key, 1, self._wait_for(self._init(key, self._tables, first))

    def warm(self, state: State, steps: int) -> State:
        key, index, inner = state
        # waits for the device, so that burn-in does not count as sampling
        return key, index + steps, self._wait_for(self._warm(key, index, steps, self._tables, inner))

    def adapt(self, state: State, last: bool) -> State:
        key, index, inner = state
        return key, index, self._adapt[last](self._tables, inner)

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]:
        key, index, inner = state
        inner, statistics = self._advance(key, index, steps, self._tables, inner)
        self._wait_for(statistics)
        since = time.perf_counter()
        statistics = self._fetch(statistics)
        self.transfer_seconds += time.perf_counter() - since
        # the last value may alias the state, which later steps may overwrite
        owned = {name: np.array(a) for name, a in statistics.items() if self._reductions[name] == "last"}
        return (key, index + steps, inner), {**statistics, **owned}

    def look(self, state: State) -> dict[str, np.ndarray]:
        key, index, inner = state
        return self._fetch(self._look(key, index, self._tables, inner))

    def temper(self, state: State, betas: np.ndarray, sweeps: int) -> tuple[State, np.ndarray]:
        if self._program.temper is None:
            return state, np.empty((sweeps, len(betas), 0))
        key, index, inner = state if self._climbs else self._compile_climb(state)
        device_slopes, counts = [], [min(STRETCH, sweeps - done) for done in range(0, sweeps, STRETCH)]
        for beta in self._put(tuple(np.asarray(beta) for beta in betas)):
            for count in counts:
                inner, slopes = self._temper(key, index, count, beta, self._tables, inner)
                device_slopes.append(slopes)
                index += count
        host_slopes = [self._backend.to_host(slopes) for slopes in device_slopes]
        whole = np.concatenate([part[:count] for part, count in zip(host_slopes, counts * len(betas), strict=True)])
        return (key, index, inner), whole.astype(np.float64).reshape(len(betas), sweeps, -1).swapaxes(0, 1)

    def _compile_climb(self, state: State) -> State:
        """Compile what those runs alone call that climb."""
        with deadline.compiling():
            key, index, inner = state
            inner, _ = self._temper(key, index, 0, self._put(np.asarray(0.5)), self._tables, inner)
            self.slope((key, index, inner))
            self._climbs = True
            return key, index, self._wait_for(inner)

    def slope(self, state: State) -> dict[str, np.ndarray]:
        return self._fetch(self._slope(self._tables, state[2]))

    def states(self, state: State) -> np.ndarray | None:
        if self._states is None:
            return None
        # A copy, since steps may write into the state.
        return np.array(self._backend.to_host(self._states(self._tables, state[2])))

    def _put(self, tree: Tree) -> Tree:
        since = time.perf_counter()
        arrays: Tree = self._wait_for(map_arrays(lambda leaf: self._backend.to_device(np.asarray(leaf)), tree))
        self.transfer_seconds += time.perf_counter() - since
        return arrays

    def _fetch(self, statistics: Mapping[str, Array]) -> dict[str, np.ndarray]:
        return {name: self._backend.to_host(array) for name, array in statistics.items()}

    def _wait_for(self, tree: Tree) -> Tree:
        map_arrays(self._backend.block_until_ready, tree)
        return tree

    def _run_warm(self, key: Key, index: Index, steps: Index, tables: Tables, inner: State) -> State:
        def body(i: Index, carry: State) -> State:
            return self._warm_step(self._backend.fold_in(key, index + i), tables, carry, index + i)

        return self._backend.fori_loop(0, steps, body, inner)

    def _run_look(self, key: Key, index: Index, tables: Tables, inner: State) -> Mapping[str, Array]:
        return self._program.look(self._backend.fold_in(self._backend.fold_in(key, index), LOOK), tables, inner)

    def _run_tempered(
        self, key: Key, index: Index, sweeps: Index, beta: Array, tables: Tables, inner: State
    ) -> tuple[State, Array]:
        """At most STRETCH sweeps, and the slopes (STRETCH, C) after each."""
        temper = self._program.temper
        assert temper is not None

        def body(i: Index, carry: tuple[State, Array]) -> tuple[State, Array]:
            sweep_key = self._backend.fold_in(self._backend.fold_in(key, index + i), TEMPER)
            inner = temper(sweep_key, tables, carry[0], beta)
            return inner, self._backend.update(carry[1], i, self._program.slope(tables, inner)["slope"], donate=True)

        # Only the shape of the program's statistic is used.
        empty = self._backend.xp.zeros_like(self._program.slope(tables, inner)["slope"])
        return self._backend.fori_loop(0, sweeps, body, (inner, self._backend.xp.stack([empty] * STRETCH)))

    def _run_batch(
        self, key: Key, index: Index, steps: Index, tables: Tables, inner: State
    ) -> tuple[State, dict[str, Array]]:
        def body(i: Index, carry: tuple[State, dict[str, Array]]) -> tuple[State, dict[str, Array]]:
            inner = self._step(self._backend.fold_in(key, index + i), tables, carry[0], index + i)
            statistics = self._program.observe(tables, inner)
            return inner, {name: self._combine(name, total, statistics[name]) for name, total in carry[1].items()}

        # Only shapes are used; compilers drop the computation.
        empty = self._program.observe(tables, inner)
        check_reported(empty, self._reductions)
        totals = {name: self._empty(name, empty[name]) for name in self._reductions}
        inner, totals = self._backend.fori_loop(0, steps, body, (inner, totals))
        return inner, {name: total[0] if name in self._compensated else total for name, total in totals.items()}

    def _empty(self, name: str, like: Array) -> Array | tuple[Array, Array]:
        fill = {"logsumexp": -np.inf}.get(self._reductions[name], 0.0)
        total = self._backend.xp.full_like(like, fill)
        if name in self._compensated:
            return (total, self._backend.xp.full_like(like, 0.0))
        return total

    def _combine(self, name: str, total: Array, value: Array) -> Array | tuple[Array, Array]:
        match self._reductions[name]:
            case "sum" if name in self._compensated:
                sum_so_far, excess = total
                return self._arithmetic.add_compensated(sum_so_far, excess, value)
            case "sum":
                return self._arithmetic.add(total, value)
            case "logsumexp":
                return self._backend.xp.logaddexp(total, value)
            case _:
                return value


translate_kernel(ProgramEngine)


def _accept_index(step: Callable[..., State]) -> Callable[[Key, Tables, State, Index], State]:
    """`step` as a function of the step's index, too, whether it takes one or not."""
    if "index" in signature(step).parameters:
        return lambda key, tables, state, index: step(key, tables, state, index=index)
    return lambda key, tables, state, index: step(key, tables, state)


class Host(NumpyBackend):
    """Where the steps of a program run that are not compiled: NumPy, with a `SeedSequence` for a key."""

    def key(self, seed: int) -> Key:
        return SeedSequence(seed)

    def fold_in(self, key: Key, index: Index) -> Key:
        return SeedSequence(key.entropy, spawn_key=(*key.spawn_key, int(index)))
