"""What DHMC's plan hands to its program and its kernel, and the constants that both share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.relaxation.density import EdgeFactor, Sites

FloatArray = npt.NDArray[np.float64]

GAMMA, T0, KAPPA = 0.05, 10.0, 0.75
"""Dual averaging (Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 2014, section 3.2)."""
MAX_ANGLE = 1.5
"""Largest step of the rotating forms, in radians."""


class DHMCTables(NamedTuple):
    """What `DHMC.plan` prepares; which members are None depends on the form.

    Attributes:
        d: (N,) float64, the diagonal D.
        bias: (N,) float64, b = a - d/2.
        root: (N, N) float64 R with Q = RRᵀ: lower triangular, but B = VΛ^½ for the harmonium; None for sparse.
        precision: (N, N) float64, Q⁻¹; identity only.
        gram: (N, N) float64, Q; preconditioned only.
        edges: sparse only, for products with Q and draws of N(0, Q).
        sites: how 1-of-K groups are drawn; None for models without groups.
        first_step: () float64, the step size to start from, or the fixed one.
    """

    d: FloatArray
    bias: FloatArray
    root: FloatArray | None
    precision: FloatArray | None
    gram: FloatArray | None
    edges: EdgeFactor | None
    sites: Sites | None
    first_step: FloatArray
