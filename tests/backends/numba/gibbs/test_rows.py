"""The order of a row's entries: those of later rows first."""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.tables import _later_first
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.models import generators


def test_later_rows_come_first() -> None:
    model, rng = generators.regular_glass(60, 8, 0.5, "gaussian", 0.3, seed=1), np.random.default_rng(0)
    rows = compressed_rows(model, rng.permutation(60))
    mode = rng.integers(0, 2, 60)
    entries = len(rows.columns)
    columns, weights, later, pull = np.empty(entries, np.uint32), np.empty(entries), np.empty(60, int), np.empty(60)
    _later_first(rows.start, rows.columns, rows.weights, mode, columns, weights, later, pull)
    for i, (low, high) in enumerate(zip(rows.start[:-1], rows.start[1:], strict=True)):
        near, own = rows.columns[low:high], rows.weights[low:high]
        np.testing.assert_array_equal(columns[low:high], np.concatenate([near[near > i], near[near < i]]))
        np.testing.assert_array_equal(weights[low:high], np.concatenate([own[near > i], own[near < i]]))
        assert later[i] - low == (near > i).sum()
        assert np.isclose(pull[i], (own * mode[near])[near < i].sum())
    assert (later > rows.start[:-1]).any()
    assert (later < rows.start[1:]).any()
