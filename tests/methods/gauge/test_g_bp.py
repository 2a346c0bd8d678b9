"""G-BP: where it is exact, where it is belief propagation, and how tight it is."""

from __future__ import annotations

import dataclasses

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.methods.gauge.ascent import point_mass
from spinbench.methods.gauge.bounds import verified_tables
from spinbench.methods.gauge.g_bp import (
    GaugedBeliefPropagation,
    GaugedBeliefPropagationMultiple,
    GaugedBeliefPropagationSequential,
)
from spinbench.methods.gauge.kernel import GaugeKernel
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.models.forney import build, convert
from spinbench.models.networks import gauge_complete, gauge_regular

FINE = tuple(10.0**-k for k in range(10))


def g_bp(model, deltas=FINE):
    """The bound on a model as it stands: neither contracted nor relabelled."""
    *_, last = point_mass.continuation(model, deltas)
    return zoo.point_mass_bound(model, verified_tables(model, last.theta))


def run(method, model):
    """The report of a whole search."""
    kernel = GaugeKernel(method, NumpyBackend(), model, method.plan(model))
    state = kernel.init(0, None)
    while not state.report.finished:
        state, _ = kernel.advance(state, 50)
    return state.report


@pytest.mark.parametrize("n", range(2, 11))
def test_exact_on_lines(n):
    model = zoo.random_tables(zoo.line(n), 1.0, np.random.default_rng(n))
    model = model.relabel(_signs_to_last(model))
    assert g_bp(model) == pytest.approx(zoo.enumerated_log_z(model), abs=2e-6)


@pytest.mark.parametrize("n", range(3, 9))
def test_exact_on_cycles_with_one_negative_determinant(n):
    rng = np.random.default_rng(n)
    model = zoo.random_tables(zoo.cycle(n), 1.0, rng)
    if _negative(model).sum() % 2 == 0:  # swapping the columns of one table changes its sign
        tables = [np.array(t) for t in model.log_tables]
        tables[0] = tables[0][:, ::-1]
        model = build.with_log_tables(model, [np.stack([t.ravel() for t in tables])], model.log_constant)
    model = model.relabel(_signs_to_last(model))
    assert _negative(model).sum() == 1
    assert g_bp(model) == pytest.approx(zoo.enumerated_log_z(model), abs=2e-6)


def _negative(model):
    return np.array([table.ndim == 2 and np.linalg.det(np.exp(table)) < 0 for table in model.log_tables])


def _signs_to_last(model):
    """Flips of the edges (i, i + 1) of a line or a cycle that leave a negative determinant at the last node at most."""
    flips = np.zeros(model.num_edges, dtype=np.int64)
    sign = False
    for i, negative in enumerate(_negative(model)[: len(model.log_tables) - 1]):
        sign ^= bool(negative)
        flips[i] = sign
    return flips


def test_the_four_values_of_the_symmetric_triangle():
    model = zoo.symmetric(zoo.cycle(3), (1.0, 1.0, -1.0))
    assert zoo.enumerated_log_z(model) == pytest.approx(3.797846, abs=1e-6)
    assert g_bp(model) == pytest.approx(3.797846, abs=1e-6)
    assert zoo.bethe(model) == pytest.approx(4.380784, abs=1e-6)
    graph = model.to_factor_graph()
    field = spinbench.run(graph, "forney_mf", "numpy", "2000 samples", merge=0)
    assert field.log_z == pytest.approx(3.079442, abs=1e-6)


@pytest.mark.parametrize("n", [4, 6])
def test_belief_propagation_on_cycles_without_negative_determinants(n):
    model = zoo.random_tables(zoo.cycle(n), 1.0, np.random.default_rng(n + 20))
    if _negative(model).sum() % 2:
        tables = [np.array(t) for t in model.log_tables]
        tables[0] = tables[0][:, ::-1]
        model = build.with_log_tables(model, [np.stack([t.ravel() for t in tables])], model.log_constant)
    model = model.relabel(_signs_to_last(model))
    bethe = zoo.bethe(model)
    assert g_bp(model) == pytest.approx(bethe, abs=1e-4)
    assert bethe < zoo.enumerated_log_z(model) - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_belief_propagation_on_supermodular_regular_graphs(seed):
    model = convert.from_factor_graph(gauge_regular(20, 3, 0.5, "supermodular", seed=seed))
    report = run(GaugedBeliefPropagation(deltas=(*GaugedBeliefPropagation().deltas, 1e-6)), model)
    bethe = zoo.bethe(model)
    assert report.bound == pytest.approx(bethe, abs=1e-3)


