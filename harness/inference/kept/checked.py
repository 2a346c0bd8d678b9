"""States that an engine hands over are states of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import InvalidResultError
from spinbench.models import Model


def checked_states(given: Any, model: Model, who: str) -> npt.NDArray[np.int64]:
    """(N, C) states of chains as integers.

    Args:
        given: what `Engine.states` gave: integers or whole numbers.
        model: whose states they are.
        who: method and backend, for the message.

    Raises:
        InvalidResultError: another shape or type, or a number that is no state of its variable.
    """
    n = len(model.cardinalities)
    try:
        states = np.asarray(given)
    except (TypeError, ValueError):
        raise InvalidResultError(f"{who} handed over states that are no array; ({n}, C) integers are needed") from None
    if states.ndim != 2 or len(states) != n or states.dtype.kind not in "biuf":
        raise InvalidResultError(
            f"{who} handed over states of shape {states.shape} and type {states.dtype}; ({n}, C) integers are needed"
        )
    most = np.array(model.cardinalities)[:, None] - 1
    known = (states >= 0) & (states <= most)
    if states.dtype.kind == "f":
        known &= states == np.floor(states)
    if not known.all():
        variable, chain = np.argwhere(~known)[0]
        raise InvalidResultError(
            f"{who} handed over the state {states[variable, chain]:g} of variable {variable}; "
            f"0 to {most[variable, 0]} are its states"
        )
    return states.astype(np.int64)
