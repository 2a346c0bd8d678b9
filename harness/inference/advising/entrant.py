"""One candidate's way through a race: its process, what it was asked, what it cost, what it says, and why it is out.

Whatever a candidate does costs only its own seconds: its process can be ended at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from spinbench.api.types import RANDOM_KINDS
from spinbench.errors import BudgetError, SpinbenchError
from spinbench.foundation import deadline
from spinbench.foundation.child import Child, DiedError, first_ready
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result, replace_pairs
from spinbench.inference.runner import run
from spinbench.models import Model

# Samples per step of burn-in.
BURN_IN = 4
# Share of its seconds by which a run in samples is longer than one in seconds with as many samples, for its burn-in.
BURN_IN_SECONDS = 0.13
# Budget of a run where a few seconds are too short for a sample.
FEWEST = Budget(samples=2, burn_in=1)
# Smallest ratio of a run's length to the one before for which it pays, since every run starts anew.
MIN_GROWTH = 1.3

Work = Callable[[Any], Result]


class Outcome(NamedTuple):
    """What came of a request.

    Attributes:
        result: None where there is none.
        why: there is none.
        failed: whether a defect is the reason, and not a refusal.
        late: whether there was no time for it.
    """

    result: Result | None
    why: str = ""
    failed: bool = False
    late: bool = False


def answer_requests(arguments: tuple[Work, Iterable[Any]]) -> Iterator[Outcome]:
    """What comes of each request; work and requests are given. For child processes: what it prints is not seen."""
    work, requests = arguments
    with (
        # The streams of this process may be locked by a thread that was not forked.
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        for request in requests:
            yield _outcome(work, request)


def _outcome(work: Work, request: Budget) -> Outcome:
    try:
        return Outcome(replace_pairs(work(request), None))
    except SpinbenchError as refusal:
        return Outcome(None, " ".join(str(refusal).split()))
    # A bug in a plugin, or a model too large for it, removes this candidate and no other.
    except Exception as error:
        return Outcome(None, " ".join(f"{type(error).__name__}: {error}".split()), failed=True)


def work_of(model: Model, candidate: Candidate, chains: int, seed: int) -> Work:
    """Runs of a candidate; requests are budgets."""
    place = partial(run, model, candidate.method_with_settings, candidate.backend)

    def work(budget: Budget) -> Result:
        try:
            return place(budget, chains=chains, seed=seed, checkpoints=1)
        except BudgetError:
            return place(FEWEST, chains=chains, seed=seed, checkpoints=1)

    return work


@dataclasses.dataclass
class Entrant:
    """A candidate in a race.

    Attributes:
        candidate: who.
        seed: of its runs.
        expected: error that the portfolio expects of a run of a second; infinite where it does not know.
        child: its process; None before its turn.
        sampler: whether it goes on as long as it is let.
        request: the budget of its newest result.
        result: the newest; took, spent: seconds of that request, and of all, on the clock of budgets.
        rounds: requests that were answered.
        fate: why it is out; "" while it is in.
        failed: whether a defect put it out.
    """

    candidate: Candidate
    seed: int = 0
    expected: float = math.inf
    child: Child[Outcome] | None = None
    sampler: bool = True
    request: Budget = FEWEST
    result: Result | None = None
    took: float = 0.0
    spent: float = 0.0
    rounds: int = 0
    fate: str = ""
    failed: bool = False

    @property
    def racing(self) -> bool:
        """Whether it has a result, and may be asked again."""
        return self.result is not None and not self.fate and self.child is not None and self.child.alive

    @property
    def runs_once(self) -> bool:
        """Whether it runs at the end or not at all: what it plans depends on its seconds, so that a short run does not
        tell how accurate a longer one is."""
        return self.candidate.method_with_settings.kind == "draws" and self.expected < math.inf

    @property
    def waiting_seconds(self) -> float:
        """Seconds since its request, on the clock of budgets."""
        assert self.child is not None
        return self.child.spent_seconds() - self._spent_before

    def start(self, work: Work, seconds: float) -> None:
        """Its process, and its first run, of so many seconds, which loads code and tells what a sample costs.

        The process is forked, so that what this one has compiled and loaded is there, and the model need not be sent.
        """
        if "fork" not in multiprocessing.get_all_start_methods():
            raise SpinbenchError("advise needs an operating system that can fork processes")
        requests, self._requests = multiprocessing.Pipe(duplex=False)
        self.child = Child(answer_requests, (work, iter(requests.recv, None)), fork=True)
        requests.close()
        self.sampler = self.candidate.method_with_settings.kind in RANDOM_KINDS
        self.ask(Budget(seconds=seconds, cpu=deadline.on_cpu()))

    def ask(self, request: Budget) -> None:
        """Send a request to its process."""
        assert self.child is not None
        self._asked, self._spent_before = request, self.child.spent_seconds()
        self._requests.send(request)

    def take(self, limit: float) -> Outcome:
        """What came of it, after so many seconds at the latest; without a result it is out, and keeps what it had."""
        assert self.child is not None
        try:
            if first_ready([self.child], limit):
                outcome = self.child.answer()
            else:
                outcome = Outcome(None, f"it had not answered after {format_seconds(self.waiting_seconds)}", late=True)
        except DiedError as error:
            outcome = Outcome(None, str(error), failed=True)
        # The answer that the child sent cannot be read.
        except Exception as error:
            outcome = Outcome(None, f"{type(error).__name__}: {error}", failed=True)
        seconds = self.waiting_seconds
        self.spent += seconds
        if outcome.result is None:
            self.fate, self.failed = outcome.why, outcome.failed
            self.close()
        else:
            self.request, self.result, self.took = self._asked, outcome.result, seconds
            self.rounds += 1
        return outcome

    def longer(self, seconds: float) -> Budget | None:
        """A budget that takes about so many seconds, in samples, which make the same result again; None: it would be no
        longer than the last.

        Methods that start no chains get seconds: what their first draws take says little of later ones.
        """
        if not (self.racing and self.sampler):
            return None
        assert self.result is not None
        # What does not grow with the samples has passed beside the seconds of a first run.
        moving = min(self.request.seconds or self.took, self.took)
        rest = self.took - moving
        factor = (seconds - rest) / max(moving, 1e-4)
        if factor < MIN_GROWTH:
            return None
        if self.candidate.method_with_settings.kind == "draws":
            return Budget(seconds=seconds - rest, cpu=deadline.on_cpu())
        # Half of the rest was loading.
        factor += rest / 2 / max(moving, 1e-4)
        samples = max(math.ceil(self.result.samples * factor / (1 + BURN_IN_SECONDS)), 2)
        return Budget(samples=samples, burn_in=math.ceil(samples / BURN_IN))

    def close(self) -> None:
        """End its process; a first run may be compiling, which is cached once it is done."""
        if self.child is not None and self.child.alive:
            self.child.close(once_compiled=not self.rounds)
            self._requests.close()
