"""What the gauged methods do with their Newton steps: labels, continuations, corrections, restarts.

A search is a generator that gives way after every Newton step and brings a `Report` up to date at the end of each
maximisation; what it has found so far is a verified bound at any time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent import field_gauge, mean_field, point_mass
from spinbench.methods.gauge.ascent.newton import ON_HOST, End
from spinbench.methods.gauge.ascent.objectives import Formulas
from spinbench.methods.gauge.looks import Candidate, Ended, look_at_gauge, look_at_point
from spinbench.methods.gauge.progress import Report

FloatArray = npt.NDArray[np.float64]

# Mean-field sweeps between evaluations of the bound, which compute all gauged tables.
SWEEPS = 16
Headline = Literal["g_bp", "single", "multiple", "sequential"]


def search_point_mass(
    models: Sequence[ForneyModel],
    report: Report,
    headline: Headline,
    deltas: Sequence[float],
    *,
    greedy: bool = False,
    seed: int = 0,
    formulas: Formulas = ON_HOST,
) -> Generator[None, None, Candidate | None]:
    """G-BP with its corrections for each relabelled model; returns the best `Candidate` by the headline, or None.

    Args:
        models: relabellings of one model.
        report: kept up to date.
        headline: the bound that is wanted; for "sequential" candidates are compared by "multiple".
        deltas: of the barrier.
        greedy: whether to go over the edges in the end, and relabel each where that raises the bound.
        seed: of the order of the edges.
        formulas: of the objectives.
    """
    judge = "multiple" if headline == "sequential" else headline
    best: Candidate | None = None
    for model in models:
        candidate = yield from _one_model(model, report, judge, deltas, formulas)
        if candidate is not None and (best is None or candidate.value > best.value):
            best = candidate
    if best is None or not greedy:
        return best
    for edge in np.random.default_rng(seed).permutation(best.model.num_edges):
        flips = np.zeros(best.model.num_edges, dtype=np.int64)
        flips[edge] = 1
        candidate = yield from _one_model(best.model.relabel(flips), report, judge, deltas, formulas)
        # A margin above rounding: otherwise labels without any gain would be accepted by chance.
        if candidate is not None and candidate.value > best.value + 1e-9:
            best = candidate
    return best


def _one_model(
    model: ForneyModel, report: Report, judge: str, deltas: Sequence[float], formulas: Formulas
) -> Generator[None, None, Candidate | None]:
    """Returns the best candidate of one labelling by the bound `judge`."""
    best: Candidate | None = None
    for stage in point_mass.continuation(model, deltas, formulas=formulas):
        if stage.end and np.isfinite(stage.delta):
            ended = Ended(stage.residual, stage.end)
            candidate = look_at_gauge(model, stage.theta, ended, stage.delta, report, judge)
            if candidate is not None and (best is None or candidate.value > best.value):
                best = candidate
        yield
    return best


def search_mean_field(
    models: Sequence[ForneyModel],
    report: Report,
    deltas: Sequence[float],
    *,
    restarts: int,
    field_starts: int,
    seed: int = 0,
    formulas: Formulas = ON_HOST,
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
        formulas: of the objectives.
    """
    rng = np.random.default_rng(seed)
    for model in models:
        q = yield from _field(model, report, rng.uniform(0.1, 0.9, (model.num_edges, field_starts)))
        early = None
        for stage in point_mass.continuation(model, deltas, formulas=formulas):
            if np.isfinite(stage.delta) and stage.end:
                # G-MF starts from the gauge of an early stage: at the boundary, where the last stage ends, q cannot
                # move any more.
                if stage.delta == deltas[min(point_mass.EARLY, len(deltas)) - 1]:
                    early = stage.theta
                ended = Ended(stage.residual, stage.end)
                look_at_point(model, stage.theta, np.zeros(model.num_edges), ended, report, "g_bp")
            yield
        if early is None:
            continue
        # q = 0.1 is close to G-BP's point mass q = 0, but interior.
        yield from _joint(model, early, np.full(model.num_edges, 0.1), report, formulas)
        inside = early if model.has_zeros else np.zeros(2 * model.num_edges)
        for k in range(restarts):
            # Uniform q is a saddle point on symmetric models; a perturbation leaves it.
            spread = 0.01 if k == 0 else 0.05
            start = q[:, k % q.shape[1]] + spread * rng.standard_normal(model.num_edges)
            yield from _joint(model, inside, start, report, formulas)


def _field(model: ForneyModel, report: Report, start: FloatArray) -> Generator[None, None, FloatArray]:
    """Mean field from q (E, starts); returns where it ends, best first."""
    tables, q = mean_field.field_tables(model), start
    identity = np.zeros(2 * model.num_edges)
    for sweep, (q, change) in enumerate(mean_field.ascend(tables, start)):
        end: End = "gradient" if change < mean_field.TOLERANCE else "limit"
        if sweep % SWEEPS == 0 or end == "gradient":
            best = q[:, int(mean_field.value(tables, q).argmax())]
            look_at_point(model, identity, best, Ended(change, end), report, "mf")
        yield
    return q[:, np.argsort(-mean_field.value(tables, q), kind="stable")]


def _joint(
    model: ForneyModel, theta: FloatArray, q: FloatArray, report: Report, formulas: Formulas
) -> Generator[None, None, None]:
    for joint in field_gauge.ascent(model, theta, q, formulas=formulas):
        if joint.end:
            look_at_point(model, joint.theta, joint.q, Ended(joint.residual, joint.end), report, "g_mf")
        yield
