"""When a run is looked at, a few steps, evenly spaced, whatever its length; and whether its error is small enough."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Engine, Estimate, State
from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace
from spinbench.inference.budget import Budget
from spinbench.mathematics.claims import FEWEST_SAMPLES

EVERY = 20
"""Steps between the first looks."""
MIN_LOOKS, FEW_LOOKS = 8, 256
"""Looks that a run of a few samples takes all the same, and a longer one, whatever they cost."""
STEPS, CALLS = 60, 500_000
"""Steps, and updates of a variable, between looks of a long run, of which they take a tenth: a look takes as long as
six to eight steps, and with the calls around it some 50 µs more, measured with `gibbs` on numba, 1 ns an update."""
MAX_NUMBERS = 2**18
"""That looks keep; beyond, every other one goes and they are taken half as often."""
MAX_SLOPES = 2**20
"""Numbers that climbs keep; beyond, every other sweep goes, and chains climb half as often."""
CLIMBING = 0.05
"""Share of a run's steps that chains spend on climbing anew."""
CLIMB_SEEDS = 1 << 48
"""Between the seeds of chains that climb."""
SOONER, LATER = 1.2, 2.0
"""Times as many samples as before, from one question whether a tolerance is reached to the next."""


class Snapshots:
    """Takes the looks of one run, evenly spaced: a fixed share of its time, so that what rests on them gets better for
    as long as it goes on. Where chains have climbed to the model, others do so again for as large a share.

    Args:
        budget: of the run, whose length is known where it is in samples without a tolerance.
        start: (N, C) states to start from.
        seed: of the run.

    Attributes:
        next: step after which to look again.
    """

    def __init__(self, budget: Budget, start: np.ndarray, seed: int) -> None:
        self._long_interval = STEPS + CALLS // max(start.size, 1)
        self._every = EVERY
        if budget.samples is not None:
            known = 0 if budget.until else budget.samples // FEW_LOOKS
            self._every = max(1, min(budget.samples // MIN_LOOKS, max(EVERY, min(known, self._long_interval))))
        self.next: float = self._every
        self._start, self._seed, self._climbs, self._climbed = start, seed, 0, 0

    def are_due(self, trace: Trace) -> bool:
        """Whether the steps that ended just now are some to look at."""
        return trace.samples >= self.next

    def take(self, engine: Engine, state: State, trace: Trace) -> None:
        """Look, and say when to look again: never where there is nothing to see."""
        seen = engine.look(state) if trace.climb is None else engine.slopes(state)
        if not seen:
            self.next = math.inf
            return
        trace.looks.append({name: np.array(values, dtype=np.float64) for name, values in seen.items()})
        numbers = 1
        for values in trace.looks[0].values():
            numbers += values.size
        most = 2 * FEW_LOOKS if self._every < self._long_interval else max(MAX_NUMBERS // numbers, 2 * FEW_LOOKS)
        if len(trace.looks) > most:
            del trace.looks[::2]
            self._every *= 2
        self.next = trace.samples // self._every * self._every + self._every
        if trace.climb is not None and 0 < self._climbed + trace.climb.steps <= CLIMBING * trace.samples:
            self._climb_again(engine, trace, trace.climb)

    def _climb_again(self, engine: Engine, trace: Trace, climb: Climb) -> None:
        """Other chains, with random numbers of their own."""
        self._climbs += 1
        other = engine.init(self._seed + self._climbs * CLIMB_SEEDS, self._start)
        slopes = engine.climb(other, climb.betas, climb.sweeps)[1][climb.burn_in :]
        whole = np.concatenate([climb.slopes, slopes])
        self._climbed += climb.steps
        if whole.size > MAX_SLOPES:
            whole, self._climbed = whole[::2], 2 * self._climbed
        trace.climb = climb._replace(slopes=whole)


class StoppingRule:
    """When a run with a tolerance is asked for its error: at first, and then where that should be small enough.

    Errors are themselves estimates, and a run that is asked often ends where its own is too small by chance. So it is
    asked a few times, as many as it takes to double its samples. In the limit of a small tolerance, a claim whose error
    is known ever better holds as if the length had been fixed: Glynn and Whitt, "The asymptotic validity of sequential
    stopping rules for stochastic simulations", Annals of Applied Probability 1992.
    """

    def __init__(self, budget: Budget) -> None:
        self._tolerance = budget.until
        self.next = math.inf if budget.until is None else FEWEST_SAMPLES

    def is_due(self, trace: Trace) -> bool:
        """Whether to ask now."""
        return trace.samples >= self.next

    def is_reached(self, estimate: Estimate, samples: int) -> bool:
        """Whether its error is small enough; else it is asked again when it may be, as errors fall with √samples.

        Args:
            estimate: from the whole trace: few batches leave so much to chance in R-hat that claims do not fall.
            samples: of the trace.
        """
        assert self._tolerance is not None
        ratio = self._tolerance.error(estimate) / self._tolerance.below
        self.next = math.ceil(samples * min(max(ratio**2, SOONER), LATER))
        return ratio < 1
