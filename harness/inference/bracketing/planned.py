"""A method that is planned and bound for a bracket."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from spinbench.api import Engine, Estimate, Method, State, Tables
from spinbench.api.trace import Trace
from spinbench.inference import binding, registry
from spinbench.inference.kernels import Wish
from spinbench.inference.origins import allowing_for
from spinbench.mathematics.rounding import work_of
from spinbench.models import Model
from spinbench.models.simplification import Simplification, compute_simplification


class Planned(NamedTuple):
    """Of one simplified model, in float64. Attributes: those of a run."""

    simple: Simplification
    method: Method
    tables: Tables
    engine: Engine

    @property
    def model(self) -> Model:
        """What is left of the one that was given."""
        return self.simple.model

    @property
    def slack(self) -> float:
        """Nats that rounding may have taken off."""
        return work_of(self.model).allowance() + self.simple.rounding

    def initial_state(self, seed: int, chains: int) -> State:
        """Of a method that finds its own starts."""
        return self.engine.init(seed, np.zeros((self.model.num_variables, chains), dtype=np.int8))

    def estimate(self, trace: Trace) -> Estimate:
        """With what simplifying may have rounded."""
        return allowing_for(self.method.estimate(self.model, self.tables, trace), self.simple.rounding)


def plan_simplified(
    model: Model, name: str, backend: str, settings: dict[str, Any], tier: Literal["native", "generic"] | None = None
) -> Planned:
    """A registered method, with its settings, for what simplifying leaves of a model.

    Args:
        model: any.
        name: of the method.
        backend: a registered name.
        settings: of the method.
        tier: as `spinbench.run` takes it.

    Raises:
        UnsupportedError: as of `binding.plan_and_bind`.
    """
    simple = compute_simplification(model)
    method = registry.make_method(name, settings)
    bound = binding.plan_and_bind(method, backend, simple.model, wish=Wish(tier))
    return Planned(simple, method, bound.tables, bound.engine)
