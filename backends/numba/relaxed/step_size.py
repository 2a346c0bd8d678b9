"""Dual averaging of DHMC's step size in compiled code; its state is (5,) float64."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.units import KERNEL
from spinbench.backends.numba.simd.functions import smaller
from spinbench.methods.relaxed.dhmc_tables import GAMMA, KAPPA, T0

STEP, CENTRE, ERROR, LOG_AVERAGE, COUNT = range(5)
"""Entries of the state of dual averaging, see `spinbench.methods.relaxed.dhmc_program.StepSize`."""


def restart(step: float) -> npt.NDArray[Any]:
    """From this step size on."""
    return np.array([step, np.log(10 * step), 0.0, np.log(step), 0.0])


@nb.njit(**KERNEL)
def adapt(dual, adapts, miss, limit):
    """One step of dual averaging (Hoffman and Gelman 2014, eq. 6)."""
    dual[COUNT] += 1.0
    if adapts:
        count = dual[COUNT]
        weight = 1.0 / (count + T0)
        dual[ERROR] = (1.0 - weight) * dual[ERROR] + weight * miss
        log_step = smaller(dual[CENTRE] - np.sqrt(count) / GAMMA * dual[ERROR], np.log(limit))
        trust = count**-KAPPA
        dual[LOG_AVERAGE] = trust * log_step + (1.0 - trust) * dual[LOG_AVERAGE]
        dual[STEP] = np.exp(log_step)
