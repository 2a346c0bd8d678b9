"""Graphs with most of the edges they could have take other ways through the same plans; the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs import colouring
from spinbench.mathematics.graphs.rows import (
    Rows,
    SquareRows,
    compressed_rows,
    dense_rows,
    entries_of,
    is_dense,
    reach_outside,
)
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel, generators, lattices


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


@pytest.mark.parametrize("scan", ["chromatic", "raster", "random"])
@pytest.mark.parametrize("model", [generators.grid(4, 5, seed=0), generators.sherrington_kirkpatrick(9, seed=1)])
def test_no_single_change_raises_the_weight(model: PairwiseModel, scan: str) -> None:
    tables = Gibbs(scan=scan).plan(model)  # type: ignore[arg-type]
    state = by_variable(tables.order, tables.mode)  # type: ignore[union-attr]
    others = np.abs(state - np.eye(len(state)))
    assert (model.log_weight(others) <= model.log_weight(state)).all()
