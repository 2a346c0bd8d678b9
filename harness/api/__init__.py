"""What plugins import: the contracts of methods, backends and kernels."""

from __future__ import annotations

from spinbench.api.contracts import (
    Array,
    Backend,
    Engine,
    Estimate,
    Kernel,
    Key,
    LogZKind,
    Method,
    Precision,
    Program,
    Reduction,
    State,
    Tables,
    Tier,
)

__all__ = [
    "Array",
    "Backend",
    "Engine",
    "Estimate",
    "Kernel",
    "Key",
    "LogZKind",
    "Method",
    "Precision",
    "Program",
    "Reduction",
    "State",
    "Tables",
    "Tier",
]
