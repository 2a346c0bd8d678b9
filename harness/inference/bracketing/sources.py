"""Who can give bounds on log Z, for which share of a budget, and what each does with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import numpy as np

from spinbench.api.bounds import Bound, BoundRequest, BoundSource, Finding
from spinbench.errors import BrokenPluginError, IntractableError, SpinbenchError, UnsupportedError
from spinbench.foundation import deadline, plugins
from spinbench.foundation.remarks import format_seconds
from spinbench.inference import answers, binding, budget, kernels, registry, runner
from spinbench.inference.checks import best_states
from spinbench.models import FactorGraph, Model, PairwiseModel, generators
from spinbench.models.simplification import compute_simplification
from spinbench.reference.choice import Limits, candidates, first_answer
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver


@dataclass(frozen=True)
class Request(BoundRequest):
    """A request with the methods that are installed."""

    def run(self, method: str, samples: int | None = None, backend: str | None = None, **options: Any) -> Finding:
        budgeted = budget.Budget(seconds=self.seconds, cpu=deadline.on_cpu()) if samples is None else samples
        options = {"seed": self.seed, "checkpoints": 1, **options}
        result = runner.run(self.model, method, backend or _backend(method), budgeted, **options)
        finding = Finding(result.bounds)
        if result.log_z_kind == "estimate":
            numbers = result.log_z, result.log_z_se, result.log_z_error_bound
            finding = Finding(result.bounds, *numbers, result.status == "ok")
        return finding

    def plan(self, method: str, backend: str | None = None, **settings: object) -> binding.BoundMethod:
        return binding.plan_simplified(self.model, method, backend or _backend(method), settings)


def load_sources(*, assumed: bool = True) -> tuple[list[BoundSource], dict[str, str]]:
    """Sources in the order in which they are asked, and the reasons against those that cannot be used.

    Args:
        assumed: whether those of assumed bounds are among them.
    """
    loaded, failed = plugins.load_all("bounds", load_source)
    sources = [source for source in loaded.values() if assumed or not source.assumed]
    return sorted(sources, key=attrgetter("order", "name")), failed


def load_source(name: str) -> BoundSource:
    """The source of a name.

    Raises:
        UnknownNameError, BrokenPluginError: as of `plugins.create`; or it is no `BoundSource`.
    """
    return cast("BoundSource", plugins.create("bounds", name, lambda plugin: _invalid_class_reason(name, plugin)))


def _invalid_class_reason(name: str, plugin: object) -> str:
    if not (isinstance(plugin, type) and issubclass(plugin, BoundSource)):
        return "is no subclass of spinbench.api.BoundSource"
    if getattr(plugin, "name", None) != name:
        return f"has name={getattr(plugin, 'name', None)!r}; both names have to be the same"
    if not 0 <= getattr(plugin, "share", -1) < 1:
        return "has no share of the budget from 0 to 1"
    return ""


def find_bounds(source: BoundSource, request: BoundRequest) -> Iterator[Finding]:
    """What the source finds, by whom.

    Raises:
        SpinbenchError: it cannot.
    """
    try:
        for finding in source.find(request):
            bounds = tuple(replace(bound, by=bound.by or source.name) for bound in finding.bounds)
            yield replace(finding, bounds=bounds, by=finding.by or source.name)
    except (SpinbenchError, ArithmeticError, MemoryError, np.linalg.LinAlgError):
        raise
    except Exception as error:
        if plugins.is_own("bounds", source.name):
            raise
        why = f"{plugins.label('bounds', source.name)} failed: {plugins.describe_error(error)}"
        raise BrokenPluginError(why) from error


def find_quick_bounds(model: Model, seed: int) -> Iterator[Bound]:
    """Lower bounds that need no compiler: those of the last sources first, which do not search."""
    for source in reversed(load_sources()[0]):
        with suppress(UnsupportedError):
            for finding in source.find_quickly(Request(model, 0.0, seed)):
                yield from finding.bounds


def load(model: Model, sources: list[BoundSource]) -> None:
    """Load, or compile, what sources run: on a model of this kind, but a small one."""
    small: Model = PairwiseModel.from_edges([0.1, 0.2, 0.3], [(0, 1), (1, 2), (0, 2)], [0.1, 0.2, 0.3])
    if isinstance(model, FactorGraph):
        table = [[0.1, 0.2], [0.3, 0.4]]
        small = FactorGraph.from_tables([2, 2, 2], [((0, 1), table), ((1, 2), table), ((0, 2), table)])
    for source in sources:
        source.load(Request(small, 0.01, delta=0.1, max_gib=0.1))


class BestStates(BoundSource):
    """What different states weigh together."""

    name = best_states.BY
    share, order = 0.05, 10

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        return (Finding((bound,)) for bound in best_states.bounds_below(request.model, request.seed))

    def find_quickly(self, request: BoundRequest) -> Iterator[Finding]:
        return self.find(request)


class ExactAnswer(BoundSource):
    """Where the solver itself expects to be ready in time."""

    name = "exact"
    share, order = 0.2, 30

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        def solve(solver: Solver) -> float:
            seconds = solver.predict_seconds(marginals=False)
            if seconds > request.seconds:
                raise IntractableError(f"{solver.name} would take about {format_seconds(seconds)}")
            return solver.solve(marginals=False)[0]

        problem = Problem(compute_simplification(request.model).model)
        solvers = candidates(problem, "auto", answers.ALL_SOLVERS, sampling=False)
        _, log_z = first_answer(problem, solvers, Limits(int(request.max_gib * 2**30)), solve, marginals=False)
        yield Finding((Bound(log_z, "lower", "exact"), Bound(log_z, "upper", "exact")))

    def load(self, request: BoundRequest) -> None:
        if registry.support("exact", "numba").runs:
            kinds, small = answers.numba_solvers().kinds, request.model
            fitting = {"rbm": generators.rbm(2, 2), "grid": generators.grid(2, 2), "bucket_tree": small}
            for name, model in fitting.items():
                kinds[name].build(Problem(model)).solve(marginals=False)


def _backend(method: str) -> str:
    """The first that runs it here, and in processes that are forked.

    Raises:
        SpinbenchError: none does.
    """
    names = [name for name in kernels.backends_by_preference() if kernels.backend_profile(name).survives_fork]
    supports = {backend: registry.support(method, backend) for backend in names}
    first = next((backend for backend, support in supports.items() if support.runs), None)
    if first is None:
        raise SpinbenchError("; ".join(support.reason for support in supports.values()))
    return first
