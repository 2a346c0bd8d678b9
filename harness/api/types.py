"""Names of types that the contracts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from spinbench.errors import BrokenPluginError

Precision = Literal["float32", "float64"]
LogZKind = Literal["estimate", "lower", "upper", "exact"]
Tier = Literal["native", "generic", "unsupported", "unavailable", "broken"]

Reduction = Literal["sum", "logsumexp", "last"]
"""How a statistic is combined over the steps of a batch: summed, summed in the log domain, or its value after
the last step (a thinned draw)."""

Array = Any
"""An array of some backend."""
State = Any
"""What a chain carries from step to step; a pytree of arrays, opaque to the harness."""
Tables = Any
"""What `Method.plan` prepared for a model: a NamedTuple of NumPy arrays (nested tuples allowed)."""
Key = Any
"""A functional random key of some backend."""


def check_reductions(reductions: Mapping[str, str]) -> None:
    """All are known: an unknown one would be computed as some other.

    Raises:
        BrokenPluginError: one is not.
    """
    allowed = get_args(Reduction)
    for name, reduction in reductions.items():
        if reduction not in allowed:
            raise BrokenPluginError(
                f"the method's reduction of {name!r} is {reduction!r}; {', '.join(map(repr, allowed))} are known"
            )
