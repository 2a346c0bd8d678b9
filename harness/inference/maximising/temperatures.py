"""Between which inverse temperatures a model is annealed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spinbench.models import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]

FROZEN = 100.0
"""By how much less likely than its best state a variable's others are in the end, by a small one of the differences."""
SMALL = 10.0
"""Per cent of the differences that are smaller: a few tiny ones would freeze all others at once."""


def hot_and_cold(model: Model) -> tuple[float, float]:
    """β at which no variable is held by its neighbours, and β at which nearly all stay: as dwave-samplers chooses them.

    Hot is where the variable that is held most would be flipped with probability 1/3; cold is 1 at least where there
    are hard zeros, which are soft below.
    """
    ranges, owners = _ranges(model)
    held = np.bincount(owners[1], ranges[owners[0]], minlength=1)
    if not held.max() > 0:
        return 1.0, 1.0
    hot = math.log(2.0) / float(held.max())
    cold = max(math.log(FROZEN) / float(np.percentile(ranges[ranges > 0], SMALL)), 2 * hot)
    zeros = not isinstance(model, PairwiseModel) and model.has_zeros
    return hot, max(cold, 1.0) if zeros else cold


def _ranges(model: Model) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """(F,) by how much each term can change the log weight, and (2, P) pairs of terms and variables."""
    if isinstance(model, PairwiseModel):
        n, e = model.num_variables, model.num_edges
        terms = np.concatenate([np.arange(n), np.repeat(np.arange(n, n + e), 2)])
        variables = np.concatenate([np.arange(n), model.edges.ravel()])
        return np.abs(np.concatenate([model.biases, model.couplings])), np.stack([terms, variables])
    ranges = [0.0, *(_range(factor.log_table) for factor in model.factors)]
    pairs = [(k + 1, v) for k, factor in enumerate(model.factors) for v in factor.scope]
    return np.array(ranges), np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _range(table: FloatArray) -> float:
    finite = table[np.isfinite(table)]
    return float(finite.max() - finite.min()) if finite.size else 0.0
