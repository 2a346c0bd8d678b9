"""G-BP: where it is exact, where it is belief propagation, and how tight it is."""

from __future__ import annotations

import dataclasses

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.numpy import NumpyBackend
from spinbench.methods.gauge.ascent import point_mass
from spinbench.methods.gauge.bounds import lower_bound_tables
from spinbench.methods.gauge.g_bp import (
    GaugedBeliefPropagation,
    GaugedBeliefPropagationSequential,
)
from spinbench.methods.gauge.kernel import GaugeKernel
from spinbench.models.forney import build, convert
from spinbench.models.networks import gauge_complete, gauge_regular

FINE = tuple(10.0**-k for k in range(10))


def g_bp(model, deltas=FINE):
    """The bound on a model as it stands: neither contracted nor relabelled."""
    *_, last = point_mass.continuation(model, deltas)
    return zoo.point_mass_bound(model, lower_bound_tables(model, last.theta))


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


def random_cycle(n, seed, negative):
    """A cycle whose determinants are positive, but for that of the last node where it is to be negative."""
    model = zoo.random_tables(zoo.cycle(n), 1.0, np.random.default_rng(seed))
    if _negative(model).sum() % 2 != negative:  # swapping the columns of one table changes its sign
        tables = [np.array(t) for t in model.log_tables]
        tables[0] = tables[0][:, ::-1]
        model = build.replace_log_tables(model, [np.stack([t.ravel() for t in tables])], model.log_constant)
    model = model.relabel(_signs_to_last(model))
    assert _negative(model).sum() == negative
    return model


@pytest.mark.parametrize("n", range(3, 9))
def test_exact_on_cycles_with_one_negative_determinant(n):
    model = random_cycle(n, n, negative=True)
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
    model = random_cycle(n, n + 20, negative=False)
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
