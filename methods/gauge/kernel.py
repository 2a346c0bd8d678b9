"""The gauged methods as engines: one step of an engine is one Newton step of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spinbench.api import Backend, ForneyModel, Kernel, Model, Reduction, States
from spinbench.methods.gauge.ascent.newton import ENDS, ON_HOST, Ascents
from spinbench.methods.gauge.ascent.objectives import Formulas, formulas_of
from spinbench.methods.gauge.ascent.point_mass import CENTRE
from spinbench.methods.gauge.progress import Report, trivial

if TYPE_CHECKING:
    from spinbench.methods.gauge.method import Gauged

# Shapes: bound (1,); bounds (names, 1); marginals (N, 1), 0.5 before the first estimate; residual, unverified, finished
# and iterations (1,); end (1,), an index into `ENDS`.
REDUCTIONS: dict[str, Reduction] = dict.fromkeys(
    ("bound", "bounds", "marginals", "residual", "end", "unverified", "finished", "iterations"), "last"
)
ON_NUMPY = "nothing of it is compiled for numba: its steps are NumPy's"
TERMS_ON_NUMPY = "the terms after the first maximisation are bounded in NumPy, since each has a graph of its own"
# Stands for an infinite residual, since statistics have to be finite.
LARGEST = 1e300


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


@dataclass
class Search:
    """State of an engine: a search under way, and what it has found."""

    report: Report
    steps: Iterator[None]


class GaugeKernel(Kernel[GaugePlan, Search]):
    """On every backend: the objectives and their derivatives by its arrays, the rest on the host.

    Bounds are float64 whatever precision is asked for: rounding of float32 would break them. All chains share one
    answer, the best of all labels and restarts, which the seed and the chains' start states do not change.
    """

    def __init__(self, method: Gauged, backend: Backend, model: Model, tables: GaugePlan) -> None:
        self._method = method
        self._plan = tables
        if backend.name == "numba":
            self.notes = (ON_NUMPY,)
        elif backend.name == "jax" and "sequential" in self._method.names:
            self.notes = (TERMS_ON_NUMPY,)
        self._compiles = type(backend).compile is not Backend.compile
        backend_class: Callable[..., Backend] = type(backend)
        self._formulas = _formulas_on(backend_class, backend.device)

    def init(self, seed: int, start: States) -> Search:
        report = self._method.report(self._plan)
        if not self._plan.models[0].num_edges:
            trivial(self._plan.models[0], report)
            report.finished = True
            return Search(report, iter(()))
        return Search(report, self._method.search(self._plan, report, self._formulas))

    def warm(self, state: Search, steps: int) -> Search:
        """There is no burn-in: this is where the driver has all compiled, before it starts its clock."""
        model = self._plan.models[0]
        if model.num_edges and self._compiles:
            for joint in (False, True) if "g_mf" in self._method.names else (False,):
                ascents = Ascents(model, joint, self._formulas)
                ascents.newton(np.zeros(ascents.size), CENTRE).step()
        return state

    def advance(self, state: Search, steps: int) -> tuple[Search, dict[str, np.ndarray]]:
        for _ in range(steps):
            if state.report.finished:
                break
            state.report.finished = next(state.steps, state) is state
            state.report.steps += not state.report.finished
        return state, statistics_of(state.report, self._method.names)


@lru_cache(maxsize=8)
def _formulas_on(backend_class: Callable[..., Backend], device: str) -> Formulas:
    """In float64. Kept, so that models of one shape share what is compiled."""
    double = backend_class(precision="float64", device=device)
    if "arrays" in double.provides:
        return formulas_of(double.xp, double.compile)
    return ON_HOST


def statistics_of(report: Report, names: Sequence[str]) -> dict[str, np.ndarray]:
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
