"""Compiled Newton steps and sweeps of the gauged methods: those of NumPy, step by step and at the end."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.numba import NumbaBackend
from spinbench.inference.registry import make_method
from spinbench.methods.gauge.ascent.newton import Maximisation
from spinbench.methods.gauge.ascent.solver import ON_NUMPY
from spinbench.models import PairwiseModel
from spinbench.models.forney import build, convert
from spinbench.models.forney.generators import gauge_complete, gauge_regular

NumbaBackend()  # before kernels are imported

from spinbench.backends.numba.gauge import elimination  # noqa: E402
from spinbench.backends.numba.gauge.kernel import NumbaFieldKernel, NumbaGaugeKernel  # noqa: E402
from spinbench.backends.numba.gauge.solver import CompiledSolver  # noqa: E402

COMPILED = CompiledSolver()
PARALLEL = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
"""Edges between the same two nodes."""


def models():
    """Nodes of three to five edges, parallel edges, two components, and a 3-regular graph with fill."""
    rng = np.random.default_rng(7)
    apart = zoo.side_by_side([zoo.random_tables(zoo.complete(n), 0.3, rng) for n in (4, 5)])
    regular = convert.to_forney(gauge_regular(nodes=24, degree=3, beta=0.3, seed=1), 0)
    return [zoo.random_tables(zoo.complete(6), 0.3, rng), zoo.random_tables(PARALLEL, 0.3, rng), apart, regular]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("joint", [False, True])
def test_steps_are_those_on_numpy(which, joint):
    model = models()[which]
    rng = np.random.default_rng(0)
    z = rng.normal(scale=0.02, size=(3 if joint else 2) * model.num_edges)
    each = Maximisation(0.05, 0.1, 1e-9, 40, 41)
    solvers = [solver.joint(model) if joint else solver.gauges(model) for solver in (ON_NUMPY, COMPILED)]
    plain, compiled = (solver.newton(z, each) for solver in solvers)
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
    each = Maximisation(0.05, 0.1, 1e-9, 40, 41)
    plain, compiled = (solver.joint(model).newton(z, each) for solver in (ON_NUMPY, COMPILED))
    for _ in range(3):
        plain.step()
        compiled.step()
    assert compiled.z == pytest.approx(plain.z, abs=1e-6)
    assert (plain.z[2 * model.num_edges :] == z[2 * model.num_edges :]).any()


def test_angles_outside_end_at_once():
    model = models()[0]
    theta = np.zeros(2 * model.num_edges)
    for angle in (1.5, 2.0):
        theta[0] = angle  # tables turn negative, or the gauge singular
        assert COMPILED.gauges(model).newton(theta, Maximisation(0.1, 1.0, 1e-6, 5, 6)).end == "stalled"


def test_sweeps_are_those_on_numpy():
    for model in (*models(), zoo.random_tables(PARALLEL, 9.0, np.random.default_rng(1))):
        start = np.random.default_rng(3).uniform(0.1, 0.9, (model.num_edges, 3))
        plain, compiled = (solver.field(model) for solver in (ON_NUMPY, COMPILED))
        for sweep, ((q, change), (other, again)) in enumerate(
            zip(plain.ascend(start), compiled.ascend(start), strict=False)
        ):
            assert other == pytest.approx(q, abs=1e-10)
            assert again == pytest.approx(change, abs=1e-10)
            assert compiled.value(other) == pytest.approx(plain.value(q), abs=1e-9)
            if sweep == 5:
                break


def test_columns_have_the_fill_of_their_factors():
    """Blocks of columns hold whatever a Cholesky factor may hold, and the pairs of slots name their places."""
    for model in models():
        blocks, edges = elimination.blocks_of(model), model.num_edges
        assert sorted(blocks.place) == list(range(edges))
        pattern = np.eye(edges, dtype=bool)
        for slots in model.incident:
            at = blocks.place[list(slots)]
            pattern[np.ix_(at, at)] = True
        for k in range(edges):
            below = k + 1 + np.flatnonzero(pattern[k + 1 :, k])
            pattern[np.ix_(below, below)] = True
            assert list(blocks.rows[blocks.first[k] : blocks.first[k + 1]]) == [k, *below]
        place = 0
        for group in model.groups:
            end = place + len(group.nodes) * group.degree**2
            spots = blocks.pairs[place:end].reshape(-1, group.degree, group.degree)
            place = end
            at = blocks.place[group.edges]
            rows, columns = np.broadcast_arrays(at[:, :, None], at[:, None, :])
            lower = rows >= columns
            assert (blocks.rows[spots[lower]] == rows[lower]).all()
            assert (spots[~lower] == -1).all()


@pytest.mark.parametrize("name", ["g_bp", "g_bp_multiple", "g_bp_sequential", "g_mf", "forney_mf"])
def test_bounds_are_those_on_numpy_and_below_log_z(name):
    rng = np.random.default_rng(5)
    forney = [zoo.random_tables(zoo.complete(4), 0.6, rng), zoo.random_tables(PARALLEL, 0.6, rng)]
    for model in [*(one.to_factor_graph() for one in forney), gauge_complete(5, 0.5, seed=3)]:
        exact = zoo.enumerated_log_z(convert.to_forney(model, 0))
        plain, compiled = (spinbench.run(model, name, backend, "3000 samples") for backend in ("numpy", "numba"))
        assert compiled.log_z == pytest.approx(plain.log_z, abs=1e-5)
        assert compiled.log_z <= exact
        assert compiled.status == plain.status == "ok"


def test_any_labels_run():
    model = gauge_complete(4, 1.0, seed=2)
    for labels in ("zero", "best", "greedy"):
        method = make_method("g_bp_multiple", {"labels": labels})
        plain, compiled = (spinbench.run(model, method, backend, "3000 samples") for backend in ("numpy", "numba"))
        assert compiled.log_z == pytest.approx(plain.log_z, abs=1e-5)


@pytest.mark.parametrize("name", ["g_bp", "g_mf", "forney_mf"])
def test_hard_zeros_have_bounds(name):
    """Where an interior point is searched for."""
    rng = np.random.default_rng(11)
    model = zoo.random_tables(zoo.complete(4), 0.4, rng)
    tables = [np.array(table) for table in model.log_tables]
    tables[0][0, 1, 1] = tables[2][1, 0, 0] = -np.inf
    zeros = build.from_log_tables(model.edges, tables).to_factor_graph()
    exact = zoo.enumerated_log_z(convert.to_forney(zeros, 0))
    for precision in ("float32", "float64"):
        plain, compiled = (
            spinbench.run(zeros, name, backend, "3000 samples", precision=precision) for backend in ("numpy", "numba")
        )
        assert compiled.log_z <= exact
        assert compiled.log_z >= plain.log_z - 1e-3


@pytest.mark.parametrize("name", ["g_mf", "g_bp_sequential", "forney_mf"])
def test_two_runs_take_turns(name):
    """On one kernel, cut into different batches, twice in a process."""
    model = gauge_complete(4, 0.5, seed=1)
    method = make_method(name, {})
    kernel = (NumbaFieldKernel if name == "forney_mf" else NumbaGaugeKernel)(method, None, model, method.plan(model))
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


def test_models_without_edges_are_exact():
    one = PairwiseModel.from_edges([0.7], np.zeros((0, 2), dtype=np.int64), [])
    for name in ("g_mf", "g_bp_sequential", "forney_mf"):
        found = spinbench.run(one, name, "numba", "10 samples")
        assert found.log_z == pytest.approx(np.log1p(np.exp(0.7)), abs=1e-9)
