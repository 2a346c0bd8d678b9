"""Gradients and Hessians against central differences, and one kernel with the same bounds on NumPy, Numba and JAX."""

from __future__ import annotations

from collections.abc import Callable

import gauge_models as zoo
import numpy as np
import numpy.typing as npt
import pytest

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.mathematics import forney as gauges
from spinbench.methods.gauge.ascent.derivatives import (
    Derivatives,
    angle_derivatives,
    hessian_places,
    joint_derivatives,
    slot_products,
)
from spinbench.methods.gauge.ascent.newton import Ascents, Maximisation
from spinbench.methods.gauge.ascent.objectives import formulas_of
from spinbench.models.forney import convert
from spinbench.models.networks import gauge_complete, gauge_regular

FloatArray = npt.NDArray[np.float64]
NODES = 3
STEP = 1e-5


def differences(function: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """(v, …) central differences of function(v, n) -> (…, n), off by STEP² / 6 third derivatives and by rounding."""
    columns = []
    for i in range(len(at)):
        step = np.zeros_like(at)
        step[i] = STEP
        columns.append((function(at + step) - function(at - step)) / (2 * STEP))
    return np.stack(columns)


@pytest.fixture(params=[1, 2, 3, 4], ids=lambda degree: f"degree {degree}")
def node(request: pytest.FixtureRequest) -> tuple[FloatArray, FloatArray]:
    """Tables (n, 2**d) of n nodes, and angles and logits (3d, n), not far from the identity: entries stay positive."""
    rng = np.random.default_rng(request.param)
    tables = rng.uniform(0.5, 1.5, (NODES, 2**request.param))
    return tables, rng.uniform(-0.12, 0.12, (3 * request.param, NODES))


def gauged(tables: FloatArray, at: FloatArray) -> FloatArray:
    """(2**d, n)."""
    d = len(at) // 3
    found: FloatArray = np.asarray(gauges.transform(tables, at[:d].T, at[d : 2 * d].T)).T
    return found


def angles(at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Tangents and secants."""
    d = len(at) // 3
    return np.tan(at[:d] - at[d : 2 * d]), 1.0 / np.cos(at[:d] - at[d : 2 * d])


def matrix(found: Derivatives, joint: bool) -> FloatArray:
    """(v, v, n) the whole Hessian."""
    size, nodes = found.gradient.shape
    rows, columns = hessian_places(size // (3 if joint else 2), joint)
    whole = np.zeros((size, size, nodes))
    whole[rows, columns] = whole[columns, rows] = found.hessian
    return whole


def test_weighted_logarithms_in_the_angles(node: tuple[FloatArray, FloatArray]) -> None:
    tables, at = node
    d = len(at) // 3
    weights = np.random.default_rng(7).random((2**d, NODES))
    weights[0] = 0.0  # entries without a weight may be anything

    def value(point: FloatArray) -> FloatArray:
        found: FloatArray = (weights * np.log(gauged(tables, point))).sum(axis=0)
        return found

    def gradient(point: FloatArray) -> FloatArray:
        return np.asarray(angle_derivatives(gauged(tables, point), weights, *angles(point)).gradient)

    found = angle_derivatives(gauged(tables, at), weights, *angles(at))
    np.testing.assert_allclose(found.gradient, differences(value, at)[: 2 * d], atol=1e-8)
    np.testing.assert_allclose(matrix(found, joint=False), differences(gradient, at)[: 2 * d], atol=1e-8)
    spoilt = gauged(tables, at)
    spoilt[0] = -1.0
    assert np.isfinite(angle_derivatives(spoilt, weights, *angles(at)).hessian).all()


def test_mean_fields_in_angles_and_logits(node: tuple[FloatArray, FloatArray]) -> None:
    tables, at = node
    d = len(at) // 3
    floor = 0.03

    def q(point: FloatArray) -> FloatArray:
        found: FloatArray = 1.0 / (1.0 + np.exp(-point[2 * d :]))
        return found

    def value(point: FloatArray) -> FloatArray:
        found: FloatArray = ((slot_products(q(point)) + floor) * np.log(gauged(tables, point))).sum(axis=0)
        return found

    def gradient(point: FloatArray) -> FloatArray:
        return np.asarray(joint_derivatives(gauged(tables, point), q(point), floor, *angles(point)).gradient)

    found = joint_derivatives(gauged(tables, at), q(at), floor, *angles(at))
    np.testing.assert_allclose(found.gradient, differences(value, at), atol=1e-8)
    np.testing.assert_allclose(matrix(found, joint=True), differences(gradient, at), atol=1e-8)


ENGINES = ["numpy", "numba", "jax"]
# Edges between the same two nodes.
PARALLEL = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
RULES = Maximisation(0.05, 0.1, 1e-9, 40, 41)


def models():
    """Nodes of three to five edges, parallel edges, two components, and a 3-regular graph."""
    rng = np.random.default_rng(7)
    apart = zoo.side_by_side([zoo.random_tables(zoo.complete(n), 0.3, rng) for n in (4, 5)])
    regular = convert.to_forney(gauge_regular(nodes=24, degree=3, beta=0.3, seed=1), 0)
    return [zoo.random_tables(zoo.complete(6), 0.3, rng), zoo.random_tables(PARALLEL, 0.3, rng), apart, regular]


@pytest.mark.parametrize(("which", "joint"), [(0, False), (1, True), (2, True), (3, False)])
def test_steps_on_jax_are_those_on_numpy(which, joint):
    model = models()[which]
    backend = JaxBackend()
    ascents = [Ascents(model, joint), Ascents(model, joint, formulas_of(backend.xp, backend.compile))]
    z = np.random.default_rng(0).normal(scale=0.02, size=ascents[0].size)
    plain, compiled = (each.newton(z, RULES) for each in ascents)
    assert plain.end == compiled.end == ""
    for _ in range(6):
        plain.step()
        compiled.step()
        assert compiled.residual == pytest.approx(plain.residual, rel=1e-8, abs=1e-12)
        assert compiled.z == pytest.approx(plain.z, abs=1e-8)
        assert compiled.end == plain.end
    assert np.abs(plain.z - z).max() > 0.01


def test_far_logits_that_are_pushed_outwards_stay():
    model = zoo.random_tables(zoo.complete(4), 20.0, np.random.default_rng(0))
    z = np.zeros(3 * model.num_edges)
    z[2 * model.num_edges :] = np.where(np.arange(model.num_edges) % 2, 17.0, -17.0)
    z[2 * model.num_edges] = 0.3
    newton = Ascents(model, joint=True).newton(z, RULES)
    for _ in range(3):
        newton.step()
    assert (newton.z[2 * model.num_edges :] == z[2 * model.num_edges :]).any()
    assert newton.z[2 * model.num_edges] != 0.3


def test_results_say_what_numpy_computes():
    model = gauge_complete(4, 0.5, seed=0)
    found = {backend: spinbench.run(model, "g_bp_sequential", backend, "5 samples").notes for backend in ENGINES}
    assert found["numpy"] == ()
    assert any("NumPy's" in note for note in found["numba"])
    assert any("bounded in NumPy" in note for note in found["jax"])
