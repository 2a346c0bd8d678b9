"""How a run spends its budget: steps of burn-in and of each batch, when it is estimated, and when it ends."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from spinbench.api.trace import Trace
from spinbench.errors import BudgetError
from spinbench.foundation import deadline
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.budget import Budget

# Shortest batch in seconds under a budget in seconds, long compared with the cost of a call.
BATCH_SECONDS = 2e-3
# Largest share of a budget in seconds for a burn-in that turns out slower than the planned tenth, or that waits for
# other processes without ending the run later.
MAX_BURN_IN = 0.3
# Nothing is begun that is predicted to end after this many times the budget.
LATE = 1.3
# CPU seconds that preparations may take in any case, since a first call loads libraries.
LOADING = 1.0
# Share of a budget's seconds that estimates may take in addition.
ESTIMATING = 0.25
# Smallest assumed cost in seconds of an estimate per batch and per number in it, as long as few timings exist.
BATCH, NUMBER = 2e-5, 2e-7


class Schedule(ABC):
    """Steps of a run's burn-in and of its batches, and what its budget leaves room for.

    Attributes:
        burn_in: steps.
        end_of_burn_in: seconds on the run's clock at which burn-in is cut; infinite where its steps are counted.
    """

    burn_in: int
    end_of_burn_in = math.inf

    @property
    @abstractmethod
    def progress(self) -> float:
        """Of the budget, how much is spent: samples or seconds."""

    @abstractmethod
    def checkpoints(self, count: int) -> list[float]:
        """Geometrically spaced values of `progress`, one less than `count`: the end is left out."""

    @abstractmethod
    def batches(self) -> Iterator[int]:
        """Steps of each batch, until the budget is spent; a merge of the trace's batches makes later ones longer."""

    def extend_after_burn_in(self, burn_in: int) -> None:
        """After so many steps of burn-in; raises BudgetError where the budget is spent."""
        return

    def first_sample(self) -> AbstractContextManager[None]:
        """Inside, what takes too long to come to a first sample is given up; raises BudgetError then."""
        return nullcontext()

    def may_estimate(self) -> bool:
        """Whether there is time for one more estimate, and one at the end."""
        return True

    def estimating(self, view: Trace) -> AbstractContextManager[None]:
        """Times an estimate from a view of the trace."""
        return nullcontext()


class SampleSchedule(Schedule):
    """Of a budget in samples; one with a tolerance begins with short batches, as it may end long before."""

    def __init__(self, budget: Budget, trace: Trace) -> None:
        assert budget.samples is not None
        self._samples, self._trace = budget.samples, trace
        self._may_end_early = budget.until is not None
        self.burn_in = math.ceil(budget.samples / 5) if budget.burn_in is None else budget.burn_in

    @property
    def progress(self) -> float:
        """Samples."""
        return self._trace.samples

    def checkpoints(self, count: int) -> list[float]:
        """From 1/1000 of the samples, at least 4."""
        first = min(max(4.0, self._samples / 1000), self._samples)
        return [*map(float, np.geomspace(first, self._samples, count)[:-1])]

    def batches(self) -> Iterator[int]:
        """Of one length, to a step."""
        trace = self._trace
        if self._may_end_early:
            yield from self._short_first()
            return
        count = min(self._samples, trace.enough)
        short, longer = divmod(self._samples, count)
        lengths = [short + 1] * longer + [short] * (count - longer)
        while lengths:
            if trace.full:
                trace.merge()
                lengths = [sum(lengths[i : i + 2]) for i in range(0, len(lengths), 2)]
            yield lengths.pop(0)

    def _short_first(self) -> Iterator[int]:
        """Single steps, twice as many after each merge."""
        trace, steps = self._trace, 1
        while trace.samples < self._samples:
            if trace.full:
                trace.merge()
                steps *= 2
            yield min(steps, self._samples - trace.samples)


