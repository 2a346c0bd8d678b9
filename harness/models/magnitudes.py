"""How large finite weights may be before rounding swallows the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spinbench.errors import UnsupportedError
from spinbench.models import Model, PairwiseModel
from spinbench.models.checks import largest

LARGEST: Mapping[str, float] = {"float32": 1e5, "float64": 1e12}
"""Finite |log weight| by precision, beside which sums keep two decimals of the others (three and a half in float64)."""


def check_range(method: str, model: Model, precision: str) -> None:
    """Refuses finite weights beside which rounding swallows the others.

    Args:
        method: for the message.
        model: as it was given.
        precision: "float32" or "float64".

    Raises:
        UnsupportedError: a finite |log weight| is larger than `LARGEST`.
    """
    if isinstance(model, PairwiseModel):
        parts: tuple[npt.NDArray[np.float64], ...] = (model.biases, model.couplings)
    else:
        parts = (model.flat.logs,)
    size = max(map(largest, parts), default=0.0)
    if size > LARGEST[precision]:
        raise UnsupportedError(
            f"{method}: {model.name} has a finite log weight of size {size:.3g}, beside which rounding swallows the "
            f"others; up to {LARGEST[precision]:g} is allowed in {precision}, exact takes any, and what must not be "
            "is written as a weight of 0 or as evidence"
        )
