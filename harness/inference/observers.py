"""When a run is looked at, a few steps, evenly spaced, whatever its length; and whether its error is small enough."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Engine, Estimate, State, Trace
from spinbench.api.burn_in import Climb
from spinbench.api.kernel import LookingKernel
from spinbench.inference.budget import Budget
from spinbench.mathematics.claims import FEWEST_SAMPLES

# Time between looks over the time of one: looks take a tenth of a run, and the standard error of log Z falls with the
# square root of its length.
LOOK_INTERVAL_RATIO = 10
# Smallest number of looks of a run that has as many samples.
MIN_LOOKS = 8
# Steps between the first looks if the length of the run is not known.
FIRST_INTERVAL = 20
# Cost of a look in steps: of kernels; of compiled programs, call included; of programs over NumPy arrays, whose steps
# are slow.
LOOK_STEPS, COMPILED_LOOK_STEPS, PROGRAM_LOOK_STEPS = 6, 12, 3
# Further cost of a kernel's look in single-variable updates (1 ns with `gibbs` on numba): in a call of its own, and
# within a call of steps.
CALL_UPDATES, WITHIN_UPDATES = 30_000, 2_000
# Largest number of states (variables times chains) that are copied within a call for looks at its end.
MAX_STATES = 2**20
# Largest number of values that looks store; beyond it every other look is dropped and looks become half as frequent.
MAX_NUMBERS = 2**20
# Largest number of values that stepping stones store; beyond it every other sweep is dropped and climbs become half as
# frequent.
MAX_SLOPES = 2**20
# Share of a run's steps for repeated climbs of the stepping stones.
CLIMBING = 0.05
# Distance between the seeds of repeated climbs.
CLIMB_SEEDS = 1 << 48
# Growth of the number of samples between tests whether a tolerance is reached, at least and at most.
SOONER, LATER = 1.2, 2.0


class Snapshots:
    """Takes the looks of one run, evenly spaced: a fixed share of its time, so that what rests on them gets better for
    as long as it goes on. Where chains have climbed to the model, others do so again for as large a share.

    Args:
        budget: of the run, whose length is known where it is in samples without a tolerance.
        engine, state: of the run.
        start: (N, C) states to start from.
        seed: of the run.
        trace: of the warm-up. Where chains have climbed, slopes are looked at, which rungs below need.

    Attributes:
        next: step after which to look again.
    """

    def __init__(
        self, budget: Budget, engine: Engine, state: State, start: np.ndarray, seed: int, trace: Trace
    ) -> None:
        self._min_looks: int = getattr(trace.digest, "min_looks", MIN_LOOKS)
        look_steps = 0
        if hasattr(engine, "look_steps") and trace.climb is None:
            look_steps = engine.look_steps(state)
        self._surely_looks = look_steps > 0
        # to record states at chosen steps, the engine has to be a kernel
        self._kernel = engine if look_steps and isinstance(engine, LookingKernel) else None
        if look_steps:
            cost = look_steps + WITHIN_UPDATES / max(start.size, 1)
        elif (compiles := getattr(engine, "compiles", None)) is None:
            cost = LOOK_STEPS + CALL_UPDATES / max(start.size, 1)
        else:
            cost = COMPILED_LOOK_STEPS if compiles else PROGRAM_LOOK_STEPS
        cost += getattr(trace.digest, "look_steps", 0)
        self._long_interval = self._every = math.ceil(LOOK_INTERVAL_RATIO * cost)
        if budget.samples is None or budget.until:
            while self._every >= 2 * FIRST_INTERVAL:
                self._every //= 2
        if budget.samples is not None:
            self._every = max(1, min(budget.samples // self._min_looks, self._every))
        self.next: float = self._every
        self._start, self._seed, self._climbs, self._climbed = start, seed, 0, 0

    def advance(
        self, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, dict[str, np.ndarray], int]:
        """As of an `Engine`, as far as to the next look that is not made on the way; and how many steps that were."""
        first = steps
        if trace.looks or self._surely_looks:
            first = int(self.next) - trace.samples
        if first > steps or self._kernel is None:
            count = min(first, steps)
            return *engine.advance(state, count), count
        count = min(steps, first + max(MAX_STATES // self._start.size - 1, 0) * self._every)
        state, statistics, looks = self._kernel.advance_and_look(state, count, first, self._every)
        for values in zip(*looks.values(), strict=True):
            trace.looks.append(dict(zip(looks, values, strict=True)))
        self._thin(trace, trace.samples + count)
        return state, statistics, count

    def take(self, engine: Engine, state: State, trace: Trace) -> None:
        """Look, and say when to look again: never where there is nothing to see."""
        statistics = engine.look(state) if trace.climb is None else engine.slope(state)
        if not statistics:
            self.next = math.inf
            return
        trace.looks.append({name: np.array(values, dtype=np.float64) for name, values in statistics.items()})
        self._thin(trace, trace.samples)
        while trace.climb is not None and 0 < self._climbed + trace.climb.steps <= CLIMBING * trace.samples:
            self._climb_again(engine, trace, trace.climb)

    def _thin(self, trace: Trace, samples: int) -> None:
        """Every other look goes, and they are taken half as often, where they are too many after so many samples."""
        numbers, min_looks = 1, self._min_looks
        for values in trace.looks[0].values():
            numbers += values.size
        max_looks = max(MAX_NUMBERS // numbers, 2 * min_looks)
        while len(trace.looks) > (max_looks if 2 * self._every > self._long_interval else 2 * min_looks):
            del trace.looks[::2]
            self._every *= 2
        if trace.digest is not None and 2 * self._every > self._long_interval:
            trace.digest = trace.digest.digest(trace.looks)
        self.next = samples // self._every * self._every + self._every

    def _climb_again(self, engine: Engine, trace: Trace, climb: Climb) -> None:
        """Other chains, with random numbers of their own."""
        self._climbs += 1
        other = engine.init(self._seed + self._climbs * CLIMB_SEEDS, self._start)
        slopes = engine.temper(other, climb.betas, climb.sweeps)[1][climb.burn_in :]
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

    Attributes:
        next: samples after which to ask.
    """

    def __init__(self, budget: Budget) -> None:
        self._tolerance = budget.until
        self.next = math.inf if budget.until is None else FEWEST_SAMPLES

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
