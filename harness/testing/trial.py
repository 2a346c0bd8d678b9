"""A method bound to a backend for a model of any kind, and its runs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from spinbench.api import Engine, Estimate, Method, State, Trace
from spinbench.api.types import RANDOM_KINDS
from spinbench.inference import binding, driver
from spinbench.inference.budget import Budget, step_updates
from spinbench.inference.checks import validity
from spinbench.inference.engine import ProgramEngine
from spinbench.inference.initial_states import random_start, spread_starts
from spinbench.inference.origins import in_terms_of_origin
from spinbench.testing.check import require, require_time, seconds_left
from spinbench.testing.laws.cases import FloatArray, Law, SolvedModel

BURN_IN = 64
# Chains on large models: a prime, so that they fill no vectors; checks that share it also share compiled code.
FEW_CHAINS = 67
SEED = 20120
# Seed of the two steps that show whether chains differ.
WATCHED_SEED = 3
# Sweeps per step above which a step counts as long.
LONG_STEP = 100
# Share of the chains whose first step tells whether steps of all of them fit into a deadline.
PILOT_SHARE = 4
Batches = list[tuple[int, dict[str, np.ndarray]]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial(binding.BoundMethod):
    """A method planned for a model of any kind and bound, run as `spinbench.run` does it, with answers laid flat.

    Attributes:
        solved: the model as it was given, and its answers.
    """

    solved: SolvedModel

    @property
    def law(self) -> Law:
        """Exact law of the model, which has to be one of `CASES`."""
        assert isinstance(self.solved, Law)
        return self.solved

    @property
    def sampler(self) -> bool:
        """Whether it makes chains of random draws."""
        return self.method.kind in RANDOM_KINDS

    @property
    def burn_in_divisor(self) -> int:
        """Divisor of the steps of burn-in on large models, on which samplers' programs may be slow."""
        return 2 if self.sampler and isinstance(self.engine, ProgramEngine) else 1

    def start_chains(self, chains: int, seed: int, steps: int = BURN_IN) -> State:
        """Chains after their burn-in, if they are random."""
        state = self.engine.init(seed, random_start(self.model, chains, seed))
        if not self.sampler:
            return state
        return run_burn_in(self.engine, state, steps)

    def run(self, chains: int, seed: int, lengths: list[int], steps: int = BURN_IN) -> Batches:
        """Batches of these lengths after a burn-in of so many steps; of methods that answer at once, the answer."""
        if self.method.kind == "direct":
            lengths = [1]
        if seconds_left() < math.inf and isinstance(self.engine, ProgramEngine) and not self.engine.compiles:
            state, since = self.start_chains(max(chains // PILOT_SHARE, 1), seed, 0), time.process_time()
            self.engine.advance(state, 1)
            require_time((steps + sum(lengths)) * (time.process_time() - since) * PILOT_SHARE)
        return advance_batches(self.engine, self.start_chains(chains, seed, steps), lengths)[1]

    def estimate_whole_run(self, chains: int, seed: int) -> Estimate:
        """Estimate of a whole run, including warm-up and looks."""
        trace = Trace(self.method.reductions, chains)
        driver.drive(
            self.engine,
            trace,
            lambda trace: Estimate(),
            Budget(samples=BURN_IN, burn_in=BURN_IN),
            start=spread_starts(self.model, chains, seed, self.sampler),
            seed=seed,
            warm_up=partial(self.method.warm_up, self.tables),
            finished=self.method.finished,
            checkpoints=1,
        )
        return self._estimate_from_trace(trace)

    def estimate(self, batches: Batches, chains: slice | list[int] = slice(None)) -> Estimate:
        """Estimate from some of the chains, in terms of the original variables, in flat arrays."""
        return self._estimate_from_trace(self.build_trace(batches, chains))

    def build_trace(self, batches: Batches, chains: slice | list[int]) -> Trace:
        """Trace of some of the chains."""
        trace = Trace(self.method.reductions)
        for steps, statistics in batches:
            trace.add({name: array[..., chains] for name, array in statistics.items()}, steps)
        return trace

    def _estimate_from_trace(self, trace: Trace) -> Estimate:
        estimate = self.method.estimate(self.model, self.tables, trace)
        validity.check(estimate, self.model, self.method.name)
        estimate = in_terms_of_origin(self.model, estimate, 1)
        names = ("marginals", "marginals_se", "marginals_error_bound", "ess", "r_hat")
        flattened: dict[str, Any] = {name: flatten_values(getattr(estimate, name)) for name in names}
        return replace(estimate, **flattened)

    @property
    def chains_differ(self) -> bool:
        """Whether chains report different numbers; they do not if draws of all chains are averaged before."""
        state = self.engine.init(WATCHED_SEED, random_start(self.model, FEW_CHAINS, WATCHED_SEED))
        _, batches = advance_batches(self.engine, state, [1, 1])
        return any((array != array[..., :1]).any() for array in batches[-1][1].values())

    @property
    def has_long_steps(self) -> bool:
        """Whether a step, of a program, draws each variable many times."""
        steps = step_updates(self.method, self.tables) / max(self.model.num_variables, 1)
        return isinstance(self.engine, ProgramEngine) and steps > LONG_STEP


def step_count(method: Method, steps: int) -> int:
    """`steps` for methods that have an answer at any time; 1 for others, which end in one step."""
    if method.kind == "direct":
        return 1
    return steps


def flatten_values(values: Any) -> FloatArray | None:
    """Values of all variables concatenated; None stays None."""
    if values is None:
        return None
    return np.hstack(values).astype(np.float64)


def reduce_batches(arrays: list[np.ndarray], reduction: str) -> np.ndarray:
    """Several batches reduced to one."""
    if reduction == "last":
        return arrays[-1]
    whole = np.stack(arrays)
    if reduction == "sum":
        return np.asarray(whole.sum(axis=0))
    return np.asarray(np.logaddexp.reduce(whole, axis=0))


def run_burn_in(engine: Engine, state: State, steps: int) -> State:
    """Burn-in as `spinbench.inference.driver` does it."""
    num_done = 0
    for end in driver.WINDOWS:
        upto = int(steps * end)
        if upto > num_done:
            state = engine.warm(state, upto - num_done)
        state = engine.adapt(state, end == driver.WINDOWS[-1])
        num_done = upto
    return state


def advance_batches(engine: Engine, state: State, lengths: list[int]) -> tuple[State, Batches]:
    """Advance the chains by batches of these lengths; the new state and the batches.

    Raises:
        CheckError: the engine goes on to write into statistics that it has handed out.
    """
    batches: Batches = []
    copies = []
    for steps in lengths:
        state, statistics = engine.advance(state, steps)
        batches.append((steps, {name: np.asarray(array) for name, array in statistics.items()}))
        copies.append({name: np.array(array) for name, array in statistics.items()})
    for (_, batch), copy in zip(batches, copies, strict=True):
        for name, array in batch.items():
            same = array.tobytes() == copy[name].tobytes()
            require(same, f"statistic {name} of one batch is overwritten by the batches that follow")
    return state, batches


@contextmanager
def record_settings_read(method: Method, read_settings: set[str]) -> Iterator[None]:
    """Adds to `read_settings` the settings that are read meanwhile, of this method and of others of its class; all,
    where what the method made of them is kept in it, or they are read as a whole."""
    kind = type(method)
    names = {field.name for field in fields(method)}  # type: ignore[arg-type]
    plain = kind.__getattribute__

    def record_attribute(self: Method, name: str) -> object:
        read_settings.update(names if name == "__dict__" else {name})
        return plain(self, name)

    if set(getattr(method, "__dict__", ())) - names:
        read_settings |= names
    with mock.patch.object(kind, "__getattribute__", record_attribute):
        yield
