"""Models of binary pairs in the ±1 form, σ = 2s - 1, as most libraries of Ising models take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]


class Spins(NamedTuple):
    """log p* = h·σ + Σ J_ij σ_i σ_j + constant.

    Attributes:
        h: (N,) fields; edges: (E, 2) integers; J: (E,) couplings.
        constant: what the form leaves over.
    """

    h: FloatArray
    edges: npt.NDArray[np.int64]
    J: FloatArray
    constant: float


def refusal(library: str, model: Model) -> str:
    """Why a library of binary pairs does not take the model; empty: it does."""
    if isinstance(model, PairwiseModel):
        if model.groups:
            return f"{library} takes binary variables in pairs; {model.name} has 1-of-K groups"
        return ""
    pairs = all(len(factor.scope) <= 2 for factor in model.factors)
    if set(model.cardinalities) <= {2} and pairs and not model.has_zeros:
        return ""
    return f"{library} takes binary variables in pairs without hard zeros, which {model.name} is not"


def spins(model: PairwiseModel, order: np.ndarray | None = None) -> Spins:
    """The form, its variables renumbered so that `order[k]` of the model is its k-th."""
    n = model.num_variables
    order = np.arange(n) if order is None else np.asarray(order)
    place = np.argsort(order)
    J = model.couplings / 4
    first, second = model.edges[:, 0], model.edges[:, 1]
    h = model.biases / 2 + np.bincount(first, J, minlength=n) + np.bincount(second, J, minlength=n)
    constant = float(model.biases.sum() / 2 + J.sum() + model.log_constant)
    return Spins(h[order], place[model.edges].reshape(-1, 2), J, constant)
