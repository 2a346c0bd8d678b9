"""Gauged bounds of many models at once in JAX, and the JAX kernel, which is a batch of one model.

Models of one graph (the same edges after contraction) go through the same compiled steps, side by side with their
labellings and, for G-BP-sequential, conditioned models. Mean field and searches for interior points run on the host.
Bounds are taken, and verified, on the host at the ends of maximisations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from spinbench.api import Backend, Estimate, Kernel
from spinbench.errors import UnsupportedError
from spinbench.methods.gauge import field_gauge, mean_field, point_mass
from spinbench.methods.gauge.batched import ascent
from spinbench.methods.gauge.bounds import point_mass_bound
from spinbench.methods.gauge.kernel import REDUCTIONS, GaugePlan, statistics_of
from spinbench.methods.gauge.members import Entry, Members, Place, members_of, pinned_members, schedule_of, structure_of
from spinbench.methods.gauge.method import Gauged, PointMass
from spinbench.methods.gauge.newton import ENDS
from spinbench.methods.gauge.point_mass import EARLY
from spinbench.methods.gauge.search import Candidate, Point, field_end, take_gauge, take_point, trivial
from spinbench.methods.gauge.terms import term_bounds
from spinbench.models import Model
from spinbench.models.forney import ForneyModel
from spinbench.trace import Trace

FloatArray = npt.NDArray[np.float64]
Steps = Generator[None, None, Any]
TERM_LIMIT, TERM_PATIENCE = 30, 10
"""Newton steps of one δ for a term of G-BP-sequential, and those after which slow progress ends it: one term adds
little."""


class BatchSearch:
    """The searches of `spinbench.methods.gauge.search` for several plans of one graph.

    Attributes:
        reports: one a plan, brought up to date by `advance`.
    """

    def __init__(self, method: Any, plans: Sequence[GaugePlan], device: str = "cpu") -> None:
        if method.labels == "greedy":
            raise UnsupportedError(
                f"{method.name}: labels=greedy tries edges one after the other and runs on backend numpy only; mode, "
                "zero and best run on jax"
            )
        if isinstance(method, PointMass) and method.solver == "ipopt":
            raise UnsupportedError(f"{method.name}: solver=ipopt runs on backend numpy only; solver=newton runs on jax")
        self.reports = [method.report(plan) for plan in plans]
        self._method = method
        self._device = device
        self._members = [(p, model) for p, plan in enumerate(plans) for model in plan.models]
        self._structure = structure_of(self._members[0][1])
        self._steps_left = 0
        self._unseen: Callable[[], object] | None = None
        self._steps = self._search()

    def advance(self, steps: int) -> None:
        """So many Newton steps of every member, or up to the end."""
        self._steps_left = steps
        if not self.reports[0].finished and next(self._steps, self) is self:
            for report in self.reports:
                report.finished = True

    def _search(self) -> Steps:
        """Gives way where the steps are used up."""
        if not self._structure.num_edges:
            for p, model in self._members:
                trivial(model, self.reports[p])
        elif isinstance(self._method, PointMass):
            yield from self._point_mass()
        else:
            yield from self._mean_field()

    def _ascend(self, members: Members, entries: Sequence[Entry], z: FloatArray) -> Steps:
        """Returns where the ascents end."""
        compiled = ascent(self._structure, z.shape[1] > 2 * self._structure.num_edges, self._device)
        schedule, place = schedule_of(entries), compiled.start(z, members)
        while (place.stage < len(entries)).any():
            if not self._steps_left:
                if self._unseen is not None:
                    self._unseen()
                    self._unseen = None
                yield
                continue
            taken, place = compiled.advance(members, schedule, place, self._steps_left)
            self._steps_left -= taken
        return place

    def _gauges(self, entries: Sequence[Entry], judge: str) -> Steps:
        """G-BP of all members; returns the angles after the first maximisations, and the best candidate of each plan.

        The gauges of the first maximisations are only looked at where the run pauses before the last one ends, or where
        that one gives no bound: looking takes as long as finding them.
        """
        members, first = members_of([model for _, model in self._members]), entries[:EARLY]
        early = yield from self._ascend(members, first, self._starts())
        if len(first) == len(entries):
            return early.z, self._look(early, first[-1].weight, judge)
        self._unseen = lambda: self._look(early, first[-1].weight, judge)
        place = yield from self._ascend(members, entries[EARLY:], early.z)
        best = self._look(place, entries[-1].weight, judge)
        if len(best) < len(self.reports):
            best = self._look(early, first[-1].weight, judge) | best
        self._unseen = None
        return early.z, best

    def _look(self, place: Place, delta: float, judge: str) -> dict[int, Candidate]:
        """Take in the bounds of all members; the best candidates."""
        best: dict[int, tuple[Candidate, float]] = {}
        for row, (p, model) in enumerate(self._members):
            stage = point_mass.Stage(place.z[row], float(place.residual[row]), delta, ENDS[place.end[row]])
            found = take_gauge(model, stage, self.reports[p], judge)
            if found is not None and (p not in best or found[1] > best[p][1]):
                best[p] = found
        return {p: candidate for p, (candidate, _) in best.items()}

    def _starts(self) -> FloatArray:
        """Angles that keep tables positive; the identity where none are found, where ascents end at once."""
        found = [point_mass.interior(model) for _, model in self._members]
        zero = np.zeros(2 * self._structure.num_edges)
        return np.stack([zero if theta is None else theta for theta in found])

    def _point_mass(self) -> Steps:
        headline, entries = self._method.headline, _entries(self._method.deltas)
        judge = "multiple" if headline == "sequential" else headline
        _, best = yield from self._gauges(entries, judge)
        if headline == "sequential" and best:
            yield from self._sequential(best)

    def _sequential(self, best: dict[int, Candidate]) -> Steps:
        """All terms of all plans at once."""
        parts = [pinned_members(candidate.model, candidate.tables) for candidate in best.values()]
        members = Members(
            tuple(np.concatenate(rows) for rows in zip(*(part.tables for part in parts), strict=True)),
            tuple(np.concatenate(rows) for rows in zip(*(part.shares for part in parts), strict=True)),
            np.concatenate([part.free for part in parts]),
        )
        start = np.zeros(members.free.shape)
        place = yield from self._ascend(members, _term_entries(self._method.deltas), start)
        graph = self._members[0][1]
        terms = np.maximum(*(term_bounds(graph, members, z) for z in (start, place.z))) - graph.log_constant
        for (p, candidate), mine in zip(best.items(), np.split(terms, len(best)), strict=True):
            zero = point_mass_bound(candidate.model, candidate.tables)
            total = float(np.logaddexp.reduce([zero, *(mine + candidate.model.log_constant)])) - candidate.slack
            self.reports[p].offer("sequential", total)
            self.reports[p].bound = max(self.reports[p].bound, total)

    def _mean_field(self) -> Steps:
        method, edges = self._method, self._structure.num_edges
        rng = np.random.default_rng(method.seed)
        fields, change = self._fields(rng.uniform(0.1, 0.9, (edges, method.field_starts)))
        for (p, model), q in zip(self._members, fields, strict=True):
            point = Point(model, np.zeros(2 * edges), q[:, 0])
            take_point(point, self.reports[p], "mf", change, field_end(change))
        starts = self._starts()
        early, _ = yield from self._gauges(_entries(method.deltas), "g_bp")
        yield from self._joint(early, [np.full(edges, 0.1)] * len(fields), field_gauge.FROM_GAUGE)
        for k in range(method.restarts_for(edges)):
            spread = 0.01 if k == 0 else 0.05
            near = [q[:, k % q.shape[1]] + spread * rng.standard_normal(edges) for q in fields]
            yield from self._joint(starts, near, field_gauge.FROM_FIELD)

    def _fields(self, start: FloatArray) -> tuple[list[FloatArray], float]:
        """Mean field of all members, on the host: (E, starts) each, best first, and the last change of any."""
        tables = mean_field.field_tables(side_by_side([model for _, model in self._members]))
        *_, (found, change) = mean_field.ascend(tables, np.tile(start, (len(self._members), 1)))
        fields = []
        for (_, model), q in zip(self._members, np.split(found, len(self._members)), strict=True):
            values = mean_field.value(mean_field.field_tables(model), q)
            fields.append(q[:, np.argsort(-values, kind="stable")])
        return fields, change

    def _joint(self, theta: FloatArray, q: Sequence[FloatArray], schedule: Sequence[tuple[float, float]]) -> Steps:
        angles = theta.shape[1]
        logits = logit(np.clip(np.stack(q), field_gauge.NEAREST, 1.0 - field_gauge.NEAREST))
        entries = [
            Entry(
                weight,
                floor,
                field_gauge.tolerance(floor),
                field_gauge.limit(k, schedule),
                field_gauge.patience(k, schedule),
            )
            for k, (weight, floor) in enumerate(schedule)
        ]
        members = members_of([model for _, model in self._members])
        place = yield from self._ascend(members, entries, np.concatenate([theta, logits], axis=1))
        for row, (p, model) in enumerate(self._members):
            gauge, free = place.z[row, :angles], place.z[row, angles:]
            point = Point(model, gauge, field_gauge.rounded(model, gauge, expit(free)))
            take_point(point, self.reports[p], "g_mf", float(place.residual[row]), ENDS[place.end[row]])


class JaxGaugeKernel(Kernel):
    """As `GaugeKernel`, on JAX; always in float64."""

    def __init__(self, method: Any, backend: Backend, model: Model, tables: GaugePlan) -> None:
        self._method = method
        self._plan = tables
        self._device = backend.device

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> BatchSearch:
        return BatchSearch(self._method, [self._plan], self._device)

    def advance(self, state: BatchSearch, steps: int) -> tuple[BatchSearch, dict[str, npt.NDArray[Any]]]:
        state.advance(steps)
        return state, statistics_of(state.reports[0], self._method.names)


def solve(models: Sequence[Model | ForneyModel], method: Gauged, device: str = "cpu") -> list[Estimate]:
    """The answers of `method` for many models, each as `spinbench.run` gives it on backend jax.

    Args:
        models: any; those whose contracted graphs are alike are solved side by side.
        method: with its settings, all but labels="greedy".
        device: "cpu" or "gpu".

    Raises:
        UnsupportedError, ModelError: as `Gauged.plan`, of the first model that raises.
    """
    plans = [method.plan(model) for model in models]  # type: ignore[arg-type]
    alike: dict[Any, list[int]] = {}
    for k, plan in enumerate(plans):
        alike.setdefault(structure_of(plan.models[0]), []).append(k)
    answers: dict[int, Estimate] = {}
    for rows in alike.values():
        search = BatchSearch(method, [plans[k] for k in rows], device)
        while not search.reports[0].finished:
            search.advance(2**30)
        for k, report in zip(rows, search.reports, strict=True):
            trace = Trace(REDUCTIONS)
            trace.add(statistics_of(report, method.names), 1)
            answers[k] = method.estimate(models[k], plans[k], trace)  # type: ignore[arg-type]
    return [answers[k] for k in range(len(plans))]


def _entries(deltas: Sequence[float]) -> list[Entry]:
    limit, patience = point_mass.LIMIT, point_mass.PATIENCE
    return [
        Entry(point_mass.CONDITIONING * delta, delta, tolerance, limit, patience)
        for delta, tolerance in zip(deltas, point_mass.tolerances(deltas), strict=True)
    ]


def _term_entries(deltas: Sequence[float]) -> list[Entry]:
    """Of a term: nothing starts from its earlier maximisations, and every second one leads on as well."""
    deltas = [*deltas[:-1:2], deltas[-1]]
    tolerances = [*deltas[:-1], 0.1 * deltas[-1]]
    return [
        Entry(point_mass.CONDITIONING * delta, delta, max(tolerance, 1e-9), TERM_LIMIT, TERM_PATIENCE)
        for delta, tolerance in zip(deltas, tolerances, strict=True)
    ]


def side_by_side(models: Sequence[ForneyModel]) -> ForneyModel:
    """One model of several, their edges and nodes one after the other."""
    edges: list[npt.NDArray[np.int64]] = []
    tables: list[FloatArray] = []
    incident: list[list[int]] = []
    nodes, first = 0, 0
    for model in models:
        edges.append(model.edges + nodes)
        tables += model.log_tables
        incident += [[e + first for e in slots] for slots in model.incident]
        nodes, first = nodes + model.num_nodes, first + model.num_edges
    constant = sum(model.log_constant for model in models)
    return ForneyModel.from_log_tables(np.concatenate(edges), tables, incident=incident, log_constant=constant)
