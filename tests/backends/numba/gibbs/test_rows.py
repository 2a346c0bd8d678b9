"""The order of a row's entries: those of later rows first."""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.form import make_flat
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import generators


def test_later_rows_come_first() -> None:
    model, rng = generators.regular_glass(60, 8, 0.5, "gaussian", 0.3, seed=1), np.random.default_rng(0)
    order, mode = rng.permutation(60), rng.integers(0, 2, 60)
    rows = compressed_rows(model, order)
    tables = Gibbs(log_z="none").plan(model)._replace(order=order, mode=mode)
    flat = make_flat(model, tables, rows, np.dtype(np.float64))
    for i, (low, high) in enumerate(zip(rows.start[:-1], rows.start[1:], strict=True)):
        near, own = rows.columns[low:high], rows.weights[low:high]
        np.testing.assert_array_equal(flat.columns[low:high], np.concatenate([near[near > i], near[near < i]]))
        np.testing.assert_array_equal(flat.weights[low:high], np.concatenate([own[near > i], own[near < i]]))
        assert flat.later[i] - low == (near > i).sum()
        assert np.isclose(flat.forced[i] - flat.biases[i], (own * mode[near])[near < i].sum())
    assert (flat.later > rows.start[:-1]).any()
    assert (flat.later < rows.start[1:]).any()
