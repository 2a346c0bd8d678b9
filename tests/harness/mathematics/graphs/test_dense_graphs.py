"""Graphs with most of the edges they could have take other ways through the same plans; the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs import colouring, modes
from spinbench.mathematics.graphs.rows import (
    Rows,
    SquareRows,
    compressed_rows,
    dense_rows,
    entries_of,
    is_dense,
    reach_outside,
)
from spinbench.mathematics.graphs.sweep_layouts import by_variable, choose_tables, layout
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel, generators, lattices


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_rows_of_a_dense_graph_are_those_of_a_sparse_one(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    edges = lattices.complete_edges(40)
    first, second = rng.permutation(40)[edges[rng.random(len(edges)) < share]].T
    monkeypatch.setattr(colouring, "AT_ONCE", 100)
    looked_through = colouring.adjacency_rows(40, first, second)
    monkeypatch.setattr(colouring, "FEW_HOLES", 0)
    for found, expected in zip(looked_through, colouring.adjacency_rows(40, first, second), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_rows_of_a_table_are_compressed_rows(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    edges = lattices.complete_edges(30)
    edges = edges[rng.random(len(edges)) < share]
    model = PairwiseModel.from_edges(np.zeros(30), edges, rng.standard_normal(len(edges)))
    order = rng.permutation(30)
    monkeypatch.setattr(colouring, "BESIDE", 7)
    of_table = compressed_rows(model, order)
    monkeypatch.setattr(colouring, "FEW_HOLES", 0)
    rows = compressed_rows(model, order)
    assert isinstance(of_table, SquareRows)
    assert isinstance(rows, Rows)
    for name in Rows._fields:
        np.testing.assert_array_equal(getattr(of_table, name), getattr(rows, name))
    np.testing.assert_array_equal(of_table.table, model.dense()[np.ix_(order, order)])
    assert is_dense(of_table)
    for low, high in ((0, 30), (0, 9), (9, 21), (21, 30), (4, 4)):
        np.testing.assert_array_equal(dense_rows(of_table, low, high), dense_rows(rows, low, high))
        np.testing.assert_array_equal(entries_of(of_table, low, high), entries_of(rows, low, high))
        assert reach_outside(of_table, low, high) == reach_outside(rows, low, high)


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_a_complete_graph_is_coloured_as_any_other(n: int) -> None:
    edges = lattices.complete_edges(n)
    graph = colouring.Adjacency.of(n, edges)
    shuffled = np.random.default_rng(0).permutation(n)
    order = np.lexsort((shuffled, np.arange(n) > 0))
    np.testing.assert_array_equal(colouring.colouring(n, edges), colouring._greedy_sequential(graph, order))


def test_colours_of_many_edges_are_those_of_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = lattices.complete_edges(60)[::3]
    one_by_one = colouring.colouring(60, edges)
    monkeypatch.setattr(colouring, "SEQUENTIAL", 0)
    np.testing.assert_array_equal(colouring.colouring(60, edges), one_by_one)
    monkeypatch.setattr(colouring, "MANY_EDGES", 1)
    np.testing.assert_array_equal(colouring.colouring(60, edges), one_by_one)


@pytest.mark.parametrize("ahead", [1, 7, 128])
def test_fields_that_are_kept_tell_the_same_as_those_found_anew(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "AHEAD", ahead)
    model = generators.sherrington_kirkpatrick(60, field=0.1, seed=2)
    plan = layout(model, "chromatic")
    tables = choose_tables(model, plan, compressed_rows(model, plan.order))
    for seed, temperature in enumerate((0.0, 0.3, 3.0)):
        start = np.random.default_rng(seed).integers(0, 2, size=(60, 1)).astype(np.float64)
        kept, anew = start.copy(), start.copy()
        rng = np.random.default_rng(seed)
        fields = modes.running_fields(tables, kept)
        modes._sweep(tables, kept, fields, rng, temperature)
        np.testing.assert_allclose(fields, tables.biases + tables.weights @ kept[:, 0], atol=1e-12)
        uniforms = 2 * np.random.default_rng(seed).random(60) - 1
        for i in range(60):
            pull = tables.biases[i] + tables.weights[i] @ anew[:, 0]
            anew[i] = pull > 0 if temperature == 0 else uniforms[i] < np.tanh(pull / (2 * temperature))
        np.testing.assert_array_equal(kept, anew)
        assert (kept != start).any()


@pytest.mark.parametrize("scan", ["chromatic", "raster", "random"])
@pytest.mark.parametrize("model", [generators.grid(4, 5, seed=0), generators.sherrington_kirkpatrick(9, seed=1)])
def test_no_single_change_raises_the_weight(model: PairwiseModel, scan: str) -> None:
    tables = Gibbs(scan=scan).plan(model)  # type: ignore[arg-type]
    state = by_variable(tables.order, tables.mode)  # type: ignore[union-attr]
    others = np.abs(state - np.eye(len(state)))
    assert (model.log_weight(others) <= model.log_weight(state)).all()


def test_what_was_found_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = generators.grid(4, 5, seed=0), []
    search = modes._search_mode
    monkeypatch.setattr(modes, "_search_mode", lambda *given: calls.append(1) or search(*given))
    first, second = Gibbs().plan(model).mode, Gibbs().plan(model).mode
    second[:] = 0.5  # a caller's own
    np.testing.assert_array_equal(first, Gibbs().plan(model).mode)
    assert len(calls) == 1
    Gibbs(scan="raster").plan(model)
    Gibbs().plan(generators.grid(4, 5, seed=0))
    assert len(calls) == 3
