"""`spinbench check`: the conformance suite at the command line, each subject in a child process.

A crash, or a check that does not end, costs that check alone.
"""

from __future__ import annotations

import re
import sys
import time
import traceback
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple
from unittest import SkipTest

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.foundation import child, interruptions, plugins, remarks
from spinbench.foundation.parameters import assignments
from spinbench.testing import suite
from spinbench.testing.check import Check, CheckError

STYLES = {"passed": "green", "skipped": "yellow", "failed": "bold red"}
# CPU seconds after which a check is stopped; the slowest, whose programs are compiled for each size, take 60.
CHECK_SECONDS = 300.0
# The same once a check has not ended: what runs without end in one of them does so in others.
LATER_CHECK_SECONDS = 100.0
# Seconds of wall time without CPU use after which a check counts as hanging.
STALL_SECONDS = 120.0
# Seconds between readings of a check's CPU time.
TICK = 0.5
# Number of checks without end after which a subject's remaining checks are given up.
MAX_ENDLESS = 5


CheckRunner = Callable[[Check], tuple[str, str]]


def run(arguments: Namespace) -> int:
    """`spinbench check`: its exit status is that of `main`."""
    names = ("tier", "kernel", "device", "chains", "seconds", "only", "stop_at_first")
    options = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return main(arguments.backend, arguments.method, setting_texts=arguments.set, **options)


def run_check(check: Check) -> tuple[str, str]:
    """Run a check: ("passed" | "skipped" | "failed", reason)."""
    try:
        check()
    except SkipTest as reason:
        return "skipped", str(reason)
    except CheckError as error:
        return "failed", str(error)
    except (Exception, SystemExit) as error:
        # Plugins may raise anything.
        text = " ".join(str(error).split())
        if isinstance(error, SpinbenchError):
            return "failed", text
        return "failed", f"{type(error).__name__}: {text}{_error_location(error)}"
    return "passed", ""


def _error_location(error: BaseException) -> str:
    """The last line of others' plugins that the error passed, else of spinbench: a framework's own lines say little."""
    kinds = ("backends", "methods", "kernels")
    points = [point for kind in kinds for entry_points in plugins.entry_points(kind).values() for point in entry_points]
    packages = {point.module.partition(".")[0] for point in points} - {"spinbench"}
    places = {"spinbench": "", "others": ""}
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        if package in packages or package == "spinbench":
            places["others" if package in packages else package] = f" ({module}, line {line})"
    return places["others"] or places["spinbench"]


def main(
    backend: str | None = None,
    method: str | None = None,
    *,
    setting_texts: Sequence[str] = (),
    seconds: float = float("inf"),
    only: str = "",
    stop_at_first: bool = False,
    **options: Any,
) -> int:
    """Run `checks(backend, method)` and print a table of the outcomes.

    Args:
        backend, method: names; by default all.
        setting_texts: the method's settings, "NAME=VALUE" each.
        seconds: of the CPU, after which no further check of a pair is begun.
        only: what the names of the checks hold that are run.
        stop_at_first: end with the first failure.
        options: chains, tier, kernel and device, as of `checks`.

    Returns:
        The exit status: 0, 1 if a check failed or none could be run, 2 for a name that does not exist, 130 for an
        interrupt.
    """
    try:
        settings = assignments(setting_texts, "--set")
        if not seconds > 0:
            raise SpinbenchError(f"--seconds {seconds:g} was given; a positive number is needed")
        selected = [check for check in suite.checks(backend, method, **options, **settings) if only in check.name]
        if not selected:
            raise SpinbenchError(f"--only {only!r} was given, which no check has in its name")
    except SpinbenchError as error:
        print(f"spinbench: {error}", file=sys.stderr)
        return 2
    return _run_and_tabulate(selected, seconds, stop_at_first)


