"""`spinbench completion`: what a shell has to know to complete commands, options, names and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import get_args

import shtab

from spinbench.api import Precision
from spinbench.inference import registry
from spinbench.reporting.commands import peers

FILES, FOLDERS = ("FILE", "MODEL", "RECORD"), ("FOLDER",)
"""What arguments that are files and folders are called."""
PEER = "PEER"
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
    }
    for action in _actions(parser):
        if action.metavar in (*FILES, *FOLDERS):
            action.complete = shtab.FILE if action.metavar in FILES else shtab.DIRECTORY  # type: ignore[attr-defined]
        if action.metavar == PEER:
            action.choices = peers.names()
        for option in action.option_strings if action.metavar != NEW else ():
            action.choices = names.get(option, action.choices)
    print(shtab.complete(parser, shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of all commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
