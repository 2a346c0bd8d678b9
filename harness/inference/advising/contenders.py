"""A candidate in a process of its own, which can be left behind: whatever it does costs only its own seconds."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from spinbench.errors import SpinbenchError
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.foresight import check
from spinbench.inference.budget import Budget
from spinbench.inference.checks.joint_validity import Joint
from spinbench.inference.result import Result
from spinbench.inference.runner import exact, run
from spinbench.models import Model

Word = Literal["ok", "refused", "failed", "late"]
Work = Callable[[Any], Result]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a request.

    Attributes:
        word: "ok", "refused" (a sentence of its own), "failed" (a defect) or "late" (it was ended).
        result: of "ok".
        why: of the others.
        seconds: from the request to the answer.
    """

    word: Word
    result: Result | None
    why: str
    seconds: float


class Contender:
    """A process that answers requests, one at a time.

    It is forked, so that what this process has compiled and loaded is there, and the model need not be sent.

    Args:
        work: from a request to a result.
    """

    def __init__(self, work: Work) -> None:
        try:
            context = multiprocessing.get_context("fork")
        except ValueError:
            raise SpinbenchError("advise needs an operating system that can fork processes") from None
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with warnings.catch_warnings():  # of threads in this process: the child uses none of theirs
            warnings.simplefilter("ignore")
            self._process.start()
        theirs.close()
        self._since = 0.0

    def ask(self, request: Any) -> None:
        """Send a request; `answer` waits for what comes of it."""
        self._since = time.perf_counter()
        self.pipe.send(request)

    def answer(self, limit: float) -> Outcome:
        """What came of the request, after `limit` seconds from now at the latest; a late process is ended."""
        if not self.pipe.poll(max(limit, 0.0)):
            self.close()
            return Outcome("late", None, f"it had not answered after {self.waited:.2g} s", self.waited)
        try:
            word, result, why = self.pipe.recv()
        except Exception:  # the process died, or what it sent cannot be read
            self.close()
            return Outcome("failed", None, f"its process ended with status {self._process.exitcode}", self.waited)
        return Outcome(word, result, why, self.waited)

    @property
    def waited(self) -> float:
        """Seconds since the request."""
        return time.perf_counter() - self._since

    @property
    def alive(self) -> bool:
        """Whether it can be asked once more."""
        return not self.pipe.closed

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def ready(contenders: list[Contender], limit: float) -> list[Contender]:
    """Those that have something to say, as soon as one has, or none after `limit` seconds."""
    pipes: dict[Any, Contender] = {contender.pipe: contender for contender in contenders}
    return [pipes[pipe] for pipe in wait(list(pipes), max(limit, 0.0))]


def racing(model: Model, candidate: Candidate, chains: int, seed: int) -> Work:
    """Runs of a candidate; requests are budgets."""

    def work(budget: Budget) -> Result:
        method = candidate.made
        return run(model, method, candidate.backend, budget, chains=chains, seed=seed, checkpoints=1)

    return work


def exactly(model: Model) -> Work:
    """The exact answer; requests are the seconds that it may take by its own reckoning."""

    def work(seconds: float) -> Result:
        check(model, seconds)
        return exact(model)

    return work


def _serve(pipe: Connection, work: Work) -> None:
    with open(os.devnull, "w") as nothing:  # this process' streams may be locked by a thread that was not forked
        sys.stdout = sys.stderr = nothing
        while True:
            try:
                request = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(_done(work, request))


def _done(work: Work, request: Any) -> tuple[Word, Result | None, str]:
    try:
        found = work(request)
    except SpinbenchError as refusal:
        return "refused", None, " ".join(str(refusal).split())
    except Exception as error:  # a defect of a plugin, or a model that is too large for it
        return "failed", None, " ".join(f"{type(error).__name__}: {error}".split())
    return "ok", dataclasses.replace(found, joint=Joint()), ""
