"""Gauged bounds of many models at once in JAX, and the JAX kernel, which is a batch of one model.

Models of one graph (the same edges after contraction) go through the same compiled steps, side by side with their
labellings and, for G-BP-sequential, conditioned models. Mean field and searches for interior points run on the host.
Bounds are taken, and verified, on the host at the ends of maximisations.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from spinbench.api import Backend, Estimate, Kernel
from spinbench.api.trace import Trace
from spinbench.backends.jax.gauge.ascent import ascent
from spinbench.backends.jax.gauge.members import (
    Members,
    Place,
    members_of,
    schedule_of,
    structure_of,
)
from spinbench.backends.jax.gauge.terms import pinned_members, term_bounds
from spinbench.errors import UnsupportedError
from spinbench.methods.gauge.ascent import field_gauge, mean_field, point_mass
from spinbench.methods.gauge.ascent.newton import ENDS, Maximisation
from spinbench.methods.gauge.ascent.point_mass import EARLY
from spinbench.methods.gauge.kernel import REDUCTIONS, GaugePlan, statistics_of
from spinbench.methods.gauge.looks import Candidate, Ended, look_at_gauges, look_at_points
from spinbench.methods.gauge.method import Gauged, PointMass
from spinbench.methods.gauge.progress import trivial
from spinbench.methods.gauge.remainder import remainder
from spinbench.methods.gauge.search import field_end
from spinbench.models import Model
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]
Steps = Generator[None, None, Any]


def _refusal(method: Any) -> str:
    """Why the method's settings cannot be run here; empty: they can."""
    if method.labels != "greedy":
        return ""
    return (
        f"{method.name}: labels=greedy tries edges one after the other and runs on backend numpy only; mode, zero and "
        "best run on jax"
    )


