"""Colourings, raster levels, and tables of neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.colouring import colouring, raster_levels
from spinbench.mathematics.graphs.rows import (
    compressed_rows,
    dense_rows,
    is_dense,
)
from spinbench.mathematics.graphs.sweep_layouts import (
    layout,
    scan_tables,
    sweep_tables,
)
from spinbench.models import PairwiseModel


def grid_edges(rows, columns, torus=False):
    index = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    if torus:
        pairs += [(index[:, 0], index[:, -1]), (index[0], index[-1])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


def random_edges(n, count, seed):
    pairs = np.sort(np.random.default_rng(seed).integers(0, n, (count, 2)), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def random_model(n, edges, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(scale * rng.normal(size=n), edges, scale * rng.normal(size=len(edges)))


def complete_edges(n):
    return np.array(list(itertools.combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)


GRAPHS = {
    "one": (1, np.zeros((0, 2), dtype=np.int64)),
    "no edges": (5, np.zeros((0, 2), dtype=np.int64)),
    "grid": (100, grid_edges(10, 10)),
    "odd torus": (49, grid_edges(7, 7, torus=True)),
    "complete": (12, complete_edges(12)),
    "star": (300, np.stack([np.zeros(299, dtype=np.int64), np.arange(1, 300)], axis=1)),
    "sparse": (6000, random_edges(6000, 12000, 1)),
    "denser": (300, random_edges(300, 6000, 2)),
    "path": (12000, np.stack([np.arange(11999), np.arange(1, 12000)], axis=1)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_colourings_are_proper_and_small(name):
    n, edges = GRAPHS[name]
    colours = colouring(n, edges)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert set(colours.tolist()) == set(range(colours.max() + 1))
    degree = np.bincount(edges.ravel(), minlength=n).max()
    expected = {"one": 1, "no edges": 1, "grid": 2, "star": 2, "path": 2, "complete": 12}
    if name in expected:
        assert colours.max() + 1 == expected[name]
    else:
        assert colours.max() + 1 <= degree + 1
    assert colours.max() + 1 <= {"odd torus": 4, "sparse": 5, "denser": 14}.get(name, n)


def test_bipartite_graphs_of_many_components_get_two_colours():
    n = 3000
    trees = np.stack([np.arange(1, n), np.arange(1, n) - np.random.default_rng(0).integers(1, 2, n - 1)], axis=1)
    kept = trees[np.random.default_rng(1).random(n - 1) < 0.7]
    assert colouring(n, kept).max() == 1


def test_more_colours_than_bits_of_a_word():
    n = 5000  # beyond the graphs that are coloured vertex by vertex from the start
    clique = complete_edges(80)
    assert colouring(n, np.concatenate([clique, grid_edges(50, 100)[200:]])).max() + 1 >= 80


@pytest.mark.parametrize("name", GRAPHS)
def test_levels_give_the_raster_scan(name):
    n, edges = GRAPHS[name]
    low, high = edges.min(axis=1), edges.max(axis=1)
    levels = raster_levels(n, edges)
    assert (levels[low] < levels[high]).all()
    if name == "path":  # more levels than are worth a block each
        assert (levels == np.arange(n)).all()
        return
    expected = np.zeros(n, dtype=np.int64)
    for i in np.argsort(high, kind="stable"):
        expected[high[i]] = max(expected[high[i]], expected[low[i]] + 1)
    assert (levels == expected).all()


def planned(model, order):
    plan = layout(model, order)
    return plan, compressed_rows(model, plan.order)


def blocks_of(sweep):
    return sweep.first + sweep.middle + sweep.last


def block_weights(block, n):
    """(rows, N) couplings of a block."""
    if block.windows is not None:
        starts, margin = block.windows.starts, len(block.windows.margin)
        table = np.zeros((block.biases.size, n + 2 * margin))
        for start, weights in zip(starts, block.weights[:, :, 0], strict=True):
            rows = np.arange(block.biases.size)
            table[rows, start + rows] += weights
        assert not table[:, :margin].any()
        assert not table[:, margin + n :].any()
        return table[:, margin : margin + n]
    if block.neighbours is None:
        return block.weights
    table = np.zeros((block.biases.size, n))
    for near, weights in zip(block.neighbours, block.weights[:, :, 0], strict=True):
        np.add.at(table, (np.arange(len(near)), near), weights)
    return table


def models():
    yield random_model(100, grid_edges(10, 10))
    yield random_model(400, grid_edges(20, 20))
    yield random_model(12, complete_edges(12))
    yield random_model(12, random_edges(12, 30, 5))
    yield random_model(300, random_edges(300, 900, 3))
    yield random_model(3, np.zeros((0, 2), dtype=np.int64))


@pytest.mark.parametrize("model", list(models()))
@pytest.mark.parametrize("order", ["chromatic", "raster"])
def test_sweep_tables_hold_the_model(model, order):
    plan, rows = planned(model, order)
    n = model.num_variables
    assert sorted(plan.order.tolist()) == list(range(n))
    W = model.dense()[np.ix_(plan.order, plan.order)]
    low = 0
    sweep = sweep_tables(model, plan, rows)
    for block in blocks_of(sweep):
        high = low + block.biases.size
        assert np.array_equal(block.biases, model.biases[plan.order[low:high]])
        assert np.allclose(block_weights(block, n), W[low:high])
        assert not W[low:high, low:high].any()
        low = high
    head = sum(block.biases.size for block in sweep.first)
    tail = n - sum(block.biases.size for block in sweep.last)
    assert not np.tril(W)[:head].any()
    assert not np.triu(W)[tail:].any()


@pytest.mark.parametrize("model", list(models()))
@pytest.mark.parametrize("order", ["chromatic", "raster"])
def test_scan_tables_hold_the_model(model, order):
    plan, rows = planned(model, order)
    scan = scan_tables(model, plan, rows)
    valid = scan.valid > 0
    assert sorted(scan.rows[valid]) == list(range(model.num_variables))
    assert (scan.rows == np.where(valid, scan.rows, scan.rows[:, :1])).all()
    assert scan.valid.size <= 2 * model.num_variables
    W = dense_rows(rows, 0, model.num_variables)
    if is_dense(rows):
        assert np.array_equal(scan.weights, W)
        return
    for i in range(model.num_variables):
        entries = scan.start[i] + scan.window[scan.window < scan.degree[i]]
        row = np.zeros(model.num_variables)
        row[scan.columns[entries]] = scan.weights[entries]
        assert np.array_equal(row, W[i])


def test_groups_are_refused():
    model = PairwiseModel.from_edges(np.zeros(3), [], [], groups=[(0, 1)])
    with pytest.raises(UnsupportedError, match=r'model_form = "categorical" gets variables of K states'):
        layout(model, "chromatic")
