"""Graphs with most of the edges they could have take other ways through the same plans; the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs import colouring, compressed, modes
from spinbench.mathematics.graphs.rows import compressed_rows, dense_rows, rows_of
from spinbench.mathematics.graphs.sweep_layouts import chosen_tables, layout, units_of
from spinbench.models import generators, lattices


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_rows_of_a_dense_graph_are_those_of_a_sparse_one(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    edges = lattices.complete_edges(40)
    first, second = rng.permutation(40)[edges[rng.random(len(edges)) < share]].T
    monkeypatch.setattr(compressed, "AT_ONCE", 100)
    looked_through = compressed.compressed(40, first, second)
    values = rng.standard_normal(len(first))
    with_values = compressed.compressed_values(40, first, second, values)
    monkeypatch.setattr(compressed, "FEW_HOLES", 0)
    start, columns, numbers = compressed.compressed(40, first, second)
    for found, expected in zip(looked_through, (start, columns, numbers), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(with_values, (start, columns, values[numbers]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_rows_of_a_matrix_are_those_it_was_made_of() -> None:
    model = generators.complete(30, seed=1)
    rows = compressed_rows(model, np.random.default_rng(0).permutation(30))
    for found, expected in zip(rows_of(dense_rows(rows, 0, 30)), rows, strict=True):
        np.testing.assert_array_equal(found, expected)


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
    units = units_of(model)
    plan = layout(model, units, "chromatic")
    tables = chosen_tables(model, units, plan, compressed_rows(model, plan.order))
    for seed, temperature in enumerate((0.0, 0.3, 3.0)):
        start = np.random.default_rng(seed).integers(0, 2, size=(60, 1)).astype(np.float64)
        kept, anew = start.copy(), start.copy()
        rng = np.random.default_rng(seed)
        modes._sweep(tables, kept, rng, temperature)
        uniforms = 2 * np.random.default_rng(seed).random(60) - 1
        for i in range(60):
            pull = tables.biases[i] + tables.weights[i] @ anew[:, 0]
            anew[i] = pull > 0 if temperature == 0 else uniforms[i] < np.tanh(pull / (2 * temperature))
        np.testing.assert_array_equal(kept, anew)
        assert (kept != start).any()
