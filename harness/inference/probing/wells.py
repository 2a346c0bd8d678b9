"""What the well weighs that a product law stands in: annealed importance sampling from that law to the model.

Draws of q(x) = Π_v q_v(x_v) are swept at q^(1-β) p*^β while β rises from 0 to 1. The mean of their weights is Z
whatever q is, but draws do not leave the well in which q lies, so that it is what the well has; but for chance it is no
more than Z.

Neal, "Annealed importance sampling", Statistics and Computing 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import Section, TableSweep
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.gibbs.host_arrays import HostArrays

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

STEPS = 16
"""In which β rises, if it is not said: steps within a well are short ones."""


class _Tilted(TableBath):
    """Sweeps under p*^β times powers of a product law, (N, K) with 1 for states that are none."""

    def __init__(self, tilt: FloatArray) -> None:
        super().__init__(HostArrays())
        self._tilt = tilt

    def choose(self, section: Section, b: Any, weights: Any, x: Any, u: Any) -> tuple[Any, Any]:
        tilt = self._tilt[section.rows[b], : weights.shape[0]]
        return super().choose(section, b, weights * tilt.T[:, :, None], x, u)


def annealed(
    flat: FactorTables, sweep: TableSweep, law: FloatArray, draws: int, rng: np.random.Generator, steps: int = STEPS
) -> tuple[FloatArray, IntArray]:
    """Log weights (C,), of which none allows for hard zeros before the last, and the states (N, C) they are of.

    Args:
        flat: the model.
        sweep: of it.
        law: (S,) positive probabilities of all states, variable by variable.
        draws: C.
        rng: of draws and sweeps.
        steps: in which β rises.
    """
    logs = _padded(flat.cardinalities, np.log(law))
    upto = np.cumsum(np.exp(logs), axis=1)
    u = rng.random((len(logs), draws)) * upto[:, -1:]
    x = (u[:, None, :] >= upto[:, :-1, None]).sum(axis=1).astype(np.int32)
    plain, log_w = TableBath(HostArrays()), np.zeros(draws)
    below = np.nextafter(1, 0)  # where hard zeros are soft
    for step in range(1, steps + 1):
        log_q = np.take_along_axis(logs, x, axis=1).sum(axis=0)
        soft = plain.log_weights(sweep.entries, x, floored=True)
        log_w += (soft - log_q) / steps
        if step < steps:
            beta = step / steps
            tilted = _Tilted(np.exp((1 - beta) * np.where(np.isfinite(logs), logs, 0.0)))
            x = np.asarray(tilted.sweep(rng, sweep, x, np.full(draws, min(beta, below))))
    log_w += plain.log_weights(sweep.entries, x) - soft
    return log_w + flat.log_constant, x.astype(np.int64)


def _padded(sizes: IntArray, values: FloatArray) -> FloatArray:
    """(N, K) of values (S,), with -inf for states that are none."""
    found = np.full((len(sizes), int(sizes.max())), -np.inf)
    found[np.arange(found.shape[1]) < sizes[:, None]] = values
    return found
