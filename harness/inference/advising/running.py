"""One candidate's way through a race: what it was asked, what it cost, what it says, and why it is out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.contenders import Contender, Outcome
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result

BURN_IN = 4
"""Samples for one of burn-in."""
ITERATIONS = Budget(samples=1000, burn_in=0)
"""Of what is no sampler: it ends by itself."""
MOST = 300.0
"""By how much a run may be longer than the last, which may be too short to tell what a sample costs."""
LEAST = 1.3
"""By how much it must be longer to be worth it."""


@dataclass
class Runner:
    """A candidate in a race.

    Attributes:
        candidate: who.
        seed: of its runs.
        contender: its process; None before its turn.
        sampler: whether it goes on as long as it is let.
        request: the budget of its newest result, in samples, so that it can be made again.
        result: the newest; wall, spent: seconds of that request, and of all.
        rounds: requests that were answered.
        fate: why it is out; "" while it is in.
        failed: whether a defect put it out.
    """

    candidate: Candidate
    seed: int = 0
    contender: Contender | None = None
    sampler: bool = True
    request: Budget = ITERATIONS
    result: Result | None = None
    wall: float = 0.0
    spent: float = 0.0
    rounds: int = 0
    fate: str = ""
    failed: bool = False

    @property
    def racing(self) -> bool:
        """Whether it may be asked again."""
        return not self.fate and self.contender is not None and self.contender.alive

    @property
    def moving(self) -> float:
        """Seconds of the newest result that grow with its samples."""
        assert self.result is not None
        return self.result.seconds.burn_in + self.result.seconds.run

    @property
    def waited(self) -> float:
        """Seconds since its request."""
        return 0.0 if self.contender is None else self.contender.waited

    def begin(self, variables: int) -> None:
        """Ask for the first run, which compiles and tells roughly what a sample costs."""
        samples = self.candidate.first(variables)
        self.ask(Budget(samples=samples, burn_in=max(1, samples // BURN_IN)) if self.sampler else ITERATIONS)

    def ask(self, request: Budget) -> None:
        """Send a request to its process."""
        assert self.contender is not None
        self.contender.ask(request)
        self._asked = request

    def take(self, limit: float) -> Outcome:
        """What came of it; without a result it is out, and keeps what it had."""
        assert self.contender is not None
        outcome = self.contender.answer(limit)
        self.spent += outcome.seconds
        if outcome.result is None:
            self.fate, self.failed = outcome.why, outcome.word == "failed"
            self.contender.close()
        else:
            self.request, self.result, self.wall = self._asked, outcome.result, outcome.seconds
            self.rounds += 1
        return outcome

    def longer(self, seconds: float) -> Budget | None:
        """A budget that takes about so many seconds, by what the newest result took; None: it would be no longer."""
        if not self.racing or self.result is None or not self.sampler:
            return None
        rest = self.result.seconds.plan if self.rounds == 1 else self.wall - self.moving
        factor = min((seconds - rest) / max(self.moving, 1e-4), MOST)
        if factor < LEAST:
            return None
        assert self.request.samples is not None
        assert self.request.burn_in is not None
        return Budget(
            samples=math.ceil(self.request.samples * factor), burn_in=math.ceil(self.request.burn_in * factor)
        )

    def leave(self, why: str) -> None:
        """Out, and its process ended."""
        self.fate = self.fate or why
        self.close()

    def close(self) -> None:
        """End its process."""
        if self.contender is not None and self.contender.alive:
            self.contender.close()
