"""States of high probability that gibbs plans with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import Scan, by_variable, layout, scan_tables, sweep_tables
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.modes import find_pair_mode
from spinbench.models import PairwiseModel, generators


def random_model(n, edges, seed=0):
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(2 * rng.normal(size=n), edges, 2 * rng.normal(size=len(edges)))


def mode_of(model, tables_of):
    plan = layout(model, "chromatic")
    tables = tables_of(model, plan, compressed_rows(model, plan.order))
    mode = np.empty(model.num_variables)
    mode[plan.order] = find_pair_mode(model, plan.order, tables)
    assert np.array_equal(find_pair_mode(model, plan.order, tables), mode[plan.order])
    return tables, mode


@pytest.mark.parametrize("tables_of", [sweep_tables, scan_tables])
def test_the_mode_of_a_small_model_is_found(tables_of):
    model = random_model(14, list(itertools.combinations(range(14), 2)), seed=4)
    tables, mode = mode_of(model, tables_of)
    assert isinstance(tables, Scan) == (tables_of is scan_tables)
    states = (np.arange(2**14)[:, None] >> np.arange(14)) & 1
    assert model.log_weight(mode) == pytest.approx(model.log_weight(states).max())


def test_the_mode_is_a_local_maximum_of_a_large_model():
    index = np.arange(90_000).reshape(300, 300)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    model = random_model(90_000, np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]))
    _, mode = mode_of(model, sweep_tables)
    fields = model.biases + model.csr() @ mode
    assert (fields[mode == 1] > 0).all()
    assert (fields[mode == 0] <= 0).all()


def test_variables_without_fields_do_not_keep_the_ascent_going():
    model = PairwiseModel.from_edges(np.zeros(6), [(0, 1), (1, 2), (2, 3)], [1.0, -1.0, 1.0])
    _, mode = mode_of(model, sweep_tables)
    assert model.log_weight(mode) == pytest.approx(1.0)


@pytest.mark.parametrize("scan", ["chromatic", "raster", "random"])
@pytest.mark.parametrize("model", [generators.grid(4, 5, seed=0), generators.sherrington_kirkpatrick(9, seed=1)])
def test_no_single_change_raises_the_weight(model, scan):
    tables = Gibbs(scan=scan).plan(model)
    state = by_variable(tables.order, tables.mode)
    others = np.abs(state - np.eye(len(state)))
    assert (model.log_weight(others) <= model.log_weight(state)).all()
