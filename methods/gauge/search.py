"""What the gauged methods do with their Newton steps: labels, continuations, corrections, restarts.

A search is a generator that gives way after every Newton step and brings a `Report` up to date at the end of each
maximisation; what it has found so far is a verified bound at any time.

G-BP-sequential bounds every term of Z = Π f_{a,G}(0) + Σ_i Z_i, equation (9), by G-BP of its own. Z_i sums the states
in which e_i is the first edge that is 1: edges before it are pinned to 0, e_i to 1, and the sum over the rest is the
partition function of a smaller model, whose labels are right already. The last of them contract to nothing, and so are
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Literal

import numpy as np

from spinbench.api import ForneyModel
from spinbench.errors import ModelError
from spinbench.methods.gauge.ascent import field_gauge, mean_field, point_mass
from spinbench.methods.gauge.ascent.derivatives import FloatArray
from spinbench.methods.gauge.ascent.newton import ON_HOST, End
from spinbench.methods.gauge.ascent.objectives import Formulas
from spinbench.methods.gauge.bounds import partial_sums
from spinbench.methods.gauge.progress import Candidate, Ended, Report, first_report, look_at_gauge, look_at_point
from spinbench.models.forney import build

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


def search_sequential(
    candidate: Candidate,
    report: Report,
    deltas: Sequence[float],
    simplify: Callable[[ForneyModel], ForneyModel],
) -> Generator[None, None, None]:
    """Raise `report.bound` by the terms of the sum, edge by edge; before the last edge it is a bound as well.

    A term is at least what G-BP-multiple finds for it, so the result is at least that of G-BP-multiple. Each term has a
    graph of its own, for which compiling would take longer than the ascent: NumPy's formulas serve every backend.

    Args:
        candidate: the gauge that defines the terms.
        report: kept up to date.
        deltas: of the barrier.
        simplify: an exact contraction of the conditioned models.
    """
    gauged = model_in_gauge(candidate)
    edges = gauged.num_edges
    total = float(gauged.log_weight(np.zeros(edges, dtype=np.int64)))
    report.offer_answer("sequential", total)
    for edge in range(edges):
        term = condition_first_one(gauged, edge)
        if term is not None:
            value = yield from _term(term, report, deltas, simplify)
            total = float(np.logaddexp(total, value))
            report.offer_answer("sequential", total)
        yield


def _term(
    term: ForneyModel,
    report: Report,
    deltas: Sequence[float],
    simplify: Callable[[ForneyModel], ForneyModel],
) -> Generator[None, None, float]:
    # The gauge that defines the terms is also a candidate for each term: with its single and pair corrections a term is
    # never below its part of the G-BP-multiple bound.
    at_identity = partial_sums(term, [group.tables for group in term.groups]).multiple
    small = simplify(term)
    if not small.num_edges:
        return max(at_identity, small.log_constant)
    term_report = first_report([small], ("g_bp", "single", "multiple"))
    yield from search_point_mass([small], term_report, "multiple", deltas)
    report.unverified += term_report.unverified
    return max(at_identity, term_report.bound)


def model_in_gauge(candidate: Candidate) -> ForneyModel:
    """The model of the gauged tables."""
    with np.errstate(divide="ignore"):
        logs = [np.log(table) for table in candidate.tables]
    return build.replace_log_tables(candidate.model, logs, candidate.model.log_constant)


def condition_first_one(model: ForneyModel, edge: int) -> ForneyModel | None:
    """The model of the edges after `edge`, those before it at 0 and itself at 1; None where its Z is 0."""
    later = np.arange(edge + 1, model.num_edges)
    tables, incident = [], []
    for slots, table in zip(model.incident, model.log_tables, strict=True):
        index = tuple(slice(None) if e > edge else int(e == edge) for e in slots)
        tables.append(table[index])
        incident.append([e - edge - 1 for e in slots if e > edge])
    if any(table.max() == -np.inf for table in tables):
        return None
    try:
        return build.from_log_tables(
            model.edges[later], tables, incident=incident, log_constant=model.log_constant, name=model.name
        )
    # The zeros of the tables exclude every state.
    except ModelError:
        return None
