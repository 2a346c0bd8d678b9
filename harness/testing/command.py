"""The suite at the command line."""

from __future__ import annotations

import math
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

from spinbench.errors import SpinbenchError
from spinbench.foundation import interruptions, plugins
from spinbench.foundation.parameters import assignments
from spinbench.testing.check import Check, CheckError
from spinbench.testing.pair import CHAINS
from spinbench.testing.suite import checks

if TYPE_CHECKING:
    from spinbench.api.types import Tier

STYLES = {"passed": "green", "skipped": "yellow", "failed": "bold red"}


def run(arguments: Namespace) -> int:
    """`spinbench check`: its exit status is that of `main`."""
    names = ("tier", "kernel", "device", "chains", "seconds")
    options = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return main(arguments.backend, arguments.method, setting_texts=arguments.set, **options)


def run_check(check: Check) -> tuple[str, str]:
    """Runs a check: ("passed" | "skipped" | "failed", reason)."""
    try:
        check()
    except SkipTest as reason:
        return "skipped", str(reason)
    except CheckError as error:
        return "failed", str(error)
    except (Exception, SystemExit) as error:
        # A plugin may raise anything.
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
    chains: int = CHAINS,
    setting_texts: Sequence[str] = (),
    tier: Tier | None = None,
    kernel: str | None = None,
    device: str = "cpu",
    seconds: float = math.inf,
) -> int:
    """Runs `checks(backend, method)` and prints a table of them.

    Args:
        backend, method: names; by default all.
        chains: that most checks run.
        setting_texts: the method's settings, "NAME=VALUE" each.
        tier, kernel, device: as of `checks`.
        seconds: after which no further check of a pair is begun.

    Returns:
        The exit status: 0, 1 if a check failed or none could be run, 2 for a name that does not exist, 130 for an
        interrupt.
    """
    try:
        settings = assignments(setting_texts, "--set")
        how: dict[str, Any] = {"chains": chains, "tier": tier, "kernel": kernel}
        if not seconds > 0:
            raise SpinbenchError(f"--seconds {seconds:g} was given; a positive number is needed")
        selected = checks(backend, method, device=device, **how, **settings)
    except SpinbenchError as error:
        print(f"spinbench: {error}", file=sys.stderr)
        return 2
    return _run_and_tabulate(selected, seconds)


def _run_and_tabulate(selected: Sequence[Check], max_seconds: float) -> int:
    """Runs the checks, tells each failure at once, prints the table of what ran, also of a run that is interrupted."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table("subject", "check", "result", "seconds", "reason")
    table.columns[3].justify = "right"
    counts, spent = dict.fromkeys(STYLES, 0), dict.fromkeys((check.subject for check in selected), 0.0)
    with console.status("") as status, suppress(KeyboardInterrupt):
        for number, check in enumerate(selected, start=1):
            status.update(Text(f"{number} of {len(selected)}: {check}"))
            since = time.perf_counter()
            over = spent[check.subject] >= max_seconds
            result, reason = "skipped", f"--seconds {max_seconds:g} are spent"
            if not over:
                result, reason = run_check(check)
            spent[check.subject] += time.perf_counter() - since
            seconds = f"{time.perf_counter() - since:.2f}"
            counts[result] += 1
            table.add_row(check.subject, check.name, Text(result, STYLES[result]), seconds, Text(reason))
            if result == "failed":
                console.print(Text(f"{check} failed, {number} of {len(selected)}", STYLES[result]))
    console.print(table)
    console.print(", ".join(f"{count} {result}" for result, count in counts.items()))
    if table.row_count < len(selected):
        console.print(f"interrupted after {table.row_count} of {len(selected)}")
        return interruptions.STATUS
    if not counts["passed"] + counts["failed"]:
        console.print("nothing was checked; the reasons stand in the table")
        return 1
    return int(counts["failed"] > 0)
