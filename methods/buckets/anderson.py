"""Anderson acceleration of a damped fixed point whose objective tells whether a step was good.

Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 2011, in its second form: with
the last points x_k, their residuals f_k = g(x_k) - x_k, and the γ for which f - ΔF γ is least, the next point is
x + f - (ΔX + ΔF) γ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Largest number of past differences that are mixed; each takes twice the memory of a point.
KEPT = 10
# Ridge of the least-squares problem, as a share of the mean square of the residual differences, which are nearly
# dependent in late passes.
_RIDGE = 1e-8
# Initial step of the damped fixed-point iteration; a plain step without gain halves it, and the iteration ends below
# the second number.
_STEP, _LEAST_STEP = 1.0, 1e-3
# Smallest decrease of the objective in nats that counts as a gain; number of passes without a gain that ends the
# iteration.
_GAIN, _PATIENCE = 1e-7, 12

# g(point, step): the damped fixed-point map, applied to the point that was evaluated last.
Moved = Callable[[FloatArray, float], FloatArray]
# Projects a point onto the feasible set and returns it with the objective there.
Valued = Callable[[FloatArray], tuple[FloatArray, float]]


class Descent:
    """To where an objective is least; read `value` and `best` after each pass.

    A pass is accepted where it is not worse by more than the last one gained: what acceleration needs is that
    residuals fall, and the best point is kept.

    Args:
        first: (D,) float64, the point to begin at.
        valued: its last call is at the point that the next step starts from.
        moved: the fixed point's map.
        room: float64 numbers that all remembered points and residuals may take, two at least.
    """

    def __init__(self, first: FloatArray, valued: Valued, moved: Moved, room: float) -> None:
        self._valued, self._moved = valued, moved
        self._at, self._value = valued(first)
        self.best, self.value = self._at, self._value
        self.valued = 1
        """Times that the objective was asked for."""
        self._kept = int(min(max(room / (2 * max(len(first), 1)), 1), KEPT))
        self._points: list[FloatArray] = []
        self._residuals: list[FloatArray] = []
        self._step, self._gained, self._idle = _STEP, 0.0, 0

    @property
    def is_ended(self) -> bool:
        """Whether passes gain no more."""
        return self._step < _LEAST_STEP or self._idle >= _PATIENCE

    def go_on(self) -> None:
        """One accelerated step, or a plain one where that was no good."""
        image = self._moved(self._at, self._step)
        self._remember(self._at, image - self._at)
        before = self.value
        mixed = len(self._points) > 1 and self._accept(self._mix(), self._gained)
        if not (mixed or self._accept(image, 0.0)):
            self._step /= 2
            # Residuals at different steps cannot be mixed.
            self._points, self._residuals = [], []
            # The arrays of the passes still belong to the rejected point, and the map starts from the point evaluated
            # last.
            self._valued(self._at)
        self._idle = 0 if before - self.value >= _GAIN else self._idle + 1

    def finish(self) -> FloatArray:
        """The best point, at which the objective was asked for last."""
        if self._at is not self.best:
            self._at, self._value = self._valued(self.best)
        return self.best

    def _accept(self, point: FloatArray, worse: float) -> bool:
        """Whether it was gone to; the objective may be worse by so much."""
        point, value = self._valued(point)
        self.valued += 1
        if not value < self._value + worse:
            return False
        self._gained = abs(self._value - value)
        self._at, self._value = point, value
        if value < self.value:
            self.best, self.value = point, value
        return True

    def _remember(self, point: FloatArray, residual: FloatArray) -> None:
        self._points = [*self._points, point][-self._kept - 1 :]
        self._residuals = [*self._residuals, residual][-self._kept - 1 :]

    def _mix(self) -> FloatArray:
        change, turn = np.diff(self._points, axis=0), np.diff(self._residuals, axis=0)
        squares, image = turn @ turn.T, self._points[-1] + self._residuals[-1]
        ridge = _RIDGE * float(np.trace(squares))
        if not ridge > 0:
            return image
        shares = np.linalg.solve(squares + ridge * np.eye(len(squares)), turn @ self._residuals[-1])
        return np.asarray(image - (change + turn).T @ shares)
