"""What the ends of maximisations are worth: verified bounds of gauges and points, taken into reports.

Everything is done for M models of one graph at once, one gauge and one report each; a search on NumPy looks at one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge import field_gauge
from spinbench.methods.gauge.bounds import mean_field_rows, node_beliefs, verified_rows
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.methods.gauge.newton import End
from spinbench.methods.gauge.objectives import Tables, barrier_weights, product_weights
from spinbench.methods.gauge.report import Report
from spinbench.models.forney import DegreeGroup, ForneyModel

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A gauge of a relabelled model.

    Attributes:
        model: the relabelled model.
        theta: (2E,) angles.
        tables: verified.
        slack: to be taken off bounds from them.
        value: its bound.
    """

    model: ForneyModel
    theta: FloatArray
    tables: Tables
    slack: float
    value: float


class Ended(NamedTuple):
    """How M maximisations ended: with what gradient's largest component, and why."""

    residual: Sequence[float] | FloatArray
    end: Sequence[End]


def look_at_gauges(
    models: Sequence[ForneyModel],
    theta: FloatArray,
    ended: Ended,
    delta: float,
    reports: Sequence[Report],
    judge: str,
) -> list[Candidate | None]:
    """Offer the bounds of gauges (M, 2E); the candidates by the bound `judge`, None where a gauge gives no bound."""
    fine, tables, slack = verified_rows(models[0], theta, tables_of(models))
    sums = partial_sums(models[0], tables)
    taken_off = np.array([model.log_constant for model in models]) - slack
    bounds = {"g_bp": sums.zero + taken_off, "single": sums.single + taken_off, "multiple": sums.multiple + taken_off}
    found: list[Candidate | None] = []
    for row, (model, report) in enumerate(zip(models, reports, strict=True)):
        if not fine[row]:
            report.unverified += 1
            found.append(None)
            continue
        for name in bounds.keys() & report.bounds.keys():
            report.offer(name, float(bounds[name][row]))
        report.bound = max(report.bound, report.bounds[judge])
        mine = [table[row] for table in tables]
        candidate = Candidate(model, theta[row], mine, float(slack[row]), float(bounds[judge][row]))
        if candidate.value > report.judged:
            report.answer(candidate.value, float(ended.residual[row]), ended.end[row])
            if judge == "g_bp":  # the others are asked for no marginals
                report.marginals_from(
                    partial(_marginals, model, theta[row], lambda group: barrier_weights(group.degree, delta))
                )
        found.append(candidate)
    return found


def look_at_points(
    models: Sequence[ForneyModel],
    theta: FloatArray,
    q: FloatArray,
    ended: Ended,
    reports: Sequence[Report],
    name: str,
) -> None:
    """Offer the bounds of gauges (M, 2E) and product distributions q (M, E), those also with nearly certain edges made
    certain; each is the answer where it is the best so far."""
    fine, tables, slack = verified_rows(models[0], theta, tables_of(models))
    snapped = field_gauge.snapped(q)
    values, certain = (mean_field_rows(models[0], tables, at) for at in (q, snapped))
    better = certain >= values
    values = np.where(better, certain, values) + np.array([model.log_constant for model in models]) - slack
    for row, (model, report) in enumerate(zip(models, reports, strict=True)):
        if not fine[row]:
            report.unverified += 1
            continue
        report.offer(name, float(values[row]))
        if not values[row] > report.judged:
            continue
        report.answer(float(values[row]), float(ended.residual[row]), ended.end[row])
        chosen = snapped[row] if better[row] else q[row]
        report.marginals_from(partial(_marginals, model, theta[row], partial(_floored, chosen)))


def tables_of(models: Sequence[ForneyModel]) -> list[FloatArray]:
    """(M, n, 2**d) a degree group, of models of one graph."""
    return [np.stack(parts) for parts in zip(*([g.tables for g in model.groups] for model in models), strict=True)]


def _floored(q: FloatArray, group: DegreeGroup) -> FloatArray:
    return np.asarray(product_weights(q[group.edges]) + field_gauge.FLOOR / 2**group.degree)


def _marginals(model: ForneyModel, theta: FloatArray, weights: Callable[[DegreeGroup], FloatArray]) -> FloatArray:
    """From the weights (n, 2**d), or the same for all nodes, of log f_{a,G} of a degree group."""
    given = [np.broadcast_to(weights(group), group.tables.shape) for group in model.groups]
    return model.variable_marginals(node_beliefs(model, theta, given))
