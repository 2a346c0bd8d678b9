"""Names of types that the contracts share."""

from __future__ import annotations

from typing import Any, Literal

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
