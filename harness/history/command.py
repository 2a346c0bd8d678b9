"""The part of the command line that asks the history; nothing is imported before it is needed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from spinbench.command_help import add_command, add_quiet_forms

if TYPE_CHECKING:
    from spinbench.command_help import Subcommands

COMMANDS = ("record", "gate", "history")


def add(commands: Subcommands) -> None:
    """The parsers of `COMMANDS`."""
    record = add_command(commands, "record")
    record.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="Read the records of these sweeps.")
    gate = add_command(commands, "gate")
    gate.add_argument(
        "--base", metavar="COMMIT", help="Compare with this commit; by default the newest recorded one before the head."
    )
    gate.add_argument(
        "--head", metavar="COMMIT", help="Judge this commit; by default the newest recorded one of this branch."
    )
    gate.add_argument(
        "--calibrate", action="store_true", help="Print how often the gate errs on this history, in place of a verdict."
    )
    gate.add_argument(
        "--pairs",
        metavar="TIME",
        help="Measure costs again so long, as 10min, both commits by turns, those first that rose most.",
    )
    gate.add_argument(
        "--undecided",
        choices=["pass", "fail"],
        default="pass",
        help="Pass or fail where the verdict is UNDECIDED; pass by default.",
    )
    gate.add_argument(
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Write the report: .md, or JUnit's .xml.",
    )
    gate.add_argument("--annotate", action="store_true", help="Print the verdict as an annotation on GitHub, too.")
    add_quiet_forms(gate)
    history = add_command(commands, "history")
    history.add_argument("--since", metavar="COMMIT", help="Show only what comes after this commit.")
    history.add_argument("--worse", action="store_true", help="Show only what got worse.")
    history.add_argument("--last", type=int, metavar="N", help="Look at so many recorded commits; 60 by default.")
    actions = history.add_subparsers(dest="action", metavar="ACTION", title="several machines")
    sentence = "Merge the histories of other machines into this one; may be repeated."
    epilog = "An example: spinbench history merge ../laptop/.asv"
    merge = actions.add_parser("merge", help=sentence, description=sentence, epilog=epilog)
    merge.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="Read the history of this checkout, or of this .asv."
    )
    for command in (gate, history):
        command.add_argument(
            "--machine", metavar="NAME", help="Look at the history of this machine; by default of the one that this is."
        )


def run(arguments: argparse.Namespace) -> int:
    """Run `record` or `history`, and return the exit status."""
    match arguments.command:
        case "record":
            from spinbench.history.recorder import record

            return _print_lines(record(history_root(), arguments.folders).sentences())
        case "history" if arguments.action == "merge":
            from spinbench.history.merge import merge

            return _print_lines(merge(history_root(), arguments.folders).sentences())
        case _:
            return _run_history(arguments)


def _run_history(arguments: argparse.Namespace) -> int:
    from spinbench.history.changepoints import report

    names = ("since", "worse", "machine", "last")
    options = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return _print_lines(report.format_lines(report.find_steps(history_root(), **options)))


def _print_lines(lines: list[str]) -> int:
    for line in lines:
        print(line)
    return 0


def history_root() -> Path:
    """Where the history is kept.

    Raises:
        HistoryError: nowhere.
    """
    from spinbench.errors import HistoryError
    from spinbench.measuring import environment

    root = environment.history_root()
    if root is None:
        raise HistoryError(environment.NO_HISTORY)
    return root
