"""When a run is looked at, a few steps, evenly spaced, whatever its length; and whether its error is small enough."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Engine, Estimate, State
from spinbench.api.trace import Trace
from spinbench.inference.budget import Budget
from spinbench.mathematics.claims import FEWEST_SAMPLES

EVERY = 20
"""Steps between looks: a look costs about three of them."""
MIN_LOOKS = 8
"""Looks that a run of a few samples takes all the same."""
MAX_LOOKS = 512
"""Looks that are kept; beyond, every other one goes and they are taken half as often."""
SOONER, LATER = 1.2, 2.0
"""Times as many samples as before, from one question whether a tolerance is reached to the next."""


class Snapshots:
    """Takes the looks of one run.

    Args:
        samples: of the budget; None where it is one in seconds.
    """

    def __init__(self, samples: int | None) -> None:
        self._every = EVERY if samples is None else max(1, min(EVERY, samples // MIN_LOOKS))
        self._next: float = self._every

    def are_due(self, trace: Trace) -> bool:
        """Whether the batch that ended just now is one to look at."""
        return trace.samples >= self._next

    def take(self, engine: Engine, state: State, trace: Trace) -> None:
        """Look, and say when to look again: never where there is nothing to see."""
        seen = engine.look(state) if trace.climb is None else engine.slopes(state)
        if not seen:
            self._next = math.inf
            return
        trace.looks.append({name: np.array(values, dtype=np.float64) for name, values in seen.items()})
        if len(trace.looks) > MAX_LOOKS:
            del trace.looks[::2]
            self._every *= 2
        self._next = trace.samples // self._every * self._every + self._every


class StoppingRule:
    """When a run with a tolerance is asked for its error: at first, and then where that should be small enough.

    Errors are themselves estimates, and a run that is asked often ends where its own is too small by chance. So it is
    asked a few times, as many as it takes to double its samples. In the limit of a small tolerance, a claim whose error
    is known ever better holds as if the length had been fixed: Glynn and Whitt, "The asymptotic validity of sequential
    stopping rules for stochastic simulations", Annals of Applied Probability 1992.
    """

    def __init__(self, budget: Budget) -> None:
        self._tolerance = budget.until
        self._next = math.inf if budget.until is None else FEWEST_SAMPLES

    def is_due(self, trace: Trace) -> bool:
        """Whether to ask now."""
        return trace.samples >= self._next

    def is_reached(self, estimate: Estimate, samples: int) -> bool:
        """Whether its error is small enough; else it is asked again when it may be, as errors fall with √samples.

        Args:
            estimate: from the whole trace: few batches leave so much to chance in R-hat that claims do not fall.
            samples: of the trace.
        """
        assert self._tolerance is not None
        ratio = self._tolerance.error(estimate) / self._tolerance.below
        self._next = math.ceil(samples * min(max(ratio**2, SOONER), LATER))
        return ratio < 1
