"""What `spinbench --help` says of each command, a sentence and an example, and the options that commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import unknown_name


class CommandHelp(NamedTuple):
    """Of one command."""

    sentence: str
    """What it does."""
    example: str
    """Arguments that follow the command's name."""
    failure: str = ""
    """When it exits with 1."""


COMMANDS = {
    "sweep": CommandHelp(
        "Measure cells and compare them.",
        "-m experiment=tour sweep_dir=multirun/tour",
        "a cell fails, or with commits= a commit makes something worse",
    ),
    "run": CommandHelp(
        "Run one method on a model and print its answer.",
        "my.uai --method gibbs --budget 2s",
        "the verdict is not ok, or the error of --until is not reached",
    ),
    "exact": CommandHelp(
        "Compute exact log Z and marginals of a model, or of all models in a folder.",
        "models --budget 60s --output answers.csv",
        "no solver fits, or a model of a folder has no answer",
    ),
    "bracket": CommandHelp(
        "Bound log Z from both sides, and say how surely.",
        "my.uai --budget 10s --gap 0.5",
        "log Z is unresolved",
    ),
    "list": CommandHelp("List methods, backends, the pairs that run here, and models.", ""),
    "peers": CommandHelp(
        "List other libraries to compare with, or install them.",
        "install pgmax",
        "one of those to be installed still lacks something",
    ),
    "report": CommandHelp(
        "Print the leaderboard or an experiment's table from sweeps' records, and write a page.",
        "multirun/tour --output page",
    ),
    "profile": CommandHelp("Show which methods are best across the models of sweeps.", "multirun/tour --all"),
    "archive": CommandHelp(
        "List, fetch, make or check archives of boards, or compare own sweeps with one.",
        "compare boards/uai14-2026.12 multirun/mine",
        "a cell is not reproduced, or an archive is damaged",
    ),
    "show": CommandHelp("Print all that a record holds.", '"$(ls multirun/tour/records/*.json | head -1)"'),
    "rerun": CommandHelp(
        "Measure the cell of a record again, and exit with 1 if its figures differ.",
        '"$(ls multirun/tour/records/*.json | head -1)"',
        "figures that should be equal differ",
    ),
    "warm": CommandHelp(
        "Compile the kernels of all methods, or of some, so that later measurements do not.", "--backend numba"
    ),
    "publish": CommandHelp("Write asv's site of the history.", ""),
    "record": CommandHelp("Enter the records of sweeps into asv's history; it may be repeated.", "multirun/tour"),
    "gate": CommandHelp(
        "Exit with 1 if a commit is less accurate or slower, beyond noise.",
        "--base main~1 --head main",
        "something is worse, or fails that worked, or with --undecided fail is undecided",
    ),
    "history": CommandHelp("Show at which commits accuracy or cost changed, beyond noise.", "--since main~5 --worse"),
    "check": CommandHelp(
        "Run the conformance suite on a backend or a method.",
        "--method gibbs --backend numba --seconds 20",
        "a check fails, or none can be run",
    ),
    "advise": CommandHelp(
        "Find the best answer within some seconds, and say whether it can be trusted.",
        "my.uai --budget 30s",
        "the answer is unresolved",
    ),
    "audit": CommandHelp(
        "Test whether states from any sampler are draws of a model's law, and how cold they are.",
        "samples.npz my.uai --alpha 0.01 --output frequencies.csv",
        "the samples fail",
    ),
    "mixing": CommandHelp(
        "Measure after how many sweeps Gibbs sampling has forgotten its initial states.",
        "my.uai --budget 30s",
        "they are not forgotten",
    ),
    "completion": CommandHelp("Print a script with which a shell completes commands and options.", "bash"),
    "init": CommandHelp(
        "Write the package that a plugin begins with, or begin a history in a folder.", "my_sampler --method mine"
    ),
}

# The only list of exit statuses: `spinbench --help` and the page of the command line print it.
EXIT_STATUSES = {
    0: "done, and the answer is good",
    1: "done, and the answer is not: COMMAND --help says when; or the output was closed",
    2: "an error of the user's, a missing package or a full disk, in one sentence",
    130: "interrupted by Ctrl-C, a sweep by SIGTERM, too",
    143: "ended by SIGTERM; 128 + N: ended by signal N",
}
DEBUG_VARIABLE = "SPINBENCH_DEBUG"
DESCRIPTION = """Which inference method, on which compute backend, is most accurate per second
on your discrete graphical model?"""
EPILOG = "\n".join(
    [
        "exit statuses:",
        *(f"  {status:<5} {meaning}" for status, meaning in EXIT_STATUSES.items()),
        "",
        f"--debug or {DEBUG_VARIABLE}=1 shows where an error comes from.",
        "An example: spinbench run grid --budget 2s",
    ]
)


