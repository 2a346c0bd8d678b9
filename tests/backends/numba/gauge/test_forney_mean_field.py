"""Compiled sweeps of mean field on Forney models: those of NumPy, sweep by sweep and at the end."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

from spinbench.backends.numba import NumbaBackend
from spinbench.inference.registry import make_method
from spinbench.methods.gauge.ascent import mean_field
from spinbench.models.forney.generators import gauge_complete

NumbaBackend()  # before kernels are imported

from spinbench.backends.numba.gauge import fields  # noqa: E402
from spinbench.backends.numba.gauge.kernel import NumbaFieldKernel  # noqa: E402

PARALLEL = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
"""Edges between the same two nodes."""


@pytest.mark.parametrize("scale", [0.3, 9.0])
@pytest.mark.parametrize("graph", [zoo.complete(6), PARALLEL])
def test_sweeps_are_those_on_numpy(graph, scale):
    model = zoo.random_tables(graph, scale, np.random.default_rng(1))
    q = np.random.default_rng(3).uniform(0.1, 0.9, (model.num_edges, 3))
    tables, field = mean_field.field_tables(model), fields.field_of(model)
    runs, last, values = np.ascontiguousarray(q.T), np.full(3, np.inf), np.empty(3)
    for _ in range(5):
        q = mean_field.sweep(tables, q)
        fields.sweeps(field, runs, 1e-9, 1, last)
        fields.values(field, runs, values)
        np.testing.assert_allclose(runs.T, q, atol=1e-10)
        assert values == pytest.approx(mean_field.value(tables, q), abs=1e-9)


def test_two_runs_take_turns():
    """On one kernel, cut into different batches, twice in a process."""
    model = gauge_complete(4, 0.5, seed=1)
    method = make_method("forney_mf", {})
    kernel = NumbaFieldKernel(method, None, model, method.plan(model))
    start = np.zeros((model.num_variables, 1), dtype=np.int8)
    first, second = kernel.init(0, start), kernel.init(1, start)
    for steps in (7, 20, 3):
        first, _ = kernel.advance(first, steps)
        second, seen = kernel.advance(second, 1)
        second, seen = kernel.advance(second, steps - 1)
    first, last = kernel.advance(first, 1)
    second, seen = kernel.advance(second, 1)
    for key, value in last.items():
        assert seen[key] == pytest.approx(value, abs=1e-12)
