"""G-BP on one Forney model: barrier continuation from the identity gauge."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.api import ForneyModel
from spinbench.mathematics import forney as gauges
from spinbench.methods.gauge.ascent.derivatives import FloatArray
from spinbench.methods.gauge.ascent.newton import ON_HOST, Ascents, End, Maximisation
from spinbench.methods.gauge.ascent.objectives import Formulas

# Weight of Σ log cos(φ - ψ), times δ: without the term, lines and cycles converge to singular gauges.
CONDITIONING = 0.1
# Newton steps for one δ.
LIMIT = 120
# A maximisation ends when no component of the gradient exceeds TOLERANCE times δ, or the absolute minimum; more
# precision is wasted, since the next δ has another maximum.
TOLERANCE, LEAST_TOLERANCE = 1e-2, 1e-9
# G-MF starts from the result of this many maximisations.
EARLY = 2
# Initial share of constant tables in the search for an interior point: with them the identity gauge is interior, and
# the share decreases to 0.
MIX = 1.0
SEARCH_STAGES, SEARCH_LIMIT = 30, 25
# Settings of the Newton iteration to the analytic centre.
CENTRE = Maximisation(CONDITIONING, 1.0, 1e-6, SEARCH_LIMIT, SEARCH_LIMIT + 1)


class Stage(NamedTuple):
    """Where a continuation stands after a Newton step.

    Attributes:
        theta: (2E,) angles; they keep all gauged tables positive.
        residual: of the current maximisation.
        delta: of the current maximisation, infinite while an interior point is looked for.
        end: why this maximisation has ended, "" while it has not.
    """

    theta: FloatArray
    residual: float
    delta: float
    end: End


def maximisations(deltas: Sequence[float], limit: int = LIMIT) -> list[Maximisation]:
    """One for each δ."""
    return [
        Maximisation(CONDITIONING * delta, delta, max(TOLERANCE * delta, LEAST_TOLERANCE), limit, limit + 1)
        for delta in deltas
    ]


def continuation(
    model: ForneyModel,
    deltas: Sequence[float],
    start: FloatArray | None = None,
    limit: int = LIMIT,
    formulas: Formulas = ON_HOST,
) -> Iterator[Stage]:
    """One `Stage` a Newton step, δ by δ; nothing at all where no interior point is found.

    Args:
        model: labels as they should be; x = 0 is the state that remains.
        deltas: decreasing barrier weights.
        start: (2E,) angles that keep all tables positive; by default the identity, or what a search finds where tables
            have zeros.
        limit: Newton steps of one δ.
        formulas: of the objective.
    """
    theta = np.zeros(2 * model.num_edges) if start is None else start
    ascents = Ascents(model, joint=False, formulas=formulas)
    if ascents.newton(theta, CENTRE).end:
        inside = yield from _interior_point(model, theta, ascents)
        if inside is None:
            return
        theta = inside
    for rules in maximisations(deltas, limit):
        newton = ascents.newton(theta, rules)
        while not newton.end:
            newton.step()
            yield Stage(newton.z, newton.residual, rules.weight, newton.end)
        theta = newton.z


def _interior_point(
    model: ForneyModel, theta: FloatArray, ascents: Ascents
) -> Generator[Stage, None, FloatArray | None]:
    """Angles that keep all tables positive, from some that do not; returns None where none are found.

    Tables f + s have them for large s. Between moves to the analytic centre, s falls as far as the tables stay
    positive; gauged tables are linear in s.
    """
    plain = [group.tables for group in model.groups]
    flat = [np.ones_like(table) for table in plain]
    share = MIX
    for _ in range(SEARCH_STAGES):
        mixed = [f + share * g for f, g in zip(plain, flat, strict=True)]
        newton = ascents.newton(theta, CENTRE, zero_weight=0.0, tables=mixed)
        while not newton.end:
            newton.step()
            yield Stage(theta, newton.residual, np.inf, "")
        theta = newton.z
        need = 0.0
        for group in model.groups:
            angles, other = theta[group.own], theta[group.other]
            gauged = gauges.transform(group.tables, angles, other)
            added = gauges.transform(np.ones_like(group.tables), angles, other)
            if not ((gauged > 0) | (added > 0)).all():
                return None
            ratio = np.divide(-gauged, added, out=np.zeros_like(gauged), where=added > 0)
            need = max(need, float(ratio.max()))
            if (gauged == 0).any():
                need = max(need, 1e-300)
        if need <= 0:
            return theta
        fresh = need + 0.1 * (share - need)
        if not fresh < 0.999 * share:
            return None
        share = fresh
    return None
