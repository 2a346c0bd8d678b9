"""Sweeps as they are asked for: `spinbench sweep`, at one commit or several, and `spinbench.sweep` in a notebook."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.foundation import interruptions, platforms


def main(argv: Sequence[str]) -> int:
    """Run a sweep; returns and raises as `sweep.sweep` and `commit_sweeps.sweep` do."""
    from spinbench.sweeping.arguments import Arguments

    arguments = Arguments.parse(argv)
    if arguments.commits is None:
        from spinbench.sweeping.sweep import sweep
    else:
        from spinbench.sweeping.commit_sweeps import sweep
    return sweep(arguments)


def sweep(*overrides: str) -> Path:
    """Measure cells, each in a process of its own, and print the leaderboard, as `spinbench sweep -m` does.

    >>> folder = spinbench.sweep("method=gibbs,bp", "model=grid", "budget=smoke")
    >>> frame = spinbench.read(folder)

    In a notebook all that is told stands in one output, in which the newest cells and the bar stay in place.

    Args:
        overrides: NAME=VALUE, or NAME=VALUE,VALUE for each of several, as on the command line.

    Returns:
        The folder of its records; with `sweep_dir=FOLDER` the same again goes on with what is not measured yet.

    Raises:
        SpinbenchError: nothing was measured, because an argument is wrong; or a record could not be written. Cells that
            fail are records with a reason.
    """
    from spinbench.sweeping import composition
    from spinbench.sweeping.arguments import Arguments
    from spinbench.sweeping.sweep import measure, open_checked

    platforms.check_supported()
    for override in overrides:
        if not isinstance(override, str) or override.startswith("-") or override.startswith("commits="):
            raise SpinbenchError(
                f"{override!r} was given; spinbench.sweep takes settings as 'NAME=VALUE', and the command `spinbench "
                "sweep` flags and commits"
            )
    entered = time.perf_counter()
    arguments = Arguments.parse(["-m", *overrides])
    plan = composition.plan(arguments.overrides, multirun=True)
    folder = open_checked(arguments, plan)
    if measure(arguments, plan, folder, entered) == interruptions.STATUS:
        raise KeyboardInterrupt
    return folder
