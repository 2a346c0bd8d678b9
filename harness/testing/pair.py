"""One method on one backend, with the engines and runs that its checks share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine, Estimate, Method, Precision, State, Tables
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.inference import binding, registry
from spinbench.inference.driver import WINDOWS
from spinbench.inference.kernels import ANY, Wish
from spinbench.models import Model
from spinbench.testing.backends.arrays import PRECISIONS, precisions
from spinbench.testing.check import require
from spinbench.testing.laws.cases import CASES, Law, law

CHAINS = 2048
BATCHES = 32
BATCH = 2
"""Steps of each batch."""
BURN_IN = 64
FEW_CHAINS = 67
"""On large models; prime, so that it fills no vectors. Checks that share it compile once."""
LARGE = 25.0
"""CPU seconds that models of many variables may take together."""
SEED = 20120
Batches = list[tuple[int, dict[str, npt.NDArray[Any]]]]


@dataclass(frozen=True, eq=False)
class Bound:
    """A method planned for a case and bound to the pair's backend.

    Attributes:
        law: the case's model and its exact law.
        tables: from `Method.plan`.
        engine: the program or kernel.
    """

    law: Law
    tables: Tables
    engine: Engine


@dataclass(frozen=True, eq=False)
class Sample:
    """What a run reported, cut into batches.

    Attributes:
        bound: the engine that ran.
        batches: (steps, statistics) of each batch.
    """

    bound: Bound
    batches: Batches


@dataclass(eq=False)
class Pair:
    """A method, with its settings, on a backend; `precision` is the one for checks that do not ask for another,
    `chains` how many most of them run, `wish` whether its kernel or its program, and whose kernel, and `device` where
    it runs."""

    method: Method
    backend: str
    precision: Precision
    chains: int = CHAINS
    wish: Wish = ANY
    device: str = "cpu"
    seconds: float = LARGE
    """That models of many variables may still take."""
    _bound: dict[tuple[str, Precision], Bound] = field(default_factory=dict)
    _samples: dict[tuple[str, Precision, int, int], Sample] = field(default_factory=dict)
    trials: dict[tuple[str, Precision], Any] = field(default_factory=dict)
    """What `spinbench.testing.trial` has bound."""
    many: dict[tuple[str, Precision], Any] = field(default_factory=dict)
    """What `spinbench.testing.shapes` has seen of many chains, by model and precision; with it few are compared."""

    def accepted(self) -> list[str]:
        """Names of the cases that `plan` does not refuse."""
        names = []
        for case in CASES:
            try:
                self.method.plan(law(case).model)
            except UnsupportedError:
                continue
            names.append(case)
        return names

    @property
    def native(self) -> bool:
        """Whether a kernel runs, not the program."""
        return registry.support(self.method.name, self.backend, self.wish).tier == "native"

    @property
    def options(self) -> dict[str, Any]:
        """Of `spinbench.run`, which then runs what the pair does."""
        return {"precision": self.precision, "device": self.device, "tier": self.wish.tier, "kernel": self.wish.kernel}

    @property
    def sampler(self) -> bool:
        """Whether it makes chains of random draws."""
        return self.method.anytime and self.method.stochastic

    @property
    def iteration(self) -> bool:
        """Whether it goes step by step and draws nothing."""
        return self.method.anytime and not self.method.stochastic

    @property
    def compiled_once(self) -> bool:
        """Whether other settings and numbers of chains are compiled no further; programs on backends with loops are."""
        return self.native or "loop" not in registry.backend_class(self.backend).provides

    @property
    def other_precisions(self) -> list[Precision]:
        """That the backend offers beside the pair's."""
        return [precision for precision in precisions(self.backend) if precision != self.precision]

    @property
    def refused_precisions(self) -> list[Precision]:
        """That the backend does not offer."""
        return [precision for precision in PRECISIONS.values() if precision not in precisions(self.backend)]

    def bound(self, case: str, precision: Precision | None = None) -> Bound:
        """Planned and bound; once for each case and precision, since binding may compile."""
        key = (case, precision or self.precision)
        if key not in self._bound:
            known = law(case)
            try:
                tables = self.method.plan(known.model)
            except UnsupportedError as refusal:
                raise SkipTest(f"refused: {refusal}") from refusal
            self._bound[key] = Bound(known, tables, self.bind(known.model, tables, key[1]).engine)
        return self._bound[key]

    def bind(self, model: Model, tables: Tables, precision: Precision) -> binding.BoundMethod:
        """As `binding.bind`."""
        how: dict[str, Any] = {"precision": precision, "device": self.device, "wish": self.wish}
        return binding.bind(self.method, self.backend, model, tables, **how)

    def sample(self, case: str, precision: Precision | None = None, *, least: int = 1, seed: int = SEED) -> Sample:
        """`BATCHES` batches of the pair's chains, or of the `least` if those are fewer, started as the case says."""
        chains = max(self.chains, least)
        key = (case, precision or self.precision, chains, seed)
        if key not in self._samples:
            bound = self.bound(case, precision)
            draw = bound.law.draws if CASES[case].start == "exact" else bound.law.bits
            state = bound.engine.init(seed, draw(chains, seed))
            if self.sampler and (CASES[case].start == "random" or self.method.burnt_in):
                state = burn_in(bound.engine, state, BURN_IN)
            lengths = [BATCH] * BATCHES if self.method.anytime else [1]
            self._samples[key] = Sample(bound, advance(bound.engine, state, lengths)[1])
        return self._samples[key]

    def estimate(self, sample: Sample, chains: slice | list[int] = slice(None)) -> Estimate:
        """The method's estimate from some of the chains."""
        trace = Trace(self.method.reductions)
        for steps, statistics in sample.batches:
            trace.add({name: array[..., chains] for name, array in statistics.items()}, steps)
        model = sample.bound.law.model
        found = self.method.estimate(model, sample.bound.tables, trace)
        shape, needed = np.shape(found.marginals), (model.num_variables,)
        require(
            found.marginals is None or shape == needed,
            f"marginals have shape {shape}; {needed} is needed, p(s = 1) where all variables have two states",
        )
        return found

    def replicas(self, sample: Sample, groups: int, chains: int | None = None) -> list[Estimate]:
        """Estimates from so many groups of the sample's `chains`, each with chains / groups: independent runs."""
        size = (chains or self.chains) // groups
        return [self.estimate(sample, slice(g * size, (g + 1) * size)) for g in range(groups)]


def reduced(arrays: list[npt.NDArray[Any]], reduction: str) -> npt.NDArray[Any]:
    """What several batches report as one."""
    if reduction == "last":
        return arrays[-1]
    whole = np.stack(arrays)
    return np.asarray(whole.sum(axis=0) if reduction == "sum" else np.logaddexp.reduce(whole, axis=0))


def burn_in(engine: Engine, state: State, steps: int) -> State:
    """Burn-in as `spinbench.inference.driver` does it."""
    done = 0
    for end in WINDOWS:
        upto = int(steps * end)
        state = engine.warm(state, upto - done) if upto > done else state
        state = engine.adapt(state, end == WINDOWS[-1])
        done = upto
    return state


def advance(engine: Engine, state: State, lengths: list[int]) -> tuple[State, Batches]:
    """Batches of these lengths.

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
