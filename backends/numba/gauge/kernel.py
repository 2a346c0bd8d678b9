"""Mean field on the Forney model in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.gauge import fields
from spinbench.methods.messages.forney_mf import FieldPlan, ForneyMeanField
from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]


@dataclass
class FieldState:
    """R restarts; consumed by `advance`.

    Attributes:
        q: (R, E).
        residual: (R,) the last sweep's largest change, infinite before the first.
        iterations: sweeps so far.
    """

    q: FloatArray
    residual: FloatArray
    iterations: int = 0


class NumbaFieldKernel(Kernel):
    """`ForneyMeanField` in compiled sweeps, in float64 whatever precision is asked for; a restart that has converged
    rests."""

    def __init__(self, method: ForneyMeanField, backend: Backend, model: Model, tables: FieldPlan) -> None:
        self._field = fields.field_of(tables.form.value)
        self._starts = np.ascontiguousarray(np.asarray(tables.starts, dtype=np.float64).T)
        self._tolerance = method.smallest_change("float64")

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> FieldState:
        return FieldState(self._starts.copy(), np.full(len(self._starts), np.inf))

    def advance(self, state: FieldState, steps: int) -> tuple[FieldState, dict[str, npt.NDArray[Any]]]:
        state.iterations += fields.sweeps(self._field, state.q, self._tolerance, steps, state.residual)
        found = np.empty(len(state.q))
        fields.values(self._field, state.q, found)
        best = int(found.argmax())
        return state, {
            "q": state.q[best][:, None].copy(),
            "value": found[best : best + 1],
            "residual": state.residual[best : best + 1].copy(),
            "converged": np.array([float((state.residual <= self._tolerance).all())]),
            "iterations": np.array([float(state.iterations)]),
        }