def test_tight_on_complete_graphs():
    """Mean relative errors over 20 models: GAUGING's thresholds .015 and .010."""
    errors = []
    for seed in range(20):
        model = gauge_complete(4, 0.5, seed=seed)
        log_z = zoo.enumerated_log_z(convert.from_factor_graph(model))
        report = run(GaugedBeliefPropagationSequential(deltas=(1.0, 0.1, 1e-2, 1e-4)), model)
        found = np.array([report.bounds[name] for name in ("multiple", "sequential")])
        assert (found <= log_z + 1e-9).all()
        assert report.bound == report.bounds["sequential"] >= report.bounds["multiple"]
        errors.append((log_z - found) / abs(log_z))
    assert (np.mean(errors, axis=0) <= (0.015, 0.010)).all()


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_sequential_sums_a_tree_exactly_though_nothing_is_contracted(backend):
    model = zoo.random_tables(zoo.GRAPHS["star"], 1.0, np.random.default_rng(0))
    method = GaugedBeliefPropagationSequential(merge=0, deltas=(1.0, 0.1))
    result = spinbench.run(model.to_factor_graph(), method, backend, "500 samples")
    assert result.log_z == pytest.approx(zoo.enumerated_log_z(model), abs=1e-10)
    assert result.diagnostics["bound_multiple"] < result.log_z - 1e-4


def test_exact_answers_of_models_that_contract_to_nothing():
    model = zoo.random_tables([(0, 1), (1, 2), (1, 3)], 1.0, np.random.default_rng(0)).to_factor_graph()
    exact = spinbench.exact(model, cache=False)
    for name in ("g_bp", "g_bp_multiple", "g_mf"):
        result = spinbench.run(model, name, "numpy", "5 samples")
        assert result.log_z == pytest.approx(exact.log_z, abs=1e-10)
        assert (result.status, result.log_z_kind) == ("ok", "lower")
        assert result.marginals is None or result.marginals == pytest.approx(exact.marginals, abs=1e-10)


def test_marginals_are_derivatives_of_the_bound():
    """Exact where the bound is; elsewhere the finite difference of the bound in a log weight."""
    line = zoo.random_tables(zoo.line(5), 1.0, np.random.default_rng(1)).to_factor_graph()
    method = GaugedBeliefPropagation(merge=0, deltas=FINE[:8])
    exact = spinbench.exact(line, cache=False)
    assert run(method, line).marginals == pytest.approx(exact.marginals, abs=1e-4)

    loopy = zoo.random_tables(zoo.complete(4), 0.4, np.random.default_rng(2))
    method = dataclasses.replace(method, labels="zero")
    nudged = []
    for step in (-1e-4, 1e-4):
        tables = [np.array(t) for t in loopy.log_tables]
        axis = loopy.incident[0].index(0)
        index: list[object] = [slice(None)] * 3
        index[axis] = 1
        tables[0][tuple(index)] += step
        moved = build.from_log_tables(loopy.edges, tables, incident=loopy.incident, log_constant=loopy.log_constant)
        nudged.append(run(method, moved).bound)
    slope = (nudged[1] - nudged[0]) / 2e-4
    assert run(method, loopy).marginals[0] == pytest.approx(slope, abs=1e-3)


def test_better_labels_do_not_lower_the_bound():
    model = gauge_complete(4, 1.0, seed=3)
    found = {labels: run(GaugedBeliefPropagation(labels=labels), model).bound for labels in ("mode", "best", "greedy")}
    assert found["mode"] <= found["best"] <= found["greedy"]
    assert found["greedy"] <= spinbench.exact(model, cache=False).log_z + 1e-9


def test_runs_may_be_cut_and_end_early():
    model = gauge_complete(4, 0.5, seed=4)
    whole = spinbench.run(model, "g_bp_multiple", "numpy", "3000 samples")
    short = spinbench.run(model, "g_bp_multiple", "numpy", "2 samples")
    assert whole.samples < 3000
    assert whole.status == "ok"
    assert short.status == "not converged"
    assert short.log_z <= whole.log_z <= spinbench.exact(model, cache=False).log_z + 1e-9
    assert whole.diagnostics["bound_g_bp"] <= whole.diagnostics["bound_single"] <= whole.log_z


