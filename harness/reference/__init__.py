"""Exact answers: log Z, all marginals and independent samples of models that are narrow or special enough.

The solvers of this floor are NumPy and Python; `spinbench.inference.answers` has the same questions answered with
compiled code where that pays.
"""

from __future__ import annotations

from spinbench.reference.answer import Cost, ExactAnswer
from spinbench.reference.answering import sample, solve
from spinbench.reference.joint_tables import pairs
from spinbench.reference.solvers import NUMPY_SOLVERS, Solvers, methods

METHODS: tuple[str, ...]
"""What `solve(method=…)` takes: our own solvers, and those of `spinbench.solvers`."""

__all__ = [
    "METHODS",
    "NUMPY_SOLVERS",
    "Cost",
    "ExactAnswer",
    "Solvers",
    "pairs",
    "sample",
    "solve",
]


def __getattr__(name: str) -> tuple[str, ...]:
    # Read on access: searching for plugins takes longer than solving a small model.
    if name == "METHODS":
        return methods()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
