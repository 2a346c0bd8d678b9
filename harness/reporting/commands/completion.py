"""`spinbench completion`: what a shell has to know to complete commands, options, names and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import get_args

import shtab

from spinbench import conf
from spinbench.api import Precision
from spinbench.inference import registry
from spinbench.models import specs
from spinbench.reference.solvers import methods
from spinbench.reporting.commands import bash_words, peers

FILES, FOLDERS = ("FILE", "MODEL", "RECORD"), ("FOLDER",)
"""What arguments that are files and folders are called."""
PEER = "PEER"
FLAGS = ("-m", "--resume", "--profile", "--help")
GROUPS = ("experiment", "budget", "size", "launcher")
"""Of `spinbench sweep`, beside methods, backends and models."""
NEW = "NEW"
"""What names are called that are not to be there already."""


def show(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script for a shell that `shtab` knows; 0, the exit status.

    Names of methods and backends are those that are installed now.
    """
    names = {
        "--method": registry.names("methods"),
        "--backend": registry.names("backends"),
        "--precision": get_args(Precision),
        "--device": ["cpu", "gpu"],
        "--solver": methods(),
    }
    groups = _groups()
    _with_words_of_sweeps(parser, groups)
    for action in _actions(parser):
        if action.metavar in (*FILES, *FOLDERS):
            action.complete = shtab.FILE if action.metavar in FILES else shtab.DIRECTORY  # type: ignore[attr-defined]
        if action.metavar == PEER:
            action.choices = peers.names()
        for option in action.option_strings if action.metavar != NEW else ():
            action.choices = names.get(option, action.choices)
    print(shtab.complete(parser, shell) + (bash_words.script(groups) if shell == "bash" else ""))
    return 0


def _groups() -> dict[str, list[str]]:
    """Of a sweep, with the names of their members."""
    names = {"method": registry.names("methods"), "backend": registry.names("backends"), "model": specs.names()}
    for group in GROUPS:
        files = (resources.files(conf) / group).iterdir()
        names[group] = sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))
    return names


def _with_words_of_sweeps(parser: argparse.ArgumentParser, groups: Mapping[str, Sequence[str]]) -> None:
    """What stands behind `sweep` is Hydra's, and the parser does not know it."""
    (sweep,) = (action.choices["sweep"] for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for flag in FLAGS:
        sweep.add_argument(flag, action="store_true")
    words = [f"{group}={name}" for group in groups for name in groups[group]]
    sweep.add_argument("words", nargs="*", metavar="NAME=VALUE", choices=words, help="what is measured")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of all commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
