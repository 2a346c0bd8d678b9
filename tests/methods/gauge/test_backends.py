"""The gauged methods on NumPy, Numba and JAX: one kernel, the same bounds."""

from __future__ import annotations

from typing import Any

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference.registry import make_method
from spinbench.methods.gauge import kernel as engine
from spinbench.methods.gauge.ascent import objectives
from spinbench.methods.gauge.ascent.newton import Ascents, Maximisation
from spinbench.methods.gauge.ascent.objectives import formulas_of
from spinbench.methods.gauge.kernel import GaugeKernel
from spinbench.models import PairwiseModel
from spinbench.models.forney import build, convert
from spinbench.models.networks import gauge_complete, gauge_regular

ENGINES = ["numpy", "numba", "jax"]
OTHERS = ENGINES[1:]
PARALLEL = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
"""Edges between the same two nodes."""
RULES = Maximisation(0.05, 0.1, 1e-9, 40, 41)


def models():
    """Nodes of three to five edges, parallel edges, two components, and a 3-regular graph."""
    rng = np.random.default_rng(7)
    apart = zoo.side_by_side([zoo.random_tables(zoo.complete(n), 0.3, rng) for n in (4, 5)])
    regular = convert.to_forney(gauge_regular(nodes=24, degree=3, beta=0.3, seed=1), 0)
    return [zoo.random_tables(zoo.complete(6), 0.3, rng), zoo.random_tables(PARALLEL, 0.3, rng), apart, regular]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("joint", [False, True])
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


def test_angles_outside_end_at_once():
    model = models()[0]
    theta = np.zeros(2 * model.num_edges)
    for angle in (1.5, 2.0):
        theta[0] = angle  # tables turn negative, or the gauge singular
        assert Ascents(model, joint=False).newton(theta, RULES).end == "stalled"


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("name", ["g_bp", "g_bp_single", "g_bp_multiple", "g_bp_sequential", "g_mf", "forney_mf"])
def test_bounds_are_those_on_numpy_and_below_log_z(name, backend):
    rng = np.random.default_rng(5)
    forney = [zoo.random_tables(zoo.complete(4), 0.6, rng), zoo.random_tables(PARALLEL, 0.6, rng)]
    for model in [*(one.to_factor_graph() for one in forney), gauge_complete(5, 0.5, seed=3)]:
        exact = zoo.enumerated_log_z(convert.to_forney(model, 0))
        plain, other = (spinbench.run(model, name, each, "3000 samples") for each in ("numpy", backend))
        assert other.log_z == pytest.approx(plain.log_z, abs=1e-5)
        assert other.log_z <= exact
        assert other.status == plain.status == "ok"


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("labels", ["zero", "best", "greedy"])
def test_any_labels_run(labels, backend):
    model, method = gauge_complete(4, 1.0, seed=2), make_method("g_bp_multiple", {"labels": labels})
    plain, other = (spinbench.run(model, method, each, "3000 samples") for each in ("numpy", backend))
    assert other.log_z == pytest.approx(plain.log_z, abs=1e-5)


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("name", ["g_bp", "g_mf", "forney_mf"])
def test_hard_zeros_have_bounds(name, backend):
    """Where an interior point is searched for."""
    model = zoo.random_tables(zoo.complete(4), 0.4, np.random.default_rng(11))
    tables = [np.array(table) for table in model.log_tables]
    tables[0][0, 1, 1] = tables[2][1, 0, 0] = -np.inf
    zeros = build.from_log_tables(model.edges, tables).to_factor_graph()
    exact = zoo.enumerated_log_z(convert.to_forney(zeros, 0))
    for precision in ("float32", "float64"):
        plain, other = (
            spinbench.run(zeros, name, each, "3000 samples", precision=precision) for each in ("numpy", backend)
        )
        assert other.log_z <= exact
        assert other.log_z >= plain.log_z - 1e-3


@pytest.mark.parametrize("backend", OTHERS)
def test_models_without_edges_are_exact(backend):
    one = PairwiseModel.from_edges([0.7], np.zeros((0, 2), dtype=np.int64), [])
    for name in ("g_mf", "g_bp_sequential", "forney_mf"):
        found = spinbench.run(one, name, backend, "10 samples")
        assert found.log_z == pytest.approx(np.log1p(np.exp(0.7)), abs=1e-9)


def test_results_say_what_numpy_computes():
    model = gauge_complete(4, 0.5, seed=0)
    found = {backend: spinbench.run(model, "g_bp_sequential", backend, "5 samples").notes for backend in ENGINES}
    assert found["numpy"] == ()
    assert any("NumPy's" in note for note in found["numba"])
    assert any("bounded in NumPy" in note for note in found["jax"])


@pytest.mark.parametrize("name", ["g_mf", "g_bp_sequential"])
def test_two_runs_take_turns(name):
    """On one kernel, cut into different batches, twice in a process."""
    model, method = gauge_complete(4, 0.5, seed=1), make_method(name, {})
    kernel = GaugeKernel(method, NumpyBackend(), model, method.plan(model))
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


@pytest.mark.parametrize(("name", "traces"), [("g_bp_multiple", 1), ("g_mf", 2), ("g_bp_sequential", 1)])
def test_a_search_on_jax_compiles_nothing(name: str, traces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is compiled before the clock of a run starts; a formula is called where it is traced, and only there."""
    traced: list[Any] = []
    differentiate = objectives.differentiate

    def counted(*given: Any, xp: Any = np) -> Any:
        traced.extend([given] * (xp is not np))
        return differentiate(*given, xp=xp)

    monkeypatch.setattr(objectives, "differentiate", counted)
    engine._formulas_on.cache_clear()
    model, method = gauge_complete(4, 0.5, seed=2), make_method(name, {"labels": "best"})
    kernel = GaugeKernel(method, JaxBackend(), model, method.plan(model))
    start = np.zeros((model.num_variables, 1), dtype=np.int8)
    kernel.warm(kernel.init(0, start), 1)
    assert len(traced) == traces
    _, seen = kernel.advance(kernel.init(0, start), 10_000)
    assert seen["finished"][0] == 1
    assert 1 < seen["iterations"][0] < 10_000
    assert len(traced) == traces
    engine._formulas_on.cache_clear()  # of these counted ones
