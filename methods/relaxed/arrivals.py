"""How long chains took to leave where they began, and what a run that came to such a place too seldom may have missed.

Chains of a relaxed sampler may spend all of a run in one well and none in another that holds a few per cent; nothing
in the run then tells how slow the way between them is. Its burn-in does: random starts are in both, and who left the
lighter one after t steps has a way back, which is taken once in t steps for as much as the well weighs.
"""

from __future__ import annotations

import math

import numpy as np

from spinbench.api.trace import Trace
from spinbench.mathematics.claims import MarginalClaims

APART = 4.0
"""Standard errors of the mean of chains from which they are not yet where the run finds them."""


def visits(trace: Trace, means: np.ndarray, claimed: MarginalClaims) -> float:
    """Independent draws at most: samples of all chains over the steps that the slowest took to leave; else infinite.

    Args:
        trace: of the run, with its `arrivals`.
        means: (N,) of what is watched.
        claimed: of these means, without such a limit.
    """
    room = 2 * claimed.errors
    nearest = np.clip(0.5, np.maximum(means - room, 0.0), np.minimum(means + room, 1.0))
    for arrival in reversed(trace.arrivals):
        chains = arrival.values.shape[-1]
        chance = np.sqrt(nearest * (1 - nearest) / chains)
        if (np.abs(arrival.values.mean(axis=-1) - means) > APART * chance + room).any():
            return float(trace.samples * chains / arrival.steps)
    return math.inf
