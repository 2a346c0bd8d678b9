"""From any model to relabelled, contracted Forney models."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.api import ForneyModel, Model
from spinbench.errors import ModelError, SpinbenchError
from spinbench.mathematics.forney import contract
from spinbench.mathematics.graphs.factor_tables import links
from spinbench.models.forney import convert
from spinbench.models.forney.model import MAX_DEGREE
from spinbench.models.forney.modes import find_mode

# Largest number of edges whose states (4096) are enumerated, which is faster than annealing.
FEW_EDGES = 12
Labels = Literal["mode", "zero", "best", "greedy"]


def check_merge(name: str, merge: int) -> None:
    """Refuses degree limits that are neither 0 nor 2 to `MAX_DEGREE`.

    Raises:
        SpinbenchError: such a limit.
    """
    if isinstance(merge, bool) or merge not in (0, *range(2, MAX_DEGREE + 1)):
        raise SpinbenchError(f"{name}: merge={merge} was given; 0 (nothing) or 2 to {MAX_DEGREE} is allowed")


def seconds_of(model: Model | ForneyModel) -> float:
    """About how long `prepare` takes; `forney_form` takes two thirds of that. Nearly none from a Forney model."""
    if isinstance(model, ForneyModel):
        return 0.0
    return 4e-5 * (model.num_variables + links(model))


def forney_form(model: Model | ForneyModel, merge: int, seed: int) -> ForneyModel:
    """The contracted Forney model of `model`; errors as in `prepare`."""
    original = model if isinstance(model, ForneyModel) else convert.to_forney(model, seed)
    small = contract(original, merge, seed) if merge else original
    if small.has_zeros and small.num_edges <= FEW_EDGES and _log_weight_of_every_state(small).max() == -np.inf:
        raise ModelError(f"{small.name}: no state has positive weight, so Z = 0; check its zeros and its evidence")
    return small


def prepare(model: Model | ForneyModel, labels: Labels, merge: int, seed: int) -> tuple[ForneyModel, ...]:
    """Relabellings of one contracted model whose state of all zeros has positive weight, at least one.

    Args:
        model: any model of binary variables.
        labels: "mode", "zero", or both.
        merge: degree limit of the contraction; 0: none.
        seed: of the annealing.

    Raises:
        UnsupportedError: a node's degree is too large, or a variable is not binary.
        ModelError: Z = 0.
    """
    small = forney_form(model, merge, seed)
    if not small.num_edges:
        return (small,)
    zero = np.zeros(small.num_edges, dtype=np.int64)
    possible = bool(np.isfinite(small.log_weight(zero)))
    if labels == "zero" and possible:
        return (small,)
    mode = _mode(small, seed)
    relabelled = small.relabel(mode)
    if labels == "mode" or not possible or not mode.any():
        return (relabelled,)
    return (relabelled, small)


def _mode(model: ForneyModel, seed: int) -> npt.NDArray[np.int64]:
    """(E,) 0/1 of a state of high probability, of the highest where all can be looked at."""
    if model.num_edges <= FEW_EDGES:
        return np.asarray(int(_log_weight_of_every_state(model).argmax()) >> np.arange(model.num_edges) & 1)
    return find_mode(model, seed)


def _log_weight_of_every_state(model: ForneyModel) -> npt.NDArray[np.float64]:
    """(2**E,) of all states, the first edge in the last bit."""
    states = np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges) & 1
    return np.asarray(model.log_weight(states))
