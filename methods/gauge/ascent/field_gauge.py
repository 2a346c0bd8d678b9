"""G-MF on one Forney model: joint Newton ascent in angles and logits, from several starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent.derivatives import FloatArray
from spinbench.methods.gauge.ascent.newton import ON_HOST, Ascents, End, Maximisation
from spinbench.methods.gauge.ascent.objectives import Formulas

# Smallest weight of every log f, divided by 2^d: entries on which q has no weight would otherwise shrink to 1e-17 and
# change their sign by rounding.
FLOOR = 1e-6
# (weight of Σ log cos(φ - ψ), floor) of each maximisation. Both decrease, since the optimum lies at the boundary, but
# not to 0, where gauges become singular.
SCHEDULE = ((1e-3, 1e-2), (1e-4, 1e-3), (1e-5, 1e-4), (1e-7, FLOOR))
# Newton steps of a maximisation and of the last one; steps after which slow progress ends the last one. The earlier
# maximisations only provide starting points and need not converge.
LIMIT, LAST_LIMIT, PATIENCE = 25, 500, 10
# Logits beyond this are also evaluated at infinity after the last maximisation.
SNAP = 10.0
# Starting values of q keep this distance from 0 and 1, where derivatives in the logits vanish.
NEAREST = 0.02


class Joint(NamedTuple):
    """Where an ascent stands after a Newton step.

    Attributes:
        theta: (2E,) angles.
        q: (E,) q_e(1).
        residual: of the current maximisation.
        end: why this maximisation has ended, "" while it has not.
    """

    theta: FloatArray
    q: FloatArray
    residual: float
    end: End


def maximisations(schedule: Sequence[tuple[float, float]] = SCHEDULE) -> list[Maximisation]:
    """All but the last one only lead on."""
    *first, (conditioning, floor) = schedule
    return [
        *(Maximisation(weight, above, max(1e-7, 0.1 * above), LIMIT, LIMIT + 1) for weight, above in first),
        Maximisation(conditioning, floor, max(1e-7, 1e-3 * floor), LAST_LIMIT, PATIENCE),
    ]


def ascent(
    model: ForneyModel,
    theta: FloatArray,
    q: FloatArray,
    schedule: Sequence[tuple[float, float]] = SCHEDULE,
    formulas: Formulas = ON_HOST,
) -> Iterator[Joint]:
    """One `Joint` a Newton step, from angles that keep all tables positive; nothing where they do not."""
    from scipy.special import expit, logit

    edges = model.num_edges
    z = np.concatenate([theta, logit(np.clip(q, NEAREST, 1.0 - NEAREST))])
    ascents = Ascents(model, joint=True, formulas=formulas)
    for rules in maximisations(schedule):
        newton = ascents.newton(z, rules)
        if newton.end:
            return
        while not newton.end:
            newton.step()
            z = newton.z
            yield Joint(z[: 2 * edges], expit(z[2 * edges :]), newton.residual, newton.end)


def snap(q: FloatArray) -> FloatArray:
    """q with nearly certain edges made certain, which may give the better bound."""
    near = 1.0 / (1.0 + np.exp(SNAP))
    return np.where(q < near, 0.0, np.where(q > 1.0 - near, 1.0, q))
