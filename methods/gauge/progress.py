"""What a search for gauges has found so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent.newton import End

FloatArray = npt.NDArray[np.float64]


@dataclass
class Report:
    """What a search has found.

    Attributes:
        bounds: by name, each the best verified lower bound so far.
        bound: the one that was asked for.
        residual: largest component of the gradient where the maximisation ended that gave the best candidate.
        end: why that maximisation ended.
        judged: the best candidate's bound.
        unverified: gauges that gave no bound, for an entry was negative beyond rounding.
        finished: whether the search is over.
        steps: that the search has taken.
    """

    bound: float
    bounds: dict[str, float] = field(default_factory=dict)
    residual: float = np.inf
    end: End = ""
    judged: float = -np.inf
    unverified: int = 0
    finished: bool = False
    steps: int = 0
    _marginals: FloatArray = field(default_factory=lambda: np.zeros(0))
    _compute_marginals: Callable[[], FloatArray] | None = None

    @property
    def marginals(self) -> FloatArray:
        """(N,) of the source's variables, of the best candidate; NaN where there are none yet."""
        if self._compute_marginals is not None:
            self._marginals, self._compute_marginals = self._compute_marginals(), None
        return self._marginals

    def defer_marginals(self, compute: Callable[[], FloatArray]) -> None:
        """Those that `compute` gives, which is called once they are asked for."""
        self._compute_marginals = compute

    def offer(self, name: str, value: float) -> None:
        """Take in a bound."""
        self.bounds[name] = max(value, self.bounds[name])

    def offer_answer(self, name: str, value: float) -> None:
        """Take in a bound that is the one that was asked for."""
        self.offer(name, value)
        self.bound = max(self.bound, value)

    def answer(self, value: float, residual: float, end: End) -> None:
        """A new best candidate."""
        self.bound = max(self.bound, value)
        self.judged, self.residual, self.end = value, residual, end


def first_report(models: Sequence[ForneyModel], names: Sequence[str]) -> Report:
    """Before any step: the weight of the state of all zeros of the best relabelling, a bound by itself."""
    start = max(float(model.log_weight(np.zeros(model.num_edges, dtype=np.int64))) for model in models)
    report = Report(start, dict.fromkeys(names, start))
    report.defer_marginals(lambda: np.full(models[0].num_variables, np.nan))
    return report


def trivial(model: ForneyModel, report: Report) -> None:
    """The report of a model without edges: log Z itself."""
    for name in report.bounds:
        report.bounds[name] = model.log_constant
    report.defer_marginals(lambda: model.variable_marginals([]))
    report.answer(model.log_constant, 0.0, "gradient")