def test_the_methods_are_native_on_all_built_in_backends():
    for name in ("g_bp", "g_bp_single", "g_bp_multiple", "g_bp_sequential", "g_mf"):
        for backend in ("numpy", "numba", "jax"):
            assert spinbench.inference.registry.support(name, backend).tier in ("native", "unavailable")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"labels": "map"}, "g_bp: labels='map' was given; mode, zero, best, greedy are allowed"),
        ({"merge": 1}, "g_bp: merge=1 was given; 0 (nothing) or 2 to 10 is allowed"),
        ({"merge": 11}, "g_bp: merge=11 was given; 0 (nothing) or 2 to 10 is allowed"),
        ({"deltas": (0.1, 1.0)}, "g_bp: deltas=[0.1, 1.0] was given; decreasing positive numbers are needed"),
        ({"deltas": ()}, "g_bp: deltas=[] was given; decreasing positive numbers are needed"),
    ],
)
def test_settings_out_of_range(settings, sentence):
    with pytest.raises(SpinbenchError) as error:
        GaugedBeliefPropagation(**settings)
    assert str(error.value) == sentence


class TestDifficultModels:
    def test_zeros_that_no_gauge_escapes_leave_the_weight_of_a_mode(self):
        """Every node allows one state only, so that no interior point exists."""
        table = np.full((2, 2, 2), -np.inf)
        table[0, 1, 0] = 0.3
        model = FactorGraph.from_log_tables([2, 2, 2], [((0, 1, 2), table), ((0, 1, 2), table)])
        report = run(GaugedBeliefPropagation(merge=0), model)
        assert report.bound == pytest.approx(0.6, abs=1e-12)
        assert np.isfinite(report.marginals).all() or np.isnan(report.marginals).all()

    def test_equality_nodes(self):
        """Zeros everywhere at the identity: an interior point is searched for."""
        rng = np.random.default_rng(5)
        scopes = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
        model = FactorGraph.from_log_tables([2] * 4, [(scope, rng.normal(size=(2, 2, 2))) for scope in scopes])
        log_z = spinbench.exact(model, cache=False).log_z
        report = run(GaugedBeliefPropagationMultiple(merge=0), model)
        states = np.stack(np.meshgrid(*[[0, 1]] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
        assert model.log_weight(states).max() + 0.05 < report.bound <= log_z + 1e-9

    def test_degree_above_the_limit(self):
        model = PairwiseModel.from_dense(np.zeros(12), np.ones((12, 12)) - np.eye(12))
        with pytest.raises(UnsupportedError, match="degree 11"):
            GaugedBeliefPropagation().plan(model)

    def test_more_than_two_states(self):
        model = FactorGraph.from_log_tables([3, 2], [((0, 1), np.zeros((3, 2)))])
        with pytest.raises(UnsupportedError, match="3 states"):
            GaugedBeliefPropagation().plan(model)

    @pytest.mark.parametrize("name", ["g_bp_multiple", "g_mf"])
    def test_disconnected_isolated_and_constant_parts(self, name):
        triangle = zoo.GRAPHS["complete"]
        rng = np.random.default_rng(6)
        factors = [((0,), [0.0, 0.4])]
        for a in range(4):
            scope = tuple(1 + e for e, ends in enumerate(triangle) if a in ends)
            factors.append((scope, rng.normal(size=(2, 2, 2))))
        factors.append(((), np.array(0.7)))
        model = FactorGraph.from_log_tables([2] * 9, factors, log_constant=-2.0)  # 7 and 8 are in no factor
        exact = spinbench.exact(model, cache=False)
        result = spinbench.run(model, name, "numpy", "4000 samples")
        assert exact.log_z - 1.0 < result.log_z <= exact.log_z + 1e-9
        if result.marginals is not None:
            assert result.marginals[[0, 7, 8]] == pytest.approx(exact.marginals[[0, 7, 8]], abs=1e-12)

    def test_huge_weights(self):
        model = zoo.random_tables(zoo.complete(4), 60.0, np.random.default_rng(7))
        report = run(GaugedBeliefPropagationMultiple(), model)
        log_z = zoo.enumerated_log_z(model)
        assert log_z - 5.0 < report.bound <= log_z + 1e-9
