"""What a search for gauges has found so far: a report, into which verified bounds of gauges and points are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent import field_gauge
from spinbench.methods.gauge.ascent.derivatives import FloatArray, slot_products
from spinbench.methods.gauge.ascent.newton import End
from spinbench.methods.gauge.ascent.objectives import barrier_weights
from spinbench.methods.gauge.bounds import lower_bound_tables, mean_field_bound, node_beliefs, partial_sums


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


@dataclass(frozen=True)
class Candidate:
    """A gauge of a relabelled model.

    Attributes:
        model: the relabelled model.
        theta: (2E,) angles.
        tables: lower bounds on the gauged ones.
        value: its bound.
    """

    model: ForneyModel
    theta: FloatArray
    tables: Sequence[FloatArray]
    value: float


class Ended(NamedTuple):
    """How a maximisation ended: with what gradient's largest component, and why."""

    residual: float
    end: End


def look_at_gauge(
    model: ForneyModel, theta: FloatArray, ended: Ended, delta: float, report: Report, judge: str
) -> Candidate | None:
    """Offer the bounds of a gauge (2E,); the candidate by the bound `judge`, None where the gauge gives no bound."""
    tables = lower_bound_tables(model, theta)
    if tables is None:
        report.unverified += 1
        return None
    sums = partial_sums(model, tables)
    bounds = {"g_bp": sums.zero, "single": sums.single, "multiple": sums.multiple}
    for name in bounds.keys() & report.bounds.keys():
        report.offer(name, bounds[name])
    report.bound = max(report.bound, report.bounds[judge])
    if bounds[judge] > report.judged:
        report.answer(bounds[judge], *ended)
        # Only searches whose criterion is G-BP itself report marginals.
        if judge == "g_bp":
            weights = [barrier_weights(group.degree, delta) for group in model.groups]
            report.defer_marginals(_marginals(model, theta, weights))
    return Candidate(model, theta, tables, bounds[judge])


def look_at_point(
    model: ForneyModel, theta: FloatArray, q: FloatArray, ended: Ended, report: Report, name: str
) -> None:
    """Offer the bound of a gauge (2E,) and a product distribution q (E,), also with nearly certain edges made certain;
    it is the answer where it is the best so far."""
    tables = lower_bound_tables(model, theta)
    if tables is None:
        report.unverified += 1
        return
    # Optima lie at the boundary, where q is 0 or 1: the bound is evaluated both at q and at q with nearly certain edges
    # rounded.
    value, q = max(
        ((mean_field_bound(model, tables, at), at) for at in (field_gauge.snap(q), q)), key=lambda pair: pair[0]
    )
    report.offer(name, value)
    if value > report.judged:
        report.answer(value, *ended)
        weights = [slot_products(q[group.edges].T).T + field_gauge.FLOOR / 2**group.degree for group in model.groups]
        report.defer_marginals(_marginals(model, theta, weights))


def _marginals(model: ForneyModel, theta: FloatArray, weights: Sequence[FloatArray]) -> Callable[[], FloatArray]:
    """A function that gives (N,) those of the source's variables; a run asks for few of them."""
    return lambda: model.variable_marginals(node_beliefs(model, theta, weights))
