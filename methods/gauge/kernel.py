"""The gauged methods as engines: one step of an engine is one Newton step of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel, Reduction
from spinbench.methods.gauge.ascent.newton import ENDS
from spinbench.methods.gauge.ascent.solver import ON_NUMPY, Solver
from spinbench.methods.gauge.progress import Report, trivial
from spinbench.models import Model
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]

REDUCTIONS: dict[str, Reduction] = dict.fromkeys(
    ("bound", "bounds", "marginals", "residual", "end", "unverified", "finished", "iterations"), "last"
)
"""bound (1,); bounds (names, 1); marginals (N, 1), 0.5 while there are none; residual, unverified, finished and
iterations (1,); end (1,), an index into `ENDS`."""
LARGEST = 1e300
"""Stands for an infinite residual, since statistics are finite."""


@dataclass(frozen=True, eq=False)
class GaugePlan:
    """A model ready for gauges; equal where the models and their labels are.

    Attributes:
        models: relabellings of one contracted Forney model, each with a state to start from at x = 0.
        rounding: nats to be taken off every bound, for the rounding of its tables and sums.
    """

    models: tuple[ForneyModel, ...]
    rounding: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaugePlan) and [m.content_hash for m in self.models] == [
            m.content_hash for m in other.models
        ]

    def __hash__(self) -> int:
        return hash(tuple(m.content_hash for m in self.models))


class Searcher(Protocol):
    """What a method gives its kernel."""

    names: tuple[str, ...]

    def report(self, plan: GaugePlan) -> Report:
        """Before the first step."""
        ...

    def search(self, plan: GaugePlan, report: Report, solver: Solver) -> Iterator[None]:
        """One Newton step at a time."""
        ...


@dataclass
class Search:
    """State of an engine: a search under way, and what it has found."""

    report: Report
    steps: Iterator[None]


class GaugeKernel(Kernel):
    """Bounds are float64 whatever precision is asked for: rounding of float32 would break them.

    All chains share one answer, the best of all labels and restarts, which the seed and the chains' start states do
    not change.

    Attributes:
        solver: whose Newton steps they are.
    """

    solver: ClassVar[Solver] = ON_NUMPY

    def __init__(self, method: Any, backend: Backend, model: Model, tables: GaugePlan) -> None:
        self._method: Searcher = method
        self._plan = tables

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> Search:
        report = self._method.report(self._plan)
        if not self._plan.models[0].num_edges:
            trivial(self._plan.models[0], report)
            report.finished = True
            return Search(report, iter(()))
        return Search(report, self._method.search(self._plan, report, self.solver))

    def advance(self, state: Search, steps: int) -> tuple[Search, dict[str, npt.NDArray[Any]]]:
        for _ in range(steps):
            if state.report.finished:
                break
            state.report.finished = next(state.steps, state) is state
            state.report.steps += not state.report.finished
        return state, statistics_of(state.report, self._method.names)


def statistics_of(report: Report, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """What engines report, see `REDUCTIONS`."""
    single = {
        "bound": report.bound,
        "residual": min(report.residual, LARGEST),
        "end": float(ENDS.index(report.end)),
        "unverified": float(report.unverified),
        "finished": float(report.finished),
        "iterations": float(max(report.steps, 1)),
    }
    statistics = {name: np.array([value]) for name, value in single.items()}
    statistics["bounds"] = np.array([[report.bounds[name]] for name in names])
    statistics["marginals"] = np.nan_to_num(report.marginals, nan=0.5)[:, None]
    return statistics
