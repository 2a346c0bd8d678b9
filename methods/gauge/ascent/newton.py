"""Newton's method with a line search for the barrier objectives of `spinbench.methods.gauge.ascent.objectives`.

Values and derivatives are those of an array library, see `Formulas`; all else is done on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel
from spinbench.methods.gauge.ascent.derivatives import FloatArray
from spinbench.methods.gauge.ascent.linear import BandSolver
from spinbench.methods.gauge.ascent.objectives import KEPT, Formulas, Weights, derivative_places, formulas_of

Tables = tuple[FloatArray, ...]
# Reason why an ascent ended; "" while it runs. Converged: "gradient" (gradient below the tolerance), "flat" and "slow"
# (steps hardly raise the value any more). Not converged: "stalled" (no step raises the value although the gradient is
# not small, or a derivative is not finite), "limit" (all steps are used up).
End = Literal["", "gradient", "flat", "slow", "stalled", "limit"]
ENDS: tuple[End, ...] = get_args(End)
CONVERGED = frozenset[End]({"gradient", "flat", "slow"})

# Armijo's rule: share of the predicted gain that a step must reach; the usual constant.
SUFFICIENT = 1e-4
# A step that brings a table entry below its limit is shortened to 0.8 of the point where the entry, if linear, would
# meet the limit, but at most by a factor of ten; a step with too little gain is halved.
SHORTER = (0.1, 0.8)
# Largest number of step lengths that are tried.
TRIALS = 24
# Largest change of a coordinate in one step: the objective is far from quadratic over half a turn of an angle or the
# whole range of a probability.
ANGLE_STEP, LOGIT_STEP = 0.7, 4.0
# Logits beyond this whose gradient points outwards are frozen: their q is 1e-7 from 0 or 1, and the Hessian is nearly
# singular in them.
FAR_LOGIT = 16.0
# Initial shift λ of the Hessian; each later step starts from the previous step's λ.
FIRST_SHIFT = 1e-3
# An ascent ends after this many successive steps with a relative gain below the first number.
FLAT, FLAT_STEPS = 1e-13, 3
# It also ends when this many steps together gain less than the first number, once the patience is used up: at the
# boundary of the feasible set gradients need not vanish, so that only the progress shows convergence.
SLOW, SLOW_STEPS = 1e-5, 10


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


# The formulas over NumPy arrays.
ON_HOST = formulas_of(np)


class Ascents:
    """Ascents on one graph; its arrays are laid out once for all of them.

    Attributes:
        size: number of coordinates, of which the first `num_angles` are angles.
        num_angles: 2E.
        step_limits: (size,) largest changes in one step.
        slots, tables: the graph, and its tables without a gauge, as `objectives` takes them.
        solver: of the systems of equations.
        formulas: of the objective.
    """

    def __init__(self, model: ForneyModel, joint: bool, formulas: Formulas = ON_HOST) -> None:
        """`joint`: of G-MF in angles and logits, else of G-BP in angles."""
        self.formulas = formulas
        self.slots = tuple(np.ascontiguousarray(group.own.T) for group in model.groups)
        self.tables = nodes_last([group.tables for group in model.groups])
        edges = np.arange(model.num_edges)
        owners = np.concatenate([np.repeat(edges, 2), edges] if joint else [np.repeat(edges, 2)])
        self.size = len(owners)
        self.num_angles = 2 * len(edges)
        self.step_limits = np.where(np.arange(self.size) < self.num_angles, ANGLE_STEP, LOGIT_STEP)
        places = derivative_places(self.slots, joint)
        self._slopes = places.slopes
        self.solver = BandSolver(places.rows, places.columns, owners)

    def newton(
        self, z: FloatArray, rules: Maximisation, *, zero_weight: float = 1.0, tables: Sequence[FloatArray] = ()
    ) -> Newton:
        """From coordinates z; "stalled" at once where they do not keep all tables positive.

        Args:
            z: angles (2E,), and logits (E,) in G-MF.
            rules: of this maximisation.
            zero_weight: see `objectives`.
            tables: (n, 2**d) a degree group; the model's by default.
        """
        ungauged = nodes_last(tables) if tables else self.tables
        return Newton(self, z, ungauged, rules, Weights(rules.conditioning, rules.weight, zero_weight))

    def gradient(self, slopes: FloatArray) -> FloatArray:
        """(size,) from its summands."""
        return np.asarray(np.bincount(self._slopes, slopes, self.size))


class Newton:
    """Ascent of one objective from a point inside its domain.

    The Hessian is shifted by λ times the size of its diagonal until minus it is positive definite; λ is kept from step
    to step.

    Attributes:
        z: where it stands, which no later step writes into.
        value: of the objective there.
        tables: gauged ones there.
        residual: largest component of the gradient before the last step, over the coordinates that may move.
        end: why it has ended.
        steps: taken so far.
    """

    def __init__(
        self, ascents: Ascents, z: FloatArray, ungauged: Tables, rules: Maximisation, weights: Weights
    ) -> None:
        self.z = z
        self.residual = np.inf
        self.steps = 0
        self._ascents, self._ungauged, self._rules, self._weights = ascents, ungauged, rules, weights
        self.value, self.tables = self._evaluate(z, tuple(0.0 * table for table in ungauged))
        self.end: End = "" if np.isfinite(self.value) else "stalled"
        self._shift = FIRST_SHIFT
        self._flat_steps = 0
        self._mark = self.value

    def step(self) -> None:
        """One Newton step, or the end."""
        if self._is_slow():
            self.end = "slow"
            return
        ascents = self._ascents
        parts = ascents.formulas.differentiate(ascents.slots, self.z, self.tables, self._weights)
        slopes, bends = map(np.asarray, parts)
        gradient = ascents.gradient(slopes)
        free = self._free(gradient)
        slope = np.where(free, gradient, 0.0)
        if not (np.isfinite(slope).all() and np.isfinite(bends).all()):
            self.end = "stalled"
            return
        self.residual = float(np.abs(slope).max(initial=0.0))
        if self.residual < self._rules.tolerance:
            self.end = "gradient"
            return
        if self.steps >= self._rules.limit:
            self.end = "limit"
            return
        self.steps += 1
        move, self._shift = ascents.solver.ascent(bends, slope, free, self._shift)
        self._go_along(move / max(1.0, float((np.abs(move) / ascents.step_limits).max())), slope)

    def _is_slow(self) -> bool:
        """At every `SLOW_STEPS`-th step: whether those since the last time gained next to nothing."""
        if self.steps % SLOW_STEPS:
            return False
        gain, self._mark = self.value - self._mark, self.value
        return self.steps >= self._rules.patience and gain < SLOW * (1.0 + abs(self.value))

    def _free(self, gradient: FloatArray) -> npt.NDArray[np.bool_]:
        """(size,) which coordinates may move; angles always do."""
        free = np.ones(self._ascents.size, dtype=bool)
        logits, pushes = self.z[self._ascents.num_angles :], gradient[self._ascents.num_angles :]
        free[self._ascents.num_angles :] = (np.abs(logits) <= FAR_LOGIT) | (pushes * logits < 0)
        return free

    def _go_along(self, move: FloatArray, slope: FloatArray) -> None:
        """To the first point along the move that gains enough; where there is none, λ grows."""
        rise, length = float(slope @ move), 1.0
        for _ in range(TRIALS):
            z = self.z + length * move
            value, tables = self._evaluate(z, self.tables)
            if value >= self.value + SUFFICIENT * length * rise:
                break
            length *= _next_share(self.tables, tables)
        else:
            self._shift *= 100.0
            if self._shift > 1e8:
                self.end = "stalled"
            return
        gain = value - self.value
        self.z, self.value, self.tables = z, value, tables
        # As in trust-region methods: full steps lower λ, shortened steps raise it.
        if length == 1.0:
            self._shift = max(0.2 * self._shift, 1e-12)
        elif length < 0.2:
            self._shift = min(4.0 * self._shift, 1e6)
        self._flat_steps = self._flat_steps + 1 if gain < FLAT * (1.0 + abs(value)) else 0
        if self._flat_steps >= FLAT_STEPS:
            self.end = "flat"

    def _evaluate(self, z: FloatArray, start: Tables) -> tuple[float, Tables]:
        value, tables = self._ascents.formulas.evaluate(self._ascents.slots, z, self._ungauged, start, self._weights)
        return float(value), tuple(tables)


def nodes_last(tables: Sequence[FloatArray]) -> Tables:
    """(2**d, n) arrays from (n, 2**d) ones."""
    return tuple(np.ascontiguousarray(table.T) for table in tables)


def _next_share(start: Tables, tables: Tables) -> float:
    """Of a step from `start` that led to `tables` in vain: how much of it comes next."""
    meets = []
    for old, new in zip(start, tables, strict=True):
        # A singular gauge gives NaN, for which every comparison is false.
        at, table = np.asarray(old), np.asarray(new)
        below = table <= KEPT * at
        if below.any():
            meets.append(float(((1.0 - KEPT) * at[below] / (at[below] - table[below])).min()))
    least, of_it = SHORTER
    return max(least, of_it * min(meets)) if meets else 0.5
