"""Newton's method with a line search for the barrier objectives of `spinbench.methods.gauge.ascent.objectives`."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge.ascent.objectives import Objective, Point, Tables

FloatArray = npt.NDArray[np.float64]
End = Literal["", "gradient", "flat", "slow", "stalled", "limit"]
"""Why an ascent has ended; "" while it has not.

"gradient", "flat" and "slow" are convergence: the gradient fell to the tolerance, or steps have ceased to raise the
value. "stalled": no step raises it though the gradient says so, or a derivative is not finite; "limit": all steps are
used up.
"""
ENDS: tuple[End, ...] = get_args(End)
CONVERGED = frozenset[End]({"gradient", "flat", "slow"})

SUFFICIENT = 1e-4
"""Share of the slope that a step must gain (Armijo)."""
KEPT = 0.01
"""No table entry may fall below this share of itself in one step (fraction to the boundary)."""
SHORTER = (0.1, 0.8)
"""A step that takes an entry below that goes on from this share, the second number, of where the entry meets its limit
if it falls in a line, but from no less than the first number of the step; any other step that gains too little is
halved."""
TRIALS = 24
"""Lengths of a step at most."""
FLAT, FLAT_STEPS = 1e-13, 3
"""So many steps that each gain less than this, relative to the value, end an ascent."""
SLOW, SLOW_STEPS = 1e-5, 10
"""And so many that together gain less than this, once an ascent has had its patience: at the walls of the feasible set
gradients need not vanish, so that progress alone tells."""


class Maximisation(NamedTuple):
    """One of a continuation.

    Attributes:
        conditioning: weight of Σ log cos(φ - ψ).
        weight: δ of G-BP, the floor ε of G-MF.
        tolerance: largest component of the gradient at which it ends.
        limit: Newton steps.
        patience: steps after which slow progress ends it, see `SLOW`.
    """

    conditioning: float
    weight: float
    tolerance: float
    limit: int
    patience: int


class Newton:
    """Ascent of one objective from a point inside its domain.

    The Hessian is shifted by λ times the size of its diagonal until minus it is positive definite; λ is kept from step
    to step.

    Attributes:
        z: where it stands.
        point: the objective there.
        residual: largest component of the gradient before the last step, over the coordinates that may move.
        end: why it has ended.
        steps: taken so far.
    """

    def __init__(
        self, objective: Objective, z: FloatArray, *, tolerance: float, limit: int, patience: int | None = None
    ) -> None:
        """`patience`: steps after which slow progress ends the ascent; by default it never does."""
        self.objective = objective
        self.z = z
        self.point = objective.evaluate(z)
        self.residual = np.inf
        self.end: End = "" if np.isfinite(self.point.value) else "stalled"
        self.steps = 0
        self._tolerance = tolerance
        self._limit = limit
        self._shift = 1e-3
        self._flat = 0
        self._patience = limit + 1 if patience is None else patience
        self._mark = self.point.value

    def step(self) -> None:
        """One Newton step, or the end."""
        if self._slow():
            self.end = "slow"
            return
        gradient, entries = self.objective.derivatives(self.z, self.point.tables)
        free = self.objective.free(self.z, gradient)
        slope = np.where(free, gradient, 0.0)
        if not (np.isfinite(slope).all() and np.isfinite(entries).all()):
            self.end = "stalled"
            return
        self.residual = float(np.abs(slope).max(initial=0.0))
        if self.residual < self._tolerance:
            self.end = "gradient"
            return
        if self.steps >= self._limit:
            self.end = "limit"
            return
        self.steps += 1
        move, self._shift = self.objective.pattern.ascent(entries, slope, free, self._shift)
        move = move / max(1.0, float(np.max(np.abs(move) / self.objective.steps)))
        length, found = self._search(move, float(slope @ move))
        if found is None:
            self._shift *= 100.0
            if self._shift > 1e8:
                self.end = "stalled"
            return
        gain = found.value - self.point.value
        self.z, self.point = self.z + length * move, found
        if length == 1.0:
            self._shift = max(0.2 * self._shift, 1e-12)
        elif length < 0.2:
            self._shift = min(4.0 * self._shift, 1e6)
        self._flat = self._flat + 1 if gain < FLAT * (1.0 + abs(found.value)) else 0
        if self._flat >= FLAT_STEPS:
            self.end = "flat"

    def _slow(self) -> bool:
        """At every `SLOW_STEPS`-th step: whether those since the last time gained next to nothing."""
        if self.steps % SLOW_STEPS:
            return False
        gain, self._mark = self.point.value - self._mark, self.point.value
        return self.steps >= self._patience and gain < SLOW * (1.0 + abs(self.point.value))

    def _search(self, move: FloatArray, slope: float) -> tuple[float, Point | None]:
        floors = [KEPT * table for table in self.point.tables]
        length = 1.0
        for _ in range(TRIALS):
            found = self.objective.evaluate(self.z + length * move, floors)
            if found.value >= self.point.value + SUFFICIENT * length * slope:
                return length, found
            length *= _share(self.point.tables, found.tables, floors)
        return length, None


def _share(start: Tables, found: Tables, floors: Tables) -> float:
    """Of a step from `start` that led to `found` in vain: how much of it comes next."""
    tables = zip(start, found, floors, strict=False)  # nothing is found where the gauge is singular
    meets = [
        float(((at[below] - floor[below]) / (at[below] - table[below])).min())
        for at, table, floor in tables
        if (below := table <= floor).any()
    ]
    least, of_it = SHORTER
    return max(least, of_it * min(meets)) if meets else 0.5