class BatchSearch:
    """The searches of `spinbench.methods.gauge.search` for several plans of one graph.

    Attributes:
        reports: one a plan, brought up to date by `advance`.
    """

    def __init__(self, method: Any, plans: Sequence[GaugePlan], device: str = "cpu") -> None:
        if why := _refusal(method):
            raise UnsupportedError(why)
        self.reports = [method.report(plan) for plan in plans]
        self._method = method
        self._device = device
        self._plans = [p for p, plan in enumerate(plans) for _ in plan.models]  # of each member
        self._models = [model for plan in plans for model in plan.models]
        self._own_reports = [self.reports[p] for p in self._plans]
        self._structure = structure_of(self._models[0])
        self._steps_left = 0
        self._steps = self._search()

    def advance(self, steps: int) -> None:
        """So many Newton steps of every member, or up to the end."""
        self._steps_left = steps
        if not self.reports[0].finished:
            finished = next(self._steps, self) is self
            for report in self.reports:
                report.finished, report.steps = finished, report.steps + steps - self._steps_left

    def _search(self) -> Steps:
        """Gives way where the steps are used up."""
        if not self._structure.num_edges:
            for model, report in zip(self._models, self._own_reports, strict=True):
                trivial(model, report)
        elif isinstance(self._method, PointMass):
            yield from self._point_mass()
        else:
            yield from self._mean_field()

    def compile(self) -> None:
        """The ascents whose shapes are known before the search, by no pass of each."""
        edges = self._structure.num_edges
        ahead = [(self._models, 2 * edges)] if edges else []
        if edges and not isinstance(self._method, PointMass):
            ahead.append((self._models * (1 + self._method.restarts_for(edges)), 3 * edges))
        for models, size in ahead:
            compiled, members = ascent(self._structure, size > 2 * edges, self._device), members_of(models)
            place = compiled.start(np.zeros((len(models), size)), members)
            compiled.advance(members, schedule_of(field_gauge.maximisations()), place, 0)

    def _counted(self, sweeps: Generator[None, None, Any]) -> Steps:
        """Returns what work on the host ends with, whose parts count as steps."""
        while True:
            if not self._steps_left:
                yield
                continue
            try:
                next(sweeps)
            except StopIteration as end:
                return end.value
            self._steps_left -= 1

    def _ascend(self, members: Members, maximisations: Sequence[Maximisation], z: FloatArray) -> Steps:
        """Returns where the ascents end."""
        compiled = ascent(self._structure, z.shape[1] > 2 * self._structure.num_edges, self._device)
        schedule, place = schedule_of(maximisations), compiled.start(z, members)
        while (place.stage < schedule.count).any():
            if not self._steps_left:
                yield
                continue
            taken, place = compiled.advance(members, schedule, place, self._steps_left)
            self._steps_left -= taken
        return place

    def _gauges(self, judge: str) -> Steps:
        """G-BP of all members: the angles after the first maximisations, and the best candidate of each plan."""
        each = point_mass.maximisations(self._method.deltas)
        members, first, rest = members_of(self._models), each[:EARLY], each[EARLY:]
        place = yield from self._ascend(members, first, self._starts())
        early, best = place.z.T, self._look(place, first[-1].weight, judge)
        if rest:
            place = yield from self._ascend(members, rest, early)
            last = self._look(place, rest[-1].weight, judge)
            best |= {p: found for p, found in last.items() if p not in best or found.value > best[p].value}
        return early, best

    def _look(self, place: Place, delta: float, judge: str) -> dict[int, Candidate]:
        """Take in the bounds of all members; the best candidates."""
        candidates = look_at_gauges(self._models, place.z.T, _ended(place), delta, self._own_reports, judge)
        best: dict[int, Candidate] = {}
        for p, found in zip(self._plans, candidates, strict=True):
            if found is not None and (p not in best or found.value > best[p].value):
                best[p] = found
        return best

    def _starts(self) -> FloatArray:
        """Angles that keep tables positive; the identity where none are found, where ascents end at once."""
        found = [point_mass.interior(model) for model in self._models]
        zero = np.zeros(2 * self._structure.num_edges)
        return np.stack([zero if theta is None else theta for theta in found])

    def _point_mass(self) -> Steps:
        headline = self._method.headline
        judge = "multiple" if headline == "sequential" else headline
        _, best = yield from self._gauges(judge)
        if headline == "sequential" and best:
            yield from self._sequential(best)

    def _sequential(self, best: dict[int, Candidate]) -> Steps:
        """All terms of all plans at once."""
        graph, candidates = self._models[0], list(best.values())
        stacked = [np.stack(tables) for tables in zip(*(found.tables for found in candidates), strict=True)]
        first, log_sums = remainder(graph, stacked)
        log_sums = log_sums[:, None]
        if first:
            log_sums = np.concatenate([log_sums, (yield from self._terms(candidates, first))], axis=1)
        for p, candidate, found in zip(best, candidates, np.logaddexp.reduce(log_sums, axis=1).tolist(), strict=True):
            self.reports[p].offer_answer("sequential", candidate.model.log_constant + found)

    def _terms(self, candidates: Sequence[Candidate], count: int) -> Steps:
        """(M, count) logarithms of lower bounds on the first terms of each."""
        parts = [pinned_members(candidate.model, candidate.tables, count) for candidate in candidates]
        members = Members(
            tuple(np.concatenate(rows) for rows in zip(*(part.tables for part in parts), strict=True)),
            tuple(np.concatenate(rows) for rows in zip(*(part.shares for part in parts), strict=True)),
            np.concatenate([part.free for part in parts]),
        )
        start = np.zeros(members.free.shape)
        place = yield from self._ascend(members, point_mass.maximisations(self._method.deltas), start)
        terms = np.maximum(*(term_bounds(self._models[0], members, z) for z in (start, place.z.T)))
        return terms.reshape(len(candidates), count)

    def _mean_field(self) -> Steps:
        """All starts of all members at once, after mean field and G-BP of all of them."""
        method, edges = self._method, self._structure.num_edges
        generators = [np.random.default_rng(method.seed) for _ in self.reports]  # as in runs of their own
        first, *_ = [rng.uniform(0.1, 0.9, (edges, method.field_starts)) for rng in generators]
        fields, change = yield from self._counted(mean_field.ascend_each(self._models, first))
        starts, count = self._starts(), len(self._models)
        at_fields = Ended(change, [field_end(last) for last in change.tolist()])
        look_at_points(self._models, 0.0 * starts, fields[:, :, 0], at_fields, self._own_reports, "mf")
        early, _ = yield from self._gauges("g_bp")
        thetas, q = [early], [np.full((count, edges), 0.1)]
        for k in range(method.restarts_for(edges)):
            spread = 0.01 if k == 0 else 0.05
            noise = spread * np.stack([generators[p].standard_normal(edges) for p in self._plans])
            thetas.append(starts)
            q.append(fields[:, :, k % fields.shape[2]] + noise)
        models, reports = self._models * len(q), self._own_reports * len(q)
        free = logit(np.clip(np.concatenate(q), field_gauge.NEAREST, 1.0 - field_gauge.NEAREST))
        z = np.concatenate([np.concatenate(thetas), free], axis=1)
        place = yield from self._ascend(members_of(models), field_gauge.maximisations(), z)
        theta, logits = np.split(place.z.T, [2 * edges], axis=1)
        look_at_points(models, theta, expit(logits), _ended(place), reports, "g_mf")


class JaxGaugeKernel(Kernel):
    """As `GaugeKernel`, on JAX; always in float64."""

    @classmethod
    def refuses(cls, method: Any, backend: Backend, model: Model) -> str:
        return _refusal(method)

    def __init__(self, method: Any, backend: Backend, model: Model, tables: GaugePlan) -> None:
        self._method = method
        self._plan = tables
        self._device = backend.device

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> BatchSearch:
        return BatchSearch(self._method, [self._plan], self._device)

    def warm(self, state: BatchSearch, steps: int) -> BatchSearch:
        """There is no burn-in: this is where the driver has everything compiled, before it starts its clock."""
        state.compile()
        return state

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


def _ended(place: Place) -> Ended:
    return Ended(place.residual, [ENDS[end] for end in place.end.tolist()])
