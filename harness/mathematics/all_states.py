"""Probabilities of all states of all variables, (S, …), variable by variable: however marginals lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.table_layouts import state_rows

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def marginals_of_all_states(values: FloatArray | list[FloatArray]) -> FloatArray:
    """Of an estimate's marginals."""
    if isinstance(values, list):
        return np.concatenate(values)
    p = np.asarray(values, dtype=np.float64)
    return np.asarray(np.stack([1 - p, p], axis=1).reshape(-1, *p.shape[1:]))


def by_variable(values: FloatArray | list[FloatArray]) -> list[FloatArray]:
    """(K_v,) of each variable."""
    if isinstance(values, list):
        return values
    return list(marginals_of_all_states(values).reshape(-1, 2))


def errors_of_all_states(values: FloatArray | list[FloatArray]) -> FloatArray:
    """Of what both states of a binary variable share: standard errors, ESS, R-hat."""
    if isinstance(values, list):
        return np.concatenate(values)
    return np.repeat(np.asarray(values, dtype=np.float64), 2, axis=0)


def names(marginals: FloatArray | list[FloatArray]) -> tuple[IntArray, IntArray]:
    """(variables, states), both (S,)."""
    sizes = np.array([2] * len(marginals) if isinstance(marginals, np.ndarray) else [len(p) for p in marginals])
    variables = np.repeat(np.arange(len(sizes)), sizes)
    return variables, np.arange(len(variables)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def of_reported(cardinalities: Sequence[int], p: FloatArray) -> FloatArray:
    """Of (R + 1, P) what a sweep reports, see `table_layouts.marginal_rows`."""
    sizes = np.array(cardinalities, dtype=np.int64)
    rows, signs = state_rows(sizes)
    every = (signs[:, None] < 1) + signs[:, None] * p[rows]
    return marginals_of_all_states(every) if (sizes == 2).all() else every
