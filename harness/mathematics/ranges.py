"""How far conditional probabilities can be from what a run has seen of them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spinbench.mathematics.claims import expit
from spinbench.mathematics.statistics import FloatArray
from spinbench.models import PairwiseModel


@lru_cache(maxsize=4)
def conditional_range(model: PairwiseModel) -> tuple[FloatArray, FloatArray]:
    """(N,) the least and the largest p(s_i = 1 | rest) that any state of the others leaves, by interval arithmetic."""
    low, high = (model.biases + pull for pull in model.pulls)
    least, largest = expit(low), expit(high)
    for group in model.groups:
        members = list(group)
        least[members] = expit(low[members] - _of_others(high[members]))
        largest[members] = expit(high[members] - _of_others(low[members]))
    return least, largest


def _of_others(values: FloatArray) -> FloatArray:
    """(K,) log of the sum of the exponentials of all others: of those before and of those after."""
    end = np.full(1, -np.inf)
    before = np.concatenate([end, np.logaddexp.accumulate(values)[:-1]])
    after = np.concatenate([end, np.logaddexp.accumulate(values[::-1])[:-1]])[::-1]
    return np.asarray(np.logaddexp(before, after))
