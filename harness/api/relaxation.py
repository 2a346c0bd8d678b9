"""The Gaussian integral trick for programs over continuous states, and estimators of log Z from their draws."""

from __future__ import annotations

from spinbench.mathematics.relaxation.density import EdgeFactor, Relaxation, Sites, relax
from spinbench.mathematics.relaxation.diagonal import checked_diagonal
from spinbench.mathematics.relaxation.estimators import LogZEstimates, gaussian, zero_state

__all__ = [
    "EdgeFactor",
    "LogZEstimates",
    "Relaxation",
    "Sites",
    "checked_diagonal",
    "gaussian",
    "relax",
    "zero_state",
]
