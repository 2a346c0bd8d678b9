"""What the ends of maximisations are worth: verified bounds of gauges and points, taken into reports.

Everything is done for M models of one graph at once, one gauge and one report each; a search on NumPy looks at one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge.ascent import field_gauge
from spinbench.methods.gauge.ascent.newton import End
from spinbench.methods.gauge.ascent.objectives import Tables, barrier_weights, product_weights
from spinbench.methods.gauge.bounds import mean_field_rows, node_beliefs, verified_rows
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.methods.gauge.progress import Report
from spinbench.models.forney.model import ForneyModel

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
    tables: Tables
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
    given = tables_of(models)
    fine, tables = verified_rows(models[0], theta, given)
    sums = partial_sums(models[0], tables)
    constants = np.array([model.log_constant for model in models])
    bounds = {"g_bp": sums.zero + constants, "single": sums.single + constants, "multiple": sums.multiple + constants}
    beliefs = Beliefs(models[0], theta, given, [barrier_weights(group.degree, delta) for group in models[0].groups])
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
        candidate = Candidate(model, theta[row], mine, float(bounds[judge][row]))
        if candidate.value > report.judged:
            report.answer(candidate.value, float(ended.residual[row]), ended.end[row])
            if judge == "g_bp":  # the others are asked for no marginals
                report.marginals_from(partial(beliefs.marginals, model, row))
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
    given = tables_of(models)
    fine, tables = verified_rows(models[0], theta, given)
    snapped = field_gauge.snapped(q)
    values, certain = (mean_field_rows(models[0], tables, at) for at in (q, snapped))
    better = certain >= values
    q = np.where(better[:, None], snapped, q)
    weights = [product_weights(q[:, g.edges]) + field_gauge.FLOOR / 2**g.degree for g in models[0].groups]
    beliefs = Beliefs(models[0], theta, given, weights)
    values = np.where(better, certain, values) + np.array([model.log_constant for model in models])
    for row, (model, report) in enumerate(zip(models, reports, strict=True)):
        if not fine[row]:
            report.unverified += 1
            continue
        report.offer(name, float(values[row]))
        if not values[row] > report.judged:
            continue
        report.answer(float(values[row]), float(ended.residual[row]), ended.end[row])
        report.marginals_from(partial(beliefs.marginals, model, row))


class Beliefs:
    """Beliefs of the nodes at M gauges, found for all of them once one is asked for; arguments as of `node_beliefs`."""

    def __init__(
        self, graph: ForneyModel, theta: FloatArray, given: Sequence[FloatArray], weights: Sequence[FloatArray]
    ) -> None:
        self._ask = partial(node_beliefs, graph, theta, given, weights)

    @cached_property
    def _found(self) -> Tables:
        return self._ask()

    def marginals(self, model: ForneyModel, row: int) -> FloatArray:
        """(N,) of the source's variables of one of the models."""
        return model.variable_marginals([belief[row] for belief in self._found])


def tables_of(models: Sequence[ForneyModel]) -> list[FloatArray]:
    """(M, n, 2**d) a degree group, of models of one graph."""
    return [np.stack(parts) for parts in zip(*([g.tables for g in model.groups] for model in models), strict=True)]
