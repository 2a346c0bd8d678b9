"""Bounds stay below log Z on many kinds of models; corrections sum the terms they should."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.methods.gauge.ascent import field_gauge, mean_field, point_mass
from spinbench.methods.gauge.bounds import lower_bound_tables, mean_field_bound
from spinbench.methods.gauge.corrections import partial_sums
from spinbench.models import Factor, FactorGraph

COUNT = 260
DELTAS = (1.0, 0.1, 0.01, 1e-4)


@pytest.fixture(scope="module")
def models():
    return zoo.zoo(COUNT, np.random.default_rng(2017))


@pytest.fixture(scope="module")
def exact(models):
    return np.array([zoo.enumerated_log_z(model) for model in models])


@pytest.fixture(scope="module")
def gauge(models):
    """Angles of G-BP of all models at once, and where each model's start."""
    whole = zoo.side_by_side(models)
    *_, last = point_mass.continuation(whole, DELTAS, limit=25)
    ends = np.cumsum([2 * model.num_edges for model in models])
    return whole, last.theta, np.split(last.theta, ends[:-1])


def test_g_bp_and_its_corrections_are_lower_bounds(models, exact, gauge):
    gaps = []
    for model, theta, log_z in zip(models, gauge[2], exact, strict=True):
        verified = lower_bound_tables(model, theta)
        if verified is None:
            continue
        values = partial_sums(model, verified)
        assert values.zero == pytest.approx(zoo.point_mass_bound(model, verified), abs=1e-9)
        assert values[0] <= values[1] <= values[2]
        gaps.append(log_z - np.array(values))
    assert len(gaps) >= 250
    assert np.min(gaps) >= -1e-9
    zero = [model.log_weight(np.zeros(model.num_edges, dtype=np.int64)) for model in models]
    assert np.median(gaps, axis=0)[0] < 0.5 * np.median(exact - zero)  # no trivial bounds


def test_mean_field_and_g_mf_are_lower_bounds(models, exact, gauge):
    whole, theta, split = gauge
    fields = mean_field.field_tables(whole)
    *_, (q, _) = mean_field.ascend(fields, np.random.default_rng(0).uniform(0.1, 0.9, (whole.num_edges, 1)), limit=50)
    early = theta * 0.0
    schedule = ((1e-1, 1e-2), (1e-3, 1e-4), (1e-5, 1e-6))
    *_, joint = field_gauge.ascent(whole, early, q[:, 0], schedule)
    ends = np.cumsum([model.num_edges for model in models])
    above, gained = [], []
    for k, model in enumerate(models):
        part = slice(ends[k] - model.num_edges, ends[k])
        plain = [group.tables for group in model.groups]
        naive = mean_field_bound(model, plain, q[part, 0])
        angles = joint.theta.reshape(-1, 2)[part].ravel()
        verified = lower_bound_tables(model, angles)
        if verified is None:
            continue
        both = (mean_field_bound(model, verified, q) for q in (joint.q[part], field_gauge.snap(joint.q[part])))
        gauged = max(both)
        above.append(max(naive, gauged) - exact[k])
        gained.append(gauged - naive)
    assert len(above) >= 250
    assert np.max(above) <= 1e-9
    assert np.mean(gained) > 0.05
    assert len(split) == len(models)


@pytest.mark.parametrize("graph", zoo.GRAPHS)
def test_corrections_are_the_terms_with_at_most_one_and_two_ones(graph):
    model = zoo.random_tables(zoo.GRAPHS[graph], 1.0, np.random.default_rng(3))
    tables = [group.tables for group in model.groups]
    states = np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges) & 1
    weights, ones = model.log_weight(states), states.sum(axis=1)
    _, single, multiple = partial_sums(model, tables)
    assert zoo.point_mass_bound(model, tables) == pytest.approx(weights[0], abs=1e-12)
    assert single == pytest.approx(np.logaddexp.reduce(weights[ones <= 1]), abs=1e-12)
    assert multiple == pytest.approx(np.logaddexp.reduce(weights[ones <= 2]), abs=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("method", "precision", "scale", "seed"),
    [
        ("g_mf", "float64", 700.0, 3),
        ("g_mf", "float64", 100.0, 1),
        ("g_bp", "float64", 100.0, 1),
        ("forney_mf", "float32", 100.0, 0),
    ],
)
def test_tables_beyond_the_range_of_floats_give_bounds_without_warnings(method, precision, scale, seed):
    """Of the first the best state has an entry of e^-744.7, which rounds to e^-744.4."""
    rng = np.random.default_rng(seed)
    ends = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    scopes = [tuple(e for e, pair in enumerate(ends) if node in pair) for node in range(4)]
    model = FactorGraph((2,) * 6, [Factor(scope, scale * rng.normal(size=(2, 2, 2))) for scope in scopes])
    found = spinbench.run(model, method, "numpy", 20, seed=seed, precision=precision).log_z
    assert found <= spinbench.exact(model).log_z


def test_gauges_with_negative_entries_give_no_bound():
    model = zoo.random_tables(zoo.complete(4), 0.3, np.random.default_rng(4))
    theta = np.zeros(12)
    assert lower_bound_tables(model, theta) is not None
    theta[0] = 1.2
    tables = zoo.transformed(model, theta.reshape(-1, 2))
    assert min((table / np.abs(table).max(axis=1, keepdims=True)).min() for table in tables) < -0.01
    assert lower_bound_tables(model, theta) is None
    theta[:2] = (0.9, 0.9 - np.pi / 2)  # singular
    assert lower_bound_tables(model, theta) is None