class TimeSchedule(Schedule):
    """Of a budget in seconds on a run's clock, the wall's or the CPU's.

    Estimates are made beside it: `ESTIMATING` of its seconds are free, more comes off the run. The last is of the whole
    trace, and takes as much longer than one on the way as that has more batches: no more are kept than half of what is
    free suffices for. The first loads what all need and is not counted; what some do once and for all says nothing of
    those to come, which take as long as the briefest so far.

    Raises:
        BudgetError: not even one sample fits.
    """

    def __init__(
        self, budget: Budget, trace: Trace, clock: deadline.Stopwatch, seconds_per_step: float, batch_seconds: float
    ) -> None:
        assert budget.seconds is not None
        self._budget, self._trace, self._clock = budget, trace, clock
        self._per_step, self._batch_seconds = seconds_per_step, batch_seconds
        self._end = budget.seconds
        self._free = ESTIMATING * budget.seconds
        self._estimates, self._estimated, self._briefest, self._per_batch = 0, 0.0, math.inf, math.inf
        self._least_seconds: dict[int, float] = {}
        if budget.burn_in is not None:
            self.end_of_burn_in, self.burn_in = math.inf, budget.burn_in
        else:
            self.end_of_burn_in = MAX_BURN_IN * budget.seconds
            self.burn_in = max(1, round(budget.seconds / 10 / seconds_per_step))
        if self._is_late(clock.spent - clock.idle_seconds + seconds_per_step):
            raise BudgetError(
                f"a budget of {budget} is too short: a sample takes {format_seconds(seconds_per_step)}; give "
                "more seconds"
            )

    @property
    def progress(self) -> float:
        """Seconds."""
        return self._clock.spent

    def checkpoints(self, count: int) -> list[float]:
        """From 1/1000 of the seconds after burn-in."""
        first = min(self._clock.spent + self._end / 1000, self._end)
        return [*map(float, np.geomspace(first, self._end, count)[:-1])]

    @contextmanager
    def first_sample(self) -> Iterator[None]:
        """Until there is one, what is still running when the budget is over is given up, where loops ask for it.

        Raises:
            BudgetError: it was.
        """
        try:
            with deadline.within(max(LATE * self._end - self._clock.cpu, LOADING)):
                yield
        except deadline.OverdueError:
            raise BudgetError(f"a budget of {self._budget} ended before the first sample; give more seconds") from None

    def extend_after_burn_in(self, burn_in: int) -> None:
        """The run ends later by what burn-in waited while others had the machine, where that is much.

        Raises:
            BudgetError: the budget is spent.
        """
        clock = self._clock
        self._end += min(clock.idle_seconds, max(0.0, clock.spent - MAX_BURN_IN * self._end))
        if clock.spent >= self._end or self._is_late(clock.spent + self._per_step):
            raise BudgetError(
                f"a budget of {self._budget} ended within burn-in ({burn_in} samples took "
                f"{format_seconds(clock.spent)}); give more seconds or less burn_in"
            )

    def batches(self) -> Iterator[int]:
        """Of one length in seconds; those of an iteration grow from one step, so that the first, which may be all, are
        timed where they count."""
        trace, clock, iterates = self._trace, self._clock, self._trace.counts_iterations
        seconds = min(self._batch_seconds, 0.9 * self._end)
        steps = 1 if iterates else max(1, round(seconds / max(self._per_step, 1e-9)))
        took = 0.0
        while clock.spent + self._overrun() < self._end:
            if not iterates and self._is_late(clock.spent + took):
                return
            if trace.full:
                trace.merge()
                if not iterates:
                    steps *= 2
            since = clock.spent
            yield steps
            took = clock.spent - since
            if not iterates:
                continue
            if took < BATCH_SECONDS and 2 * took <= self._end - clock.spent:
                steps *= 2
            elif took > 2 * BATCH_SECONDS:
                steps = max(1, steps // 2)

    def may_estimate(self) -> bool:
        """Whether there is time for one more estimate, and one at the end."""
        if not self._estimates:
            return True
        return self._estimated + self._briefest + self._last_estimate() <= ESTIMATING * self._clock.spent

    @contextmanager
    def estimating(self, view: Trace) -> Iterator[None]:
        """Time an estimate from a view of the trace."""
        watch = deadline.Stopwatch(counts_compilation=True)
        with watch:
            yield
        took, batches = watch.spent, len(view.counts)
        self._estimates += 1
        self._briefest, self._per_batch = min(self._briefest, took), min(self._per_batch, took / batches)
        if self._estimates == 1:
            return
        self._estimated += took
        # where estimates had more or fewer batches, the common part of their times does not depend on batches
        self._least_seconds[batches] = min(self._least_seconds.get(batches, math.inf), took)
        few, many = min(self._least_seconds), max(self._least_seconds)
        if few < many:
            slope = (self._least_seconds[many] - self._least_seconds[few]) / (many - few)
            self._per_batch = min(self._per_batch, max(slope, BATCH + NUMBER * view.numbers))
        self._trace.limit(int(self._free / 2 / max(self._per_batch, 1e-9)))

    def _overrun(self) -> float:
        """Seconds by which the run ends early, no more than are free."""
        return min(max(0.0, self._estimated + self._last_estimate() - self._free), self._free)

    def _last_estimate(self) -> float:
        """Seconds that it will take, of the whole trace."""
        if self._estimates > 1:
            return self._briefest + self._per_batch * len(self._trace.counts)
        return 0.0

    def _is_late(self, seconds: float) -> bool:
        return seconds > LATE * self._end
