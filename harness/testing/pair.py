"""One method on one backend, with the engines and runs that its checks share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import SkipTest

import numpy as np

from spinbench.api import Estimate, Method, Precision, Tables
from spinbench.api.types import RANDOM_KINDS
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.inference import binding, registry
from spinbench.inference.kernels import ANY, Wish
from spinbench.inference.origins import model_for_method
from spinbench.models import Model
from spinbench.testing.backends.arrays import PRECISIONS, available_precisions
from spinbench.testing.check import require
from spinbench.testing.laws.cases import CASES, law
from spinbench.testing.laws.large_models import find_solved_model
from spinbench.testing.trial import BURN_IN, SEED, Batches, Trial, advance_batches, run_burn_in

# Default number of chains of most checks.
CHAINS = 2048
# Batches of a sample.
BATCHES = 32
# Steps of each batch.
BATCH = 2
# Models on which two states rarely agree by chance.
MANY_STATE_MODELS = ("101 variables", "20 variables, dense")
# CPU seconds for all models of many variables together.
LARGE_MODEL_SECONDS = 25.0


@dataclass(frozen=True, eq=False)
class Sample:
    """What a run reported, cut into batches.

    Attributes:
        bound: what ran.
        batches: (steps, statistics) of each batch.
    """

    bound: Trial
    batches: Batches


@dataclass(eq=False)
class Pair:
    """A method with its settings on a backend, as checks run it.

    `precision` and `chains` are those of checks that name no others; `wish` selects the kernel or the program.
    """

    method: Method
    backend: str
    precision: Precision
    chains: int = CHAINS
    wish: Wish = ANY
    device: str = "cpu"
    seconds: float = LARGE_MODEL_SECONDS
    """That models of many variables may still take."""
    _samples: dict[tuple[str, Precision, int, int], Sample] = field(default_factory=dict)
    _trials: dict[tuple[str, Precision], Trial] = field(default_factory=dict)
    many: dict[tuple[str, Precision], Any] = field(default_factory=dict)
    """What `spinbench.testing.shapes` has seen of many chains, by model and precision; with it few are compared."""

    def list_accepted_cases(self) -> list[str]:
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
        """Keywords with which `spinbench.run` runs this pair."""
        return {"precision": self.precision, "device": self.device, "tier": self.wish.tier, "kernel": self.wish.kernel}

    @property
    def sampler(self) -> bool:
        """Whether it makes chains of random draws."""
        return self.method.kind in RANDOM_KINDS

    @property
    def anytime(self) -> bool:
        """Whether it has an answer after each step."""
        return self.method.kind != "direct"

    @property
    def iteration(self) -> bool:
        """Whether it goes step by step and draws nothing."""
        return self.method.kind == "iteration"

    @property
    def compiles_once(self) -> bool:
        """Whether other settings and numbers of chains need no compilation, unlike programs on backends with loops."""
        return self.native or "loop" not in registry.backend_class(self.backend).provides

    @property
    def other_precisions(self) -> list[Precision]:
        """Precisions that the backend offers besides the pair's."""
        return [precision for precision in available_precisions(self.backend) if precision != self.precision]

    @property
    def missing_precisions(self) -> list[Precision]:
        """Precisions that the backend does not offer."""
        return [precision for precision in PRECISIONS.values() if precision not in available_precisions(self.backend)]

    def trial(self, name: str, precision: Precision | None = None) -> Trial:
        """The pair's method planned and bound for a model with known answers; cached, since binding may compile.

        Raises:
            SkipTest: the method refuses it.
        """
        key = (name, precision or self.precision)
        if key not in self._trials:
            exact = find_solved_model(name)
            try:
                model = model_for_method(exact.model, self.method)
                bound = self.bind(model, self.method.plan(model), key[1])
            except (UnsupportedError, ModelError, IntractableError) as refusal:
                raise SkipTest(f"refused: {refusal}") from refusal
            self._trials[key] = Trial(**vars(bound), solved=exact)
        return self._trials[key]

    def bind(self, model: Model, tables: Tables, precision: Precision) -> binding.BoundMethod:
        """As `binding.bind`."""
        how: dict[str, Any] = {"precision": precision, "device": self.device, "wish": self.wish}
        return binding.bind(self.method, self.backend, model, tables, **how)

    def sample(self, case: str, precision: Precision | None = None, *, min_chains: int = 1, seed: int = SEED) -> Sample:
        """`BATCHES` batches of the pair's chains, or of `min_chains` if those are fewer, started as the case says."""
        chains = max(self.chains, min_chains)
        key = (case, precision or self.precision, chains, seed)
        if key not in self._samples:
            bound = self.trial(case, precision)
            draw = bound.law.uniform_states
            if CASES[case].start == "exact":
                draw = bound.law.exact_draws
            state = bound.engine.init(seed, draw(chains, seed))
            if self.sampler and (CASES[case].start == "random" or self.method.conformance.burn_in_first):
                state = run_burn_in(bound.engine, state, BURN_IN)
            lengths = [BATCH] * BATCHES if self.method.kind != "direct" else [1]
            self._samples[key] = Sample(bound, advance_batches(bound.engine, state, lengths)[1])
        return self._samples[key]

    def estimate(self, sample: Sample, chains: slice | list[int] = slice(None)) -> Estimate:
        """The method's estimate from some of the chains."""
        bound = sample.bound
        estimate = self.method.estimate(bound.model, bound.tables, bound.build_trace(sample.batches, chains))
        shape, needed = np.shape(estimate.marginals), (bound.model.num_variables,)
        require(
            estimate.marginals is None or shape == needed,
            f"marginals have shape {shape}; {needed} is needed, p(s = 1) where all variables have two states",
        )
        return estimate

    def trial_of_many_states(self, precision: Precision | None = None) -> Trial:
        """A trial on a model with many states: the first on which the method runs, chains differ and steps are short.

        Raises:
            SkipTest: it takes none of them.
        """
        # Not for exact methods, to which these models may be too large.
        for name in MANY_STATE_MODELS if self.method.kind != "direct" else ():
            with suppress(SkipTest):
                at = self.trial(name, precision)
                if not self.sampler or name == MANY_STATE_MODELS[-1] or (at.chains_differ and not at.has_long_steps):
                    return at
        return self.trial("dense", precision)

    def estimate_replicas(self, sample: Sample, groups: int, chains: int | None = None) -> list[Estimate]:
        """Estimates from so many groups of the sample's `chains`, each with chains / groups: independent runs."""
        size = (chains or self.chains) // groups
        return [self.estimate(sample, slice(g * size, (g + 1) * size)) for g in range(groups)]
