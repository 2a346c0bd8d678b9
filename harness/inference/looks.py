"""When a run is looked at: a few steps, evenly spaced, whatever its length."""

from __future__ import annotations

import numpy as np

from spinbench.api import Engine, State
from spinbench.api.trace import Trace

EVERY = 20
"""Steps between looks: a look costs about three of them."""
FEWEST = 8
"""Looks that a run of a few samples takes all the same."""
MOST = 512
"""Looks that are kept; beyond, every other one goes and they are taken half as often."""


class Looks:
    """Takes the looks of one run.

    Args:
        samples: of the budget; None where it is one in seconds.
    """

    def __init__(self, samples: int | None) -> None:
        self._every = EVERY if samples is None else max(1, min(EVERY, samples // FEWEST))
        self._next = self._every
        self._nothing = False

    def due(self, trace: Trace) -> bool:
        """Whether the batch that ended just now is one to look at."""
        return not self._nothing and trace.samples >= self._next

    def take(self, engine: Engine, state: State, trace: Trace) -> None:
        """Look, and say when to look again."""
        seen = engine.look(state) if trace.climb is None else engine.slopes(state)
        self._nothing = not seen
        if self._nothing:
            return
        trace.looks.append({name: np.array(values, dtype=np.float64) for name, values in seen.items()})
        if len(trace.looks) > MOST:
            del trace.looks[::2]
            self._every *= 2
        self._next = trace.samples // self._every * self._every + self._every