def _run_and_tabulate(selected: Sequence[Check], max_seconds: float, stop_at_first: bool) -> int:
    """Runs the checks, prints each failure at once, and a table of what ran, also of a run that is interrupted."""
    console = Console()
    outcomes: list[Outcome] = []
    stopped = False
    with console.status("") as status, suppress(KeyboardInterrupt):
        for outcome in _run_subjects(selected, max_seconds, lambda subject: status.update(Text(subject))):
            outcomes.append(outcome)
            status.update(Text(f"{len(outcomes)} of {len(selected)}: {outcome.check}"))
            if outcome.result == "failed":
                progress = f"{outcome.check} failed, {len(outcomes)} of {len(selected)}: {outcome.reason}"
                console.print(Text(progress, STYLES["failed"]))
                if stop_at_first:
                    stopped = True
                    break
    _print_table(console, outcomes)
    counts = Counter(outcome.result for outcome in outcomes)
    console.print(", ".join(f"{counts[result]} {result}" for result in STYLES))
    if len(outcomes) < len(selected) and not stopped:
        console.print(f"interrupted after {len(outcomes)} of {len(selected)}")
        return interruptions.STATUS
    if not counts["passed"] + counts["failed"]:
        console.print("nothing was checked; the reasons stand in the table")
        return 1
    return int(counts["failed"] > 0)


def _run_subjects(selected: Sequence[Check], max_seconds: float, begin: Callable[[str], None]) -> Iterator[Outcome]:
    for subject, of_subject in groupby(selected, lambda check: check.subject):
        begin(subject)
        yield from run_isolated(list(of_subject), run_check, max_seconds=max_seconds)


def _print_table(console: Console, outcomes: Sequence[Outcome]) -> None:
    """A row for all checks of a subject with one result and one reason, whatever numbers this has."""
    table = Table("subject", "result", "checks", "CPU seconds", "reason")
    table.columns[3].justify = "right"
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        kind = re.sub(r"[-+\[]*\d[\d.e,\]]*", "#", outcome.reason)
        groups.setdefault((outcome.check.subject, outcome.result, kind), []).append(outcome)
    for (subject, result, _), group in groups.items():
        names = remarks.format_count(len(group), "check")
        if result != "passed":
            names = "; ".join(outcome.check.name for outcome in group)
        seconds = f"{sum(outcome.seconds for outcome in group):.2f}"
        table.add_row(subject, Text(result, STYLES[result]), names, seconds, Text(group[0].reason))
    console.print(table)


class Outcome(NamedTuple):
    """Outcome of a check: "passed", "skipped" or "failed", the reason, CPU seconds, and whether it did not end."""

    check: Check
    result: str
    reason: str
    seconds: float
    is_endless: bool = False


class EndlessError(child.DiedError):
    """A check does not end by itself."""


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
    spent, num_endless, rest = 0.0, 0, list(checks)
    while rest:
        if spent >= max_seconds or num_endless > MAX_ENDLESS:
            reason = f"--seconds {max_seconds:g} are spent"
            if num_endless > MAX_ENDLESS:
                reason = f"{num_endless} checks have not ended"
            yield from (Outcome(check, "skipped", reason, 0.0) for check in rest)
            return
        worker = child.Child(_run_all, (rest, run_check))
        try:
            while rest and worker.alive and spent < max_seconds:
                outcome = _await_outcome(worker, rest.pop(0), check_seconds)
                spent += outcome.seconds
                if outcome.is_endless:
                    num_endless, check_seconds = num_endless + 1, min(check_seconds, LATER_CHECK_SECONDS)
                yield outcome
        finally:
            if worker.alive:
                worker.close()


def _run_all(work: tuple[Sequence[Check], CheckRunner]) -> Iterator[tuple[str, str, float]]:
    checks, run_check = work
    for check in checks:
        since = time.process_time()
        yield (*run_check(check), time.process_time() - since)


def _await_outcome(worker: child.Child[tuple[str, str, float]], check: Check, max_seconds: float) -> Outcome:
    """The result of the child's next check; it is closed where it gives none."""
    begun = used = worker.cpu_seconds()
    used_at = time.perf_counter()
    try:
        while not worker.poll(TICK):
            if (now := worker.cpu_seconds()) > used:
                used, used_at = now, time.perf_counter()
            if used - begun > max_seconds:
                raise EndlessError(f"it takes more than {max_seconds:g} CPU s, and was ended")
            if time.perf_counter() - used_at > STALL_SECONDS:
                raise EndlessError(f"it waits without end: nothing was computed for {STALL_SECONDS:g} s")
        return Outcome(check, *worker.answer())
    except child.DiedError as error:
        seconds = worker.cpu_seconds() - begun
        worker.close()
        return Outcome(check, "failed", str(error), seconds, isinstance(error, EndlessError))
