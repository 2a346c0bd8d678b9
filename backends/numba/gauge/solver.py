"""Ascents in compiled code, as `spinbench.methods.gauge.ascent.solver` asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gauge import cholesky, derivatives, fields, newton
from spinbench.backends.numba.gauge.elimination import blocks_of
from spinbench.backends.numba.gauge.network import flat, network_of
from spinbench.methods.gauge.ascent import mean_field
from spinbench.methods.gauge.ascent.newton import ENDS, End, Maximisation
from spinbench.methods.gauge.ascent.objectives import Tables
from spinbench.methods.gauge.ascent.solver import Ascent, FieldAscents, GaugeAscents, JointAscents
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]


class CompiledSolver:
    """A `Solver`; always in float64."""

    def gauges(self, model: ForneyModel) -> GaugeAscents:
        return _Graph(model, 2)

    def joint(self, model: ForneyModel) -> JointAscents:
        return _Graph(model, 3)

    def field(self, model: ForneyModel) -> FieldAscents:
        return CompiledField(model)


class CompiledField:
    """`FieldAscents` of a model."""

    def __init__(self, model: ForneyModel) -> None:
        self._field = fields.field_of(model)

    def ascend(self, q: FloatArray, limit: int = 1000) -> Iterator[tuple[FloatArray, float]]:
        runs = np.ascontiguousarray(q.T)
        for _ in range(limit):
            last = np.full(len(runs), np.inf)
            fields.sweeps(self._field, runs, mean_field.TOLERANCE, 1, last)
            change = float(last.max(initial=0.0))
            yield runs.T.copy(), change
            if change < mean_field.TOLERANCE:
                return

    def value(self, q: FloatArray) -> FloatArray:
        found = np.empty(q.shape[1])
        fields.values(self._field, np.ascontiguousarray(q.T), found)
        return found


class _Graph:
    """A model's graph, and what ascents on it write into, one at a time.

    Args:
        model: a model with edges.
        b: coordinates an edge.
    """

    def __init__(self, model: ForneyModel, b: int) -> None:
        self.net, self.blocks = network_of(model), blocks_of(model)
        self._given = flat([group.tables for group in model.groups])
        self._edges = edges = model.num_edges
        size, lead = len(self._given), cholesky.lanes(b)
        entries = b * lead * len(self.blocks.rows)
        self.room = newton.Room(
            gradient=np.empty(b * edges),
            move=np.empty(b * edges),
            trial=np.empty(b * edges),
            found=np.empty(size),
            matrix=np.empty(entries),
            factor=np.empty(entries),
            columns=np.empty((3, edges), dtype=np.int64),
            where=np.empty(edges, dtype=np.int64),
            solution=np.empty(lead * edges),
            entries=np.empty((derivatives.ROWS, 2 ** int(self.net.degree.max(initial=0)))),
            turns=np.empty((2, edges)),
            axes=np.empty((2, 2 * edges)),
        )

    def newton(
        self, z: FloatArray, each: Maximisation, *, zero_weight: float = 1.0, tables: Tables | None = None
    ) -> Ascent:
        given = self._given if tables is None else flat(tables)
        q = np.empty(len(z) - 2 * self._edges)
        point = newton.Point(z.copy(), q, given, np.empty_like(given), np.empty(newton.STATUS))
        return _Ascent(self, point, each, zero_weight)


class _Ascent:
    """Of one objective."""

    def __init__(self, graph: _Graph, point: newton.Point, each: Maximisation, zero_weight: float) -> None:
        self._graph, self._point = graph, point
        weights = each.conditioning, each.weight, zero_weight
        self._rules = weights, each.tolerance, each.limit, each.patience
        self.end: End = ENDS[newton.begin(graph.net, weights, point, graph.room)]

    @property
    def z(self) -> FloatArray:
        return self._point.z.copy()

    @property
    def residual(self) -> float:
        return float(self._point.status[newton.RESIDUAL])

    def step(self) -> None:
        self.end = ENDS[newton.step(self._graph.net, self._graph.blocks, *self._rules, self._point, self._graph.room)]
