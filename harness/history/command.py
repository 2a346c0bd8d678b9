"""`spinbench record` and `spinbench history`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from spinbench.history.changepoints import report
from spinbench.history.merge import merge
from spinbench.history.recorder import record
from spinbench.measuring.environment import require_history_root


def run_record(arguments: Namespace) -> int:
    """Enter records into the history, and say what came of it; 0, the exit status."""
    return _print_lines(record(require_history_root(), arguments.folders).sentences())


def run_history(arguments: Namespace) -> int:
    """Print which commits changed something, or merge other histories; 0, the exit status."""
    root = require_history_root()
    if arguments.action == "merge":
        return _print_lines(merge(root, arguments.folders).sentences())
    names = ("since", "worse", "machine", "last")
    options = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return _print_lines(report.format_lines(report.find_steps(root, **options)))


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return 0
