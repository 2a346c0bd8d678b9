"""Checks of a subject in a child process: a crash, or a check that does not end, costs that check alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from spinbench.foundation.child import Child, DiedError
from spinbench.testing.check import Check

# CPU seconds after which a check is stopped; the slowest, whose programs are compiled for each size, take 60.
CHECK_SECONDS = 300.0
# Seconds of wall time without CPU use after which a check counts as hanging.
STALL_SECONDS = 120.0
# Seconds between readings of a check's CPU time.
TICK = 0.5
# Number of lost processes after which a subject's remaining checks are given up.
MAX_LOST = 5


CheckRunner = Callable[[Check], tuple[str, str]]


class Outcome(NamedTuple):
    """Outcome of a check: "passed", "skipped" or "failed", the reason, and CPU seconds."""

    check: Check
    result: str
    reason: str
    seconds: float


def run_isolated(
    checks: Sequence[Check],
    run_check: CheckRunner,
    *,
    max_seconds: float,
    check_seconds: float = CHECK_SECONDS,
) -> Iterator[Outcome]:
    """Run the checks of a subject one after another, in a child that is replaced when it is lost.

    Args:
        checks: of one subject, which share what they bind.
        run_check: the result and reason of one.
        max_seconds: CPU seconds after which the others are skipped.
        check_seconds: CPU seconds of one check.
    """
    spent, num_lost, rest = 0.0, 0, list(checks)
    while rest:
        if spent >= max_seconds or num_lost > MAX_LOST:
            reason = f"--seconds {max_seconds:g} are spent"
            if num_lost > MAX_LOST:
                reason = f"{num_lost} checks have ended their process"
            yield from (Outcome(check, "skipped", reason, 0.0) for check in rest)
            return
        child = Child(_run_all, (rest, run_check))
        try:
            while rest and child.alive and spent < max_seconds:
                outcome = _await_outcome(child, rest.pop(0), check_seconds)
                spent += outcome.seconds
                num_lost += not child.alive
                yield outcome
        finally:
            if child.alive:
                child.close()


def _run_all(work: tuple[Sequence[Check], CheckRunner]) -> Iterator[tuple[str, str, float]]:
    checks, run_check = work
    for check in checks:
        since = time.process_time()
        yield (*run_check(check), time.process_time() - since)


def _await_outcome(child: Child[tuple[str, str, float]], check: Check, max_seconds: float) -> Outcome:
    """The result of the child's next check; it is closed where it gives none."""
    begun = used = child.cpu_seconds()
    used_at = time.perf_counter()
    try:
        while not child.poll(TICK):
            if (now := child.cpu_seconds()) > used:
                used, used_at = now, time.perf_counter()
            if used - begun > max_seconds:
                raise DiedError(f"it takes more than {max_seconds:g} CPU s, and was ended")
            if time.perf_counter() - used_at > STALL_SECONDS:
                raise DiedError(f"it waits without end: nothing was computed for {STALL_SECONDS:g} s")
        return Outcome(check, *child.answer())
    except DiedError as error:
        seconds = child.cpu_seconds() - begun
        child.close()
        return Outcome(check, "failed", str(error), seconds)
