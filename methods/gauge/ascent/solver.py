"""What a search asks of a backend: ascents of the objectives and of mean field on one graph; and NumPy's answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge.ascent import mean_field
from spinbench.methods.gauge.ascent.newton import End, Maximisation, Newton
from spinbench.methods.gauge.ascent.objectives import (
    MeanFieldObjective,
    PointMassObjective,
    Tables,
    angle_pattern,
    joint_pattern,
)
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]


class Ascent(Protocol):
    """Newton's method, a step at a time; the members are those of `Newton`."""

    end: End

    @property
    def z(self) -> FloatArray:
        """Where it stands, which no later step writes into."""
        ...

    @property
    def residual(self) -> float:
        """Largest component of the gradient before the last step."""
        ...

    def step(self) -> None:
        """One Newton step, or the end."""
        ...


class GaugeAscents(Protocol):
    """Ascents of G-BP's objective on one graph."""

    def newton(
        self, theta: FloatArray, each: Maximisation, *, zero_weight: float = 1.0, tables: Tables | None = None
    ) -> Ascent:
        """From angles (2E,); "stalled" at once where they do not keep all tables positive.

        Args:
            theta: angles.
            each: what ends it; its weight is δ.
            zero_weight: of the logarithms at x = 0, without the barrier's.
            tables: (n, 2**d) a degree group; the model's by default.
        """
        ...


class JointAscents(Protocol):
    """Ascents of G-MF's objective on one graph."""

    def newton(self, z: FloatArray, each: Maximisation) -> Ascent:
        """From angles and logits (3E,); "stalled" at once where the angles do not keep all tables positive."""
        ...


class FieldAscents(Protocol):
    """Mean field on one model."""

    def ascend(self, q: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """q (E, R) and its largest change after each sweep, until that is below `mean_field.TOLERANCE`."""
        ...

    def value(self, q: FloatArray) -> FloatArray:
        """(R,) the bounds at q (E, R), for comparisons."""
        ...


class Solver(Protocol):
    """The three of a backend, prepared for a model."""

    def gauges(self, model: ForneyModel) -> GaugeAscents:
        """Of G-BP."""
        ...

    def joint(self, model: ForneyModel) -> JointAscents:
        """Of G-MF."""
        ...

    def field(self, model: ForneyModel) -> FieldAscents:
        """Of mean field."""
        ...


class ArraySolver:
    """On NumPy."""

    def gauges(self, model: ForneyModel) -> GaugeAscents:
        return _Gauges(model)

    def joint(self, model: ForneyModel) -> JointAscents:
        return _Joint(model)

    def field(self, model: ForneyModel) -> FieldAscents:
        return _Field(model)


ON_NUMPY: Solver = ArraySolver()


class _Gauges:
    def __init__(self, model: ForneyModel) -> None:
        self._model, self._pattern = model, angle_pattern(model)

    def newton(
        self, theta: FloatArray, each: Maximisation, *, zero_weight: float = 1.0, tables: Tables | None = None
    ) -> Ascent:
        objective = PointMassObjective(
            self._model,
            each.weight,
            each.conditioning,
            zero_weight=zero_weight,
            tables=tables,
            pattern=self._pattern,
        )
        return Newton(objective, theta, tolerance=each.tolerance, limit=each.limit, patience=each.patience)


class _Joint:
    def __init__(self, model: ForneyModel) -> None:
        self._model, self._pattern = model, joint_pattern(model)

    def newton(self, z: FloatArray, each: Maximisation) -> Ascent:
        objective = MeanFieldObjective(self._model, each.conditioning, each.weight, self._pattern)
        return Newton(objective, z, tolerance=each.tolerance, limit=each.limit, patience=each.patience)


class _Field:
    def __init__(self, model: ForneyModel) -> None:
        self._tables = mean_field.field_tables(model)

    def ascend(self, q: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        return mean_field.ascend(self._tables, q)

    def value(self, q: FloatArray) -> FloatArray:
        return np.asarray(mean_field.value(self._tables, q))
