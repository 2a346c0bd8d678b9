"""G-BP-sequential: every term of Z = Π f_{a,G}(0) + Σ_i Z_i, equation (9), bounded by G-BP of its own.

Z_i sums the states in which e_i is the first edge that is 1: edges before it are pinned to 0, e_i to 1, and the sum
over the rest is the partition function of a smaller model, whose labels are right already. The last of them contract to
nothing, and so are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np

from spinbench.api import ForneyModel
from spinbench.errors import ModelError
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.methods.gauge.looks import Candidate
from spinbench.methods.gauge.progress import Report, first_report
from spinbench.methods.gauge.search import search_point_mass
from spinbench.models.forney import build


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
