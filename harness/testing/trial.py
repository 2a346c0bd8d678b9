"""A method bound to a backend for a model of any kind, run as `spinbench.run` does it, with answers laid flat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any
from unittest import SkipTest, mock

import numpy as np

from spinbench.api import Engine, Estimate, Method, Precision, State, Tables
from spinbench.api.trace import Trace
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.checks import validity
from spinbench.inference.driver import drive
from spinbench.inference.engine import ProgramEngine
from spinbench.inference.origins import as_taken, in_terms_of_origin
from spinbench.inference.starts import dispersed, random_start
from spinbench.models import Model
from spinbench.testing.laws.cases import CASES, FloatArray, law
from spinbench.testing.laws.known import known
from spinbench.testing.pair import BURN_IN, FEW_CHAINS, Batches, Pair, advance, burn_in

WATCHED = ("101 variables", "20 variables, dense")
"""Models of which two states are hardly ever alike by chance."""
WATCHED_SEED = 3
LONG_STEP = 100
"""Sweeps."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A method planned for a model and bound.

    Attributes:
        method: with its settings.
        given: the model that the method computes with: `takes` says of which kind.
        tables: from `Method.plan`.
        engine: the program or kernel.
    """

    method: Method
    given: Model
    tables: Tables
    engine: Engine

    @property
    def sampler(self) -> bool:
        """Whether it makes chains of random draws."""
        return self.method.anytime and self.method.stochastic

    @property
    def hurry(self) -> int:
        """By which burn-in on large models is shorter: samplers' programs may be slow."""
        return 2 if self.sampler and isinstance(self.engine, ProgramEngine) else 1

    def begin(self, chains: int, seed: int, steps: int = BURN_IN) -> State:
        """Chains after their burn-in, if they are random."""
        state = self.engine.init(seed, random_start(self.given, chains, seed))
        return burn_in(self.engine, state, steps) if self.sampler else state

    def run(self, chains: int, seed: int, lengths: list[int], steps: int = BURN_IN) -> Batches:
        """Batches of these lengths after a burn-in of so many steps; of methods that answer at once, the answer."""
        return advance(self.engine, self.begin(chains, seed, steps), lengths if self.method.anytime else [1])[1]

    def whole(self, chains: int, seed: int) -> Estimate:
        """Of a run from start to end, with what comes before burn-in, looks and all."""
        trace = Trace(self.method.reductions, self.method.batches(chains), self.method.counted_by)
        drive(
            self.engine,
            trace,
            lambda trace: Estimate(),
            Budget(samples=BURN_IN, burn_in=BURN_IN),
            start=dispersed(self.given, chains, seed, self.sampler),
            seed=seed,
            warm_up=partial(self.method.warm_up, self.tables),
            finished=self.method.finished,
            checkpoints=1,
        )
        return self._told(trace)

    def estimate(self, batches: Batches, chains: slice | list[int] = slice(None)) -> Estimate:
        """Of some of the chains, in terms of the variables asked about, one after the other."""
        trace = Trace(self.method.reductions)
        for steps, statistics in batches:
            trace.add({name: array[..., chains] for name, array in statistics.items()}, steps)
        return self._told(trace)

    def _told(self, trace: Trace) -> Estimate:
        found = self.method.estimate(self.given, self.tables, trace)
        validity.check(found, self.given, self.method.name)
        found = in_terms_of_origin(self.given, found, 1)
        names = ("marginals", "marginals_se", "marginals_error_bound", "ess", "r_hat")
        flattened: dict[str, Any] = {name: flat(getattr(found, name)) for name in names}
        return replace(found, **flattened)


def flat(values: Any) -> FloatArray | None:
    """Numbers of all variables, one after the other; None stays."""
    return None if values is None else np.hstack(values).astype(np.float64)


def trial(pair: Pair, model: Model, precision: Precision | None = None) -> Trial:
    """The method planned for `model` and bound; once for each model and precision, since binding may compile.

    Raises:
        SkipTest: the method refuses it.
    """
    key = (model.name, precision or pair.precision)
    if model.name in CASES:
        bound = pair.bound(model.name, precision)
        return Trial(pair.method, model, bound.tables, bound.engine)
    if key not in pair.trials:
        try:
            given = as_taken(model, pair.method)
            tables = pair.method.plan(given)
            engine = pair.bind(given, tables, key[1]).engine
        except (UnsupportedError, ModelError, IntractableError) as refusal:
            raise SkipTest(f"refused: {refusal}") from refusal
        pair.trials[key] = Trial(pair.method, given, tables, engine)
    found: Trial = pair.trials[key]
    return found


def watched(pair: Pair, precision: Precision | None = None) -> Trial:
    """On the first model that the method takes of those on which states can be told apart, chains differ, and
    a step is not long.

    Raises:
        SkipTest: it takes none of them.
    """
    for name in WATCHED if pair.method.anytime else ():  # an exact answer may be out of reach
        with suppress(SkipTest):
            at = trial(pair, known(name).model, precision)
            if not pair.sampler or name == WATCHED[-1] or (_differ(at) and not _long(at)):
                return at
    return trial(pair, law("dense").model, precision)


def _differ(at: Trial) -> bool:
    """Whether chains report different numbers; of what is drawn and averaged in one piece they do not."""
    state = at.engine.init(WATCHED_SEED, random_start(at.given, FEW_CHAINS, WATCHED_SEED))
    _, batches = advance(at.engine, state, [1, 1])
    return any((array != array[..., :1]).any() for array in batches[-1][1].values())


def _long(at: Trial) -> bool:
    """Whether a step, of a program, draws each variable many times."""
    steps = at.method.step_updates(at.tables) / max(at.given.num_variables, 1)
    return isinstance(at.engine, ProgramEngine) and steps > LONG_STEP


@contextmanager
def settings_read(method: Method, seen: set[str]) -> Iterator[None]:
    """Adds to `seen` the settings that are read meanwhile, of this method and of others of its class; all, where what
    the method made of them is kept in it, or they are read as a whole."""
    kind = type(method)
    names = {field.name for field in fields(method)}  # type: ignore[arg-type]
    plain = kind.__getattribute__

    def noted(self: Method, name: str) -> Any:
        seen.update(names if name == "__dict__" else {name})
        return plain(self, name)

    if set(getattr(method, "__dict__", ())) - names:
        seen |= names
    with mock.patch.object(kind, "__getattribute__", noted):
        yield
