"""What the gauged methods do with their Newton steps: labels, continuations, corrections, restarts.

A search is a generator that gives way after every Newton step and brings a `Report` up to date at the end of each
maximisation; what it has found so far is a verified bound at any time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge import field_gauge, ipopt, mean_field, point_mass
from spinbench.methods.gauge.bounds import (
    corrections,
    mean_field_bound,
    node_beliefs,
    point_mass_bound,
    verify,
)
from spinbench.methods.gauge.newton import End
from spinbench.methods.gauge.objectives import Tables, barrier_weights, product_weights
from spinbench.models.forney import ForneyModel

FloatArray = npt.NDArray[np.float64]

SWEEPS = 16
"""Of mean field, from one look at its bound to the next."""
Solver = Literal["newton", "ipopt"]
Headline = Literal["g_bp", "single", "multiple", "sequential"]


@dataclass
class Report:
    """What a search has found.

    Attributes:
        bounds: by name, each the best verified lower bound so far.
        bound: the one that was asked for.
        marginals: (N,) of the source's variables, of the best candidate; NaN where there are none yet.
        residual: largest component of the gradient where the maximisation ended that gave the best candidate.
        end: why that maximisation ended.
        judged: the best candidate's bound.
        unverified: gauges that gave no bound, for an entry was negative beyond rounding.
        finished: whether the search is over.
    """

    bound: float
    marginals: FloatArray
    bounds: dict[str, float] = field(default_factory=dict)
    residual: float = np.inf
    end: End = ""
    judged: float = -np.inf
    unverified: int = 0
    finished: bool = False

    def offer(self, name: str, value: float) -> None:
        """Take in a bound."""
        self.bounds[name] = max(value, self.bounds[name])

    def answer(self, value: float, residual: float, end: End) -> None:
        """A new best candidate."""
        self.bound = max(self.bound, value)
        self.judged, self.residual, self.end = value, residual, end


@dataclass(frozen=True)
class Candidate:
    """A gauge of a relabelled model.

    Attributes:
        model: the relabelled model.
        theta: (2E,) angles.
        tables: verified.
        slack: to be taken off bounds from them.
    """

    model: ForneyModel
    theta: FloatArray
    tables: Tables
    slack: float


def first_report(models: Sequence[ForneyModel], names: Sequence[str]) -> Report:
    """Before any step: the weight of the state of all zeros of the best relabelling, a bound by itself."""
    start = max(float(model.log_weight(np.zeros(model.num_edges, dtype=np.int64))) for model in models)
    report = Report(start, np.full(models[0].num_variables, np.nan))
    report.bounds = dict.fromkeys(names, start)
    return report


def trivial(model: ForneyModel, report: Report) -> None:
    """The report of a model without edges: log Z itself."""
    for name in report.bounds:
        report.bounds[name] = model.log_constant
    report.marginals = model.variable_marginals([])
    report.answer(model.log_constant, 0.0, "gradient")


def search_point_mass(
    models: Sequence[ForneyModel],
    report: Report,
    headline: Headline,
    deltas: Sequence[float],
    *,
    greedy: int = 0,
    seed: int = 0,
    solver: Solver = "newton",
) -> Generator[None, None, Candidate | None]:
    """G-BP with its corrections for each relabelled model; returns the best `Candidate` by the headline, or None.

    Args:
        models: relabellings of one model.
        report: kept up to date.
        headline: the bound that is wanted; for "sequential" candidates are compared by "multiple".
        deltas: of the barrier.
        greedy: passes over the edges in which each is relabelled where that raises the bound.
        seed: of the order of the edges.
        solver: "ipopt" takes one step a labelling.
    """
    judge = "multiple" if headline == "sequential" else headline
    best: Candidate | None = None
    value = -np.inf
    for model in models:
        found, at = yield from _one_model(model, report, judge, deltas, solver)
        if found is not None and at > value:
            best, value = found, at
    if best is None or not greedy:
        return best
    rng = np.random.default_rng(seed)
    for _ in range(greedy):
        before = value
        for edge in rng.permutation(best.model.num_edges):
            flips = np.zeros(best.model.num_edges, dtype=np.int64)
            flips[edge] = 1
            found, at = yield from _one_model(best.model.relabel(flips), report, judge, deltas, solver)
            if found is not None and at > value + 1e-9:
                best, value = found, at
        if not value > before:
            break
    return best


def _one_model(
    model: ForneyModel, report: Report, judge: str, deltas: Sequence[float], solver: Solver
) -> Generator[None, None, tuple[Candidate | None, float]]:
    """Returns the best candidate of one labelling and its bound by `judge`."""
    best: Candidate | None = None
    value = -np.inf
    stages = point_mass.continuation(model, deltas) if solver == "newton" else iter([ipopt.maximise(model)])
    for stage in stages:
        ended = stage.end and np.isfinite(stage.delta)
        found = take_gauge(model, stage, report, judge) if ended else None
        if found is not None and found[1] > value:
            best, value = found
        yield
    return best, value


def take_gauge(
    model: ForneyModel, stage: point_mass.Stage, report: Report, judge: str
) -> tuple[Candidate, float] | None:
    """Offer the bounds of the gauge that a maximisation ended with; the candidate and its bound by `judge`."""
    verified = verify(model, stage.theta)
    if verified is None:
        report.unverified += 1
        return None
    tables, slack = verified
    found = {"g_bp": point_mass_bound(model, tables)}
    found["single"], found["multiple"] = corrections(model, tables)
    for name in found.keys() & report.bounds.keys():
        report.offer(name, found[name] - slack)
    report.bound = max(report.bound, report.bounds[judge])
    value = found[judge] - slack
    if value > report.judged:
        weights = [
            np.broadcast_to(barrier_weights(group.degree, stage.delta), table.shape)
            for group, table in zip(model.groups, tables, strict=True)
        ]
        report.answer(value, stage.residual, stage.end)
        report.marginals = model.variable_marginals(node_beliefs(model, stage.theta, weights))
    return Candidate(model, stage.theta, tables, slack), value


def search_mean_field(
    models: Sequence[ForneyModel],
    report: Report,
    deltas: Sequence[float],
    *,
    restarts: int,
    field_starts: int,
    seed: int = 0,
) -> Generator[None, None, None]:
    """G-MF for each relabelled model.

    Mean field of the same model and G-BP are bounds of the same family (no gauge, a point mass), so the best of them
    is reported: it is never below either.

    Args:
        models: relabellings of one model.
        report: kept up to date.
        deltas: of the barrier of G-BP.
        restarts: starts of the joint ascent from perturbed mean field; the first one is from an early stage of G-BP.
        field_starts: runs of mean field.
        seed: of the starts.
    """
    rng = np.random.default_rng(seed)
    for model in models:
        q = yield from _field(model, report, field_starts, rng)
        early = None
        for stage in point_mass.continuation(model, deltas):
            if np.isfinite(stage.delta) and stage.end:
                if stage.delta == deltas[min(point_mass.EARLY, len(deltas)) - 1]:
                    early = stage.theta
                point = Point(model, stage.theta, np.zeros(model.num_edges))
                take_point(point, report, "g_bp", stage.residual, stage.end)
            yield
        if early is None:
            continue
        yield from _joint(Point(model, early, np.full(model.num_edges, 0.1)), report, field_gauge.FROM_GAUGE)
        inside = early if model.has_zeros else np.zeros(2 * model.num_edges)
        for k in range(restarts):
            spread = 0.01 if k == 0 else 0.05
            start = q[:, k % q.shape[1]] + spread * rng.standard_normal(model.num_edges)
            yield from _joint(Point(model, inside, start), report, field_gauge.FROM_FIELD)


class Point(NamedTuple):
    """A gauge and a product distribution: angles theta (2E,) and q (E,) of a model."""

    model: ForneyModel
    theta: FloatArray
    q: FloatArray


def _field(
    model: ForneyModel, report: Report, starts: int, rng: np.random.Generator
) -> Generator[None, None, FloatArray]:
    """Mean field; returns q (E, starts), best first."""
    tables = mean_field.field_tables(model)
    start = rng.uniform(0.1, 0.9, (model.num_edges, starts))
    q = start
    for sweep, (q, change) in enumerate(mean_field.ascend(tables, start)):
        if sweep % SWEEPS == 0 or field_end(change) == "gradient":
            best = q[:, int(mean_field.value(tables, q).argmax())]
            take_point(Point(model, np.zeros(2 * model.num_edges), best), report, "mf", change, field_end(change))
        yield
    return q[:, np.argsort(-mean_field.value(tables, q), kind="stable")]


def field_end(change: float) -> End:
    """Of mean field, whose last sweep changed q by so much."""
    return "gradient" if change < mean_field.TOLERANCE else "limit"


def _joint(start: Point, report: Report, schedule: Sequence[tuple[float, float]]) -> Generator[None, None, None]:
    for joint in field_gauge.ascent(start.model, start.theta, start.q, schedule):
        if joint.end:
            q = field_gauge.rounded(start.model, joint.theta, joint.q)
            take_point(Point(start.model, joint.theta, q), report, "g_mf", joint.residual, joint.end)
        yield


def take_point(point: Point, report: Report, name: str, residual: float, end: End) -> None:
    """Offer the bound of a point, and make it the answer where it is the best."""
    verified = verify(point.model, point.theta)
    if verified is None:
        report.unverified += 1
        return
    tables, slack = verified
    value = mean_field_bound(point.model, tables, point.q) - slack
    report.offer(name, value)
    if not value > report.judged:
        return
    weights = [
        product_weights(point.q[group.edges]) + field_gauge.FLOOR / table.shape[1]
        for group, table in zip(point.model.groups, tables, strict=True)
    ]
    report.answer(value, residual, end)
    report.marginals = point.model.variable_marginals(node_beliefs(point.model, point.theta, weights))
