"""When a run is looked at: a few steps, evenly spaced, whatever its length; when it is asked whether its error is small
enough; and how long it may be estimated from."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from spinbench.api import Engine, Estimate, State
from spinbench.api.trace import Trace
from spinbench.foundation import deadline
from spinbench.inference.budget import Budget, Tolerance
from spinbench.mathematics.claims import FEWEST_SAMPLES

EVERY = 20
"""Steps between looks: a look costs about three of them."""
FEWEST = 8
"""Looks that a run of a few samples takes all the same."""
MOST = 512
"""Looks that are kept; beyond, every other one goes and they are taken half as often."""
ESTIMATING = 0.25
"""Share of a budget's seconds that estimates may take beside them."""
BATCH, NUMBER = 2e-5, 2e-7
"""Seconds that a batch, and each number in it, adds to an estimate at least, as far as times of few batches tell."""
SOONER, LATER = 1.2, 2.0
"""Times as many samples as before, from one question whether a tolerance is reached to the next."""


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


class Clock:
    """Accumulates the time of the calls that count.

    Attributes:
        seconds: of the wall's clock.
        busy: of the CPUs, on which all threads of the process add up.
        last: of the wall, of the last call.
    """

    def __init__(self, seconds: float = 0.0, busy: float = 0.0) -> None:
        self.seconds, self.busy, self.last = seconds, busy, 0.0

    def __enter__(self) -> None:
        self._since, self._busy_since = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.last = time.perf_counter() - self._since
        self.seconds += self.last
        self.busy += time.process_time() - self._busy_since

    @property
    def waited(self) -> float:
        """Seconds in which nothing was computed: others had the machine, or a device was waited for."""
        return max(0.0, self.seconds - self.busy)

    @property
    def with_another(self) -> float:
        """What it will be after one more call that takes as long as the last."""
        return self.seconds + self.last


class RunClock(Clock):
    """The same, but that compiling and loading what a run finds out on the way that it needs does not count.

    Attributes:
        compiled: seconds of the wall that this took.
    """

    compiled = 0.0

    def __enter__(self) -> None:
        self._before = deadline.compilation()
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        wall, busy = (now - before for now, before in zip(deadline.compilation(), self._before, strict=True))
        self.last -= wall
        self.seconds -= wall
        self.busy -= busy
        self.compiled += wall


class Estimates:
    """The time of a run's estimates: `ESTIMATING` of its seconds beside them are free, more comes off the run.

    The last is of the whole trace, and takes as much longer than one on the way as that has more batches: of a run in
    seconds no more are kept than half of what is free suffices for. The first loads what all need and is not counted;
    what some do once and for all says nothing of those to come, which take as long as the briefest so far.
    """

    def __init__(self, budget: Budget) -> None:
        self._free = ESTIMATING * budget.seconds if budget.seconds is not None else math.inf
        self._seconds, self._briefest, self._per_batch = 0.0, math.inf, math.inf
        self._made = 0
        self._of: dict[int, float] = {}

    @contextmanager
    def __call__(self, view: Trace, trace: Trace) -> Iterator[None]:
        """Time an estimate from a view of the trace."""
        since = time.perf_counter()
        yield
        took = time.perf_counter() - since
        self._made += 1
        self._briefest, self._per_batch = min(self._briefest, took), min(self._per_batch, took / len(view.counts))
        if self._made == 1 or self._free == math.inf:
            return
        self._per_batch = self._each(len(view.counts), took, BATCH + NUMBER * view.numbers)
        self._seconds += took
        trace.limit(int(self._free / 2 / max(self._per_batch, 1e-9)))

    def _each(self, batches: int, took: float, least: float) -> float:
        """Seconds that a batch adds: where views had more or fewer of them, most of what few take is seen to be no
        batch's."""
        self._of[batches] = min(self._of.get(batches, math.inf), took)
        few, many = min(self._of), max(self._of)
        if few == many:
            return self._per_batch
        return min(self._per_batch, max((self._of[many] - self._of[few]) / (many - few), least))

    def due(self, run: Clock, trace: Trace) -> bool:
        """Whether there is time for one more, and one at the end."""
        if self._free == math.inf or not self._made:
            return True
        spent = self._seconds + self._briefest + (self._at_the_end(trace) if self._made > 1 else 0.0)
        return spent <= ESTIMATING * run.seconds

    def owed(self, trace: Trace) -> float:
        """Seconds by which the run ends early, no more than are free."""
        return min(max(0.0, self._seconds + self._at_the_end(trace) - self._free), self._free)

    def _at_the_end(self, trace: Trace) -> float:
        return self._briefest + self._per_batch * len(trace.counts) if self._made > 1 else 0.0


class Questions:
    """When a run with a tolerance is asked for its error: at first, and then where that should be small enough.

    Errors are themselves estimates, and a run that is asked often ends where its own is too small by chance. So it is
    asked a few times, as many as it takes to double its samples. In the limit of a small tolerance, a claim whose error
    is known ever better holds as if the length had been fixed: Glynn and Whitt, "The asymptotic validity of sequential
    stopping rules for stochastic simulations", Annals of Applied Probability 1992.
    """

    def __init__(self, tolerance: Tolerance | None) -> None:
        self._tolerance = tolerance
        self._next = FEWEST_SAMPLES

    def due(self, samples: int) -> bool:
        """Whether to ask now."""
        return self._tolerance is not None and samples >= self._next

    def reached(self, found: Estimate, samples: int) -> bool:
        """Whether its error is small enough; else it is asked again when it may be, as errors fall with √samples.

        Args:
            found: from the whole trace: few batches leave so much to chance in R-hat that claims do not fall.
            samples: of the trace.
        """
        assert self._tolerance is not None
        ratio = self._tolerance.error(found) / self._tolerance.below
        self._next = math.ceil(samples * min(max(ratio**2, SOONER), LATER))
        return ratio < 1
