"""Exact answers: log Z, all marginals and independent samples of models that are narrow or special enough.

The solvers of this floor are NumPy and Python; `spinbench.inference.answers` has the same questions answered with
compiled code where that pays.
"""

from __future__ import annotations

from spinbench.reference.answer import Cost, ExactAnswer
from spinbench.reference.answering import forney_log_z, sample, solve
from spinbench.reference.joint_tables import pairs
from spinbench.reference.solvers import METHODS, NUMPY_SOLVERS, Solvers

__all__ = [
    "METHODS",
    "NUMPY_SOLVERS",
    "Cost",
    "ExactAnswer",
    "Solvers",
    "forney_log_z",
    "pairs",
    "sample",
    "solve",
]
