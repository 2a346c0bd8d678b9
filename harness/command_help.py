"""What `spinbench --help` and `spinbench COMMAND --help` say of each command: a sentence and an example."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]


class CommandHelp(NamedTuple):
    """Of one command."""

    sentence: str
    """What it does."""
    example: str
    """Arguments that follow the command's name."""


COMMANDS = {
    "sweep": CommandHelp("Measure cells and compare them.", "-m experiment=tour"),
    "run": CommandHelp("Run one method on a model and print its answer.", "my.uai --method gibbs --budget 2s"),
    "exact": CommandHelp(
        "Compute exact log Z and marginals of a model, or of all models in a folder.",
        "models --budget 60s --output answers.csv",
    ),
    "bracket": CommandHelp("Bound log Z from both sides, and say how surely.", "my.uai --budget 10s --gap 0.5"),
    "list": CommandHelp("List methods, backends, the pairs that run here, and models.", ""),
    "peers": CommandHelp("List other libraries to compare with, or install them.", "install pgmax"),
    "report": CommandHelp(
        "Print the leaderboard or an experiment's table from sweeps' records, and write a page.",
        "sweeps/mine --output page",
    ),
    "profile": CommandHelp("Show which methods are best across the models of sweeps.", "sweeps/mine --all"),
    "show": CommandHelp("Print all that a record holds.", "sweeps/mine/records/record-3f2a.json"),
    "rerun": CommandHelp(
        "Measure the cell of a record again, and exit with 1 if its figures differ.",
        "sweeps/mine/records/record-3f2a.json",
    ),
    "publish": CommandHelp("Write asv's site of the history.", "--offline"),
    "record": CommandHelp("Enter the records of sweeps into asv's history; it may be repeated.", "sweeps/mine"),
    "gate": CommandHelp("Exit with 1 if a commit is less accurate or slower, beyond noise.", "--base v0.1 --head main"),
    "history": CommandHelp("Show at which commits accuracy or cost changed, beyond noise.", "--since v0.1 --worse"),
    "check": CommandHelp("Run the conformance suite on a backend or a method.", "--method gibbs --backend numba"),
    "advise": CommandHelp(
        "Find the best answer within some seconds, and say whether it can be trusted.", "my.uai --budget 30s"
    ),
    "audit": CommandHelp(
        "Test whether states from any sampler are draws of a model's law, and how cold they are.",
        "samples.npz my.uai --alpha 0.01 --output frequencies.csv",
    ),
    "mixing": CommandHelp(
        "Measure after how many sweeps Gibbs sampling has forgotten its initial states.", "my.uai --budget 30s"
    ),
    "warm": CommandHelp(
        "Compile the kernels of all methods, or of some, so that later measurements do not.", "--backend numba"
    ),
    "completion": CommandHelp("Print a script with which a shell completes commands and options.", "bash"),
    "init": CommandHelp(
        "Write the package that a plugin begins with, or begin a history in a folder.", "my_sampler --method mine"
    ),
}


def add_command(commands: Subcommands, name: str, **options: Any) -> argparse.ArgumentParser:
    """The parser of one of `COMMANDS`, added to argparse's sub-parsers `commands`."""
    sentence, example = COMMANDS[name]
    line = f"An example: spinbench {name} {example}".rstrip()
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=sentence, description=sentence, epilog=line, **options
    )
    return parser


def add_quiet_forms(command: argparse.ArgumentParser) -> None:
    """`--json` and `--quiet`, of a command that prints an answer."""
    forms = command.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print the answer as one line of JSON and nothing else")
    forms.add_argument("--quiet", action="store_true", help="print no answer; the exit status and files tell")
