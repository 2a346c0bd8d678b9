"""The command line. Each command imports what it needs, so that `--help` and `list` answer at once."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from spinbench import __version__
from spinbench.command_help import COMMANDS, DEBUG_VARIABLE, DESCRIPTION, EPILOG, CommandParser
from spinbench.command_options import OPTIONS
from spinbench.errors import SpinbenchError
from spinbench.foundation.interruptions import STATUS, interruptible
from spinbench.foundation.platforms import check_supported
from spinbench.foundation.remarks import printable, unknown_name

USER_ERROR = 2
GLOBAL_OPTIONS = ("-h", "--help", "--version", "--debug")
# Function of each command, as module:function: it takes the parsed arguments and returns the exit status. Imported only
# when its command runs.
HANDLERS = {
    "list": "reporting.commands.listing:run_list",
    "peers": "reporting.commands.listing:run_peers",
    "run": "reporting.commands.running:run",
    "exact": "reporting.commands.exact:run",
    "audit": "reporting.commands.advising:run_audit",
    "bracket": "reporting.commands.advising:run_bracket",
    "advise": "reporting.commands.advising:run_advise",
    "mixing": "reporting.commands.advising:run_mixing",
    "report": "reporting.commands.report:run_report",
    "profile": "reporting.commands.report:run_profile",
    "archive": "reporting.commands.archiving:run",
    "show": "reporting.commands.report:run_show",
    "rerun": "reporting.commands.report:run_rerun",
    "warm": "reporting.commands.warm:run",
    "completion": "reporting.commands.completion:run",
    "publish": "reporting.commands.report:run_publish",
    "check": "testing.command:run",
    "init": "scaffold.package:run",
    "record": "history.command:run_record",
    "history": "history.command:run_history",
    "gate": "reporting.commands.gating:run",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit status, one of `EXIT_STATUSES`; 1 is for what `COMMANDS` say of each command.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII locale prints "±" as a question mark instead of failing
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    debug = bool(os.environ.get(DEBUG_VARIABLE)) or words != given
    with interruptible(signal.SIGINT) as interrupted:
        try:
            check_supported()
            return _dispatch(words)
        except SpinbenchError as error:
            if debug:
                traceback.print_exc()
            print(f"spinbench: {printable(' '.join(str(error).split()))}", file=sys.stderr)
            return USER_ERROR
        except KeyboardInterrupt:
            return _report_interruption()
        except BrokenPipeError:  # the reader closed the pipe, as in `spinbench list | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except Exception as error:
            if interrupted.is_set() and not debug:
                return _report_interruption()
            if debug or not isinstance(error, OSError) or error.errno != errno.ENOSPC:
                raise
            print(f"spinbench: {printable(str(error))}", file=sys.stderr)
            return USER_ERROR


def _report_interruption() -> int:
    """Says so on standard error, and returns the exit status."""
    print("spinbench: interrupted", file=sys.stderr)
    return STATUS


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["sweep"]:  # Hydra parses its arguments
        from spinbench.sweeping.command import main as sweep

        return sweep(words[1:])
    words = words or ["--help"]
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    if words[0].startswith("-") and words[0] not in GLOBAL_OPTIONS:
        raise unknown_name("option", words[0], GLOBAL_OPTIONS)
    arguments = build_parser().parse_args(words)
    if getattr(arguments, "cpu", False):
        arguments.budget += " cpu"
    module, _, name = HANDLERS[arguments.command].partition(":")
    handle = getattr(import_module(f"spinbench.{module}"), name)
    if not (getattr(arguments, "json", False) or getattr(arguments, "quiet", False)):
        return int(handle(arguments))
    arguments.stdout = sys.stdout
    with open(os.devnull, "w", encoding="utf-8") as sink, contextlib.redirect_stdout(sink):
        return int(handle(arguments))


def build_parser() -> CommandParser:
    """The parser of all commands; that of `sweep` is Hydra's own."""
    parser = CommandParser(
        prog="spinbench",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"spinbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (sentence, example, failure) in COMMANDS.items():
        line = f"An example: spinbench {name} {example}".rstrip()
        if failure:
            line = f"The exit status is 1 if {failure}. {line}"
        command = commands.add_parser(name, help=sentence, description=sentence, epilog=line, add_help=name != "sweep")
        for add in OPTIONS.get(name, ()):
            add(command)
    commands.choices["completion"].set_defaults(parser=parser)
    return parser
