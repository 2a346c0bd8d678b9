"""G-MF on one Forney model: joint Newton ascent in angles and logits, from several starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent.newton import ON_HOST, Ascents, End, Maximisation
from spinbench.methods.gauge.ascent.objectives import Formulas

FloatArray = npt.NDArray[np.float64]

# Last weight, divided by 2^d, of every log f: entries that q does not look at would shrink to 1e-17 and cross 0
# otherwise.
FLOOR = 1e-6
# (weight of Σ log cos(φ - ψ), floor) of each maximisation: both fall, since the optimum is at the boundary, and not to
# 0, since singular gauges are there.
SCHEDULE = ((1e-3, 1e-2), (1e-4, 1e-3), (1e-5, 1e-4), (1e-7, FLOOR))
# Newton steps of one maximisation, and of the last one, which ends after so many where progress is slow. The first ones
# only lead on to the next, and need not end.
LIMIT, LAST_LIMIT, PATIENCE = 25, 500, 10
# At the end, logits beyond it are also tried at infinity.
SNAP = 10.0
# Starting values of q keep this distance from 0 and 1, where the logits' derivatives vanish.
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
