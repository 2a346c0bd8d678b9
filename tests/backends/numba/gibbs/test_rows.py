"""The order of a row's entries, which NumPy and compiled code make alike."""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs.tables import _later_first, few_later_first
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.models import generators


def test_numpy_and_compiled_code_put_later_rows_first_to_the_last_bit() -> None:
    model, rng = generators.regular_glass(60, 8, 0.5, "gaussian", 0.3, seed=1), np.random.default_rng(0)
    rows = compressed_rows(model, rng.permutation(60))
    mode = rng.integers(0, 2, 60)

    def made(put: object) -> list[np.ndarray]:
        entries = len(rows.columns)
        out = [np.empty(entries, np.uint32), np.empty(entries), np.empty(60, np.int64), np.empty(60)]
        put(rows.start, rows.columns, rows.weights, mode, *out)  # type: ignore[operator]
        return out

    found = made(few_later_first)
    for own, compiled in zip(found, made(_later_first), strict=True):
        np.testing.assert_array_equal(own, compiled)
    assert (found[2] > rows.start[:-1]).any()
    assert (found[2] < rows.start[1:]).any()
