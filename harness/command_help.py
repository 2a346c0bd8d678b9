"""What `spinbench --help` and `spinbench COMMAND --help` say of each command: a sentence and an example."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import unknown_name

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction["CommandParser"]


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
    "show": CommandHelp("Print all that a record holds.", '"$(ls multirun/tour/records/*.json | head -1)"'),
    "rerun": CommandHelp(
        "Measure the cell of a record again, and exit with 1 if its figures differ.",
        '"$(ls multirun/tour/records/*.json | head -1)"',
        "figures that should be equal differ",
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
    "warm": CommandHelp(
        "Compile the kernels of all methods, or of some, so that later measurements do not.", "--backend numba"
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


def add_command(commands: Subcommands, name: str, **options: Any) -> CommandParser:
    """The parser of one of `COMMANDS`, added to argparse's sub-parsers `commands`."""
    sentence, example, failure = COMMANDS[name]
    line = f"An example: spinbench {name} {example}".rstrip()
    if failure:
        line = f"The exit status is 1 if {failure}. {line}"
    parser: CommandParser = commands.add_parser(name, help=sentence, description=sentence, epilog=line, **options)
    return parser


def add_quiet_forms(command: argparse.ArgumentParser) -> None:
    """`--json` and `--quiet`, of a command that prints an answer."""
    forms = command.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="Print the answer as one line of JSON and nothing else.")
    forms.add_argument("--quiet", action="store_true", help="Print no answer; the exit status and files tell.")


class _JoinAssignments(argparse.Action):
    """VARIABLE=STATE, one a line, of all times that an option is given; of a file there is one."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, _: Any = None) -> None:
        earlier = getattr(namespace, self.dest)
        if earlier is not None and not ("=" in earlier and "=" in values):
            parser.error(f"{self.option_strings[0]} was given twice: one file, or VARIABLE=STATE as often as needed")
        setattr(namespace, self.dest, values if earlier is None else f"{earlier}\n{values}")


def add_evidence(command: argparse.ArgumentParser, addition: str = "") -> None:
    """What is observed, of a command on a model."""
    sentence = f"Observe what this .evid file says, or VARIABLE=STATE, which may be repeated{addition}."
    command.add_argument("--evidence", metavar="FILE", action=_JoinAssignments, help=sentence)
