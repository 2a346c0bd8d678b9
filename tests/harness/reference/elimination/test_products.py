"""The steps of elimination by matrix products."""

import numpy as np
import pytest

from spinbench.reference.elimination.products import sum_axes


@pytest.mark.parametrize("shape", [(2,) * 9, (2, 3, 9, 2, 12), (30, 2), ()])
def test_sums_over_axes_are_those_of_numpy(shape):
    rng = np.random.default_rng(1)
    table = rng.random(shape)
    for _ in range(10):
        axes = np.flatnonzero(rng.random(len(shape)) < 0.5).tolist()
        np.testing.assert_allclose(sum_axes(table, axes), table.sum(axis=tuple(axes)), rtol=1e-13)
