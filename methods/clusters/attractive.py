"""Models whose couplings all become attractive when some variables are flipped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.errors import UnsupportedError
from spinbench.models import PairwiseModel


def flips(method: str, model: PairwiseModel) -> npt.NDArray[np.bool_]:
    """(N,) which variables to flip, so that every coupling is 0 or more.

    In the graph of (variable, flipped or not) a coupling joins what it favours; a model is frustrated where a variable
    is joined to its own flip.

    Raises:
        UnsupportedError: the model is frustrated.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = model.num_variables
    edges, across = model.edges[model.couplings != 0], model.couplings[model.couplings != 0] < 0
    ends = np.concatenate([edges[:, 0], edges[:, 0] + n])
    others = np.concatenate([edges[:, 1] + n * across, edges[:, 1] + n * ~across])
    graph = coo_array((np.ones(len(ends)), (ends, others)), shape=(2 * n, 2 * n))
    _, component = connected_components(graph, directed=False)
    if (frustrated := component[:n] == component[n:]).any():
        raise UnsupportedError(
            f"{method}: {model.name} is frustrated, at {int(frustrated.sum())} of {n} variables; couplings must become "
            "attractive when some variables are flipped"
        )
    return np.asarray(component[:n] > component[n:])


def flipped(model: PairwiseModel, flip: npt.NDArray[np.bool_]) -> PairwiseModel:
    """The model of s_i, or 1 - s_i where it is flipped, but for its constant."""
    sign = np.where(flip, -1.0, 1.0)
    ends, w = model.edges, model.couplings
    pull = np.bincount(ends[:, 0], w * flip[ends[:, 1]], model.num_variables)
    pull += np.bincount(ends[:, 1], w * flip[ends[:, 0]], model.num_variables)
    couplings = np.where(w != 0, w * sign[ends[:, 0]] * sign[ends[:, 1]], 0.0)
    return PairwiseModel.from_edges(sign * (model.biases + pull), ends, couplings, name=model.name)