class CommandParser(argparse.ArgumentParser):
    """A parser whose refusals are one sentence, with the closest option or choice in place of a misspelt one."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse refuses as a `SpinbenchError`."""
        raise SpinbenchError(f"{self.prog}: {message}; {self.prog} --help says what it takes")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Argparse asks this of each word that has `choices`."""
        if action.choices is not None and value not in action.choices:
            subject = "/".join(action.option_strings) or action.dest
            raise unknown_name(f"{subject} of {self.prog}", str(value), map(str, action.choices))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's own.

        Raises:
            SpinbenchError: words are left over.
        """
        parsed, rest = super().parse_known_args(args, namespace)
        if not rest:
            return parsed, rest
        name = rest[0].partition("=")[0]
        if name.startswith("-"):
            raise unknown_name(f"option of {self.prog}", name, self._option_string_actions)
        raise SpinbenchError(f"{self.prog} has no use for {name!r}; {self.prog} --help says what it takes")


class _JoinAssignments(argparse.Action):
    """VARIABLE=STATE, one a line, of all times that an option is given; of a file there is one."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, _: Any = None) -> None:
        earlier = getattr(namespace, self.dest)
        if earlier is not None and not ("=" in earlier and "=" in values):
            parser.error(f"{self.option_strings[0]} was given twice: one file, or VARIABLE=STATE as often as needed")
        setattr(namespace, self.dest, values if earlier is None else f"{earlier}\n{values}")


# Adds options to a parser, or to a group of one.
Option = Callable[[Any], object]


def option(*names: str, **settings: Any) -> Option:
    """What argparse's `add_argument` takes."""
    return methodcaller("add_argument", *names, **settings)


def exclusive(*options: Option) -> Option:
    """At most one of some options."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group()
        for add_option in options:
            add_option(group)

    return add


def about_a_model(budget: str = "so long, as 2s or 1min") -> list[Option]:
    """Of a command on one model, within a budget, from a seed."""
    return [
        MODEL,
        evidence(),
        option("--budget", default="10s", metavar="TIME", help=f"Stop after {budget}; 10s by default."),
        option("--cpu", action="store_true", help="Count CPU seconds of all processes in place of wall-clock."),
        SEED,
        QUIET_FORMS,
    ]


def evidence(addition: str = "") -> Option:
    """What is observed, of a command on a model."""
    sentence = f"Observe what this .evid file says, or VARIABLE=STATE, which may be repeated{addition}."
    return option("--evidence", metavar="FILE", action=_JoinAssignments, help=sentence)


def output_files(sentence: str) -> Option:
    """Files that an answer is written to."""
    return option("--output", type=Path, action="append", default=[], metavar="FILE", help=sentence)


def add_merge(parser: argparse.ArgumentParser) -> None:
    """`spinbench history merge`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="several machines")
    sentence = "Merge the histories of other machines into this one; may be repeated."
    epilog = "An example: spinbench history merge ../laptop/.asv"
    merge = actions.add_parser("merge", help=sentence, description=sentence, epilog=epilog)
    option(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="Read the history of this checkout, or of this .asv."
    )(merge)


MODEL = option("model", metavar="MODEL", help="Read this file, or take the model of this name in `spinbench list`.")
SEED = option("--seed", type=int, default=0, metavar="N", help="Draw all random numbers from this seed; 0 by default.")
# Of a command that prints an answer.
QUIET_FORMS = exclusive(
    option("--json", action="store_true", help="Print the answer as one line of JSON and nothing else."),
    option("--quiet", action="store_true", help="Print no answer; the exit status and files tell."),
)
SETTINGS = option(
    "--set", metavar="NAME=VALUE", action="append", default=[], help="Set a setting of the method; may be repeated."
)
DEVICE = option("--device", default="cpu", metavar="D", help="Compute on the cpu, the default, or the gpu.")
SWEEPS = option("folders", nargs="+", type=Path, metavar="FOLDER", help="Read the records of these sweeps.")
RECORD = option("record", metavar="RECORD", help="Take the record of this path, or the one whose key or id begins so.")
MACHINE = option(
    "--machine", metavar="NAME", help="Look at the history of this machine; by default of the one that this is."
)
