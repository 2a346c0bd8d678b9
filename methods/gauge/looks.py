"""What the ends of maximisations are worth: verified bounds of gauges and points, taken into a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent import field_gauge
from spinbench.methods.gauge.ascent.derivatives import slot_products
from spinbench.methods.gauge.ascent.newton import End
from spinbench.methods.gauge.ascent.objectives import barrier_weights
from spinbench.methods.gauge.bounds import lower_bound_tables, mean_field_bound, node_beliefs
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.methods.gauge.progress import Report

FloatArray = npt.NDArray[np.float64]


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
