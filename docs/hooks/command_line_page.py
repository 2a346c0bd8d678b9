"""The page of the command line, from its parser."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from spinbench.cli import build_parser
from spinbench.command_help import COMMANDS, EXIT_STATUSES

HEAD = """# Command line

`spinbench COMMAND --help` prints the same. `--debug` or `SPINBENCH_DEBUG=1` shows where an error comes from. A misspelt
command, option, name or setting ends in a sentence that has the closest ones.

## Exit statuses { #exit-status }

| exit status | meaning |
|---|---|
"""
CONF = Path(__file__).resolve().parents[2] / "conf"


def text() -> str:
    """Markdown."""
    commands = _commands(build_parser())
    return HEAD + _exit_statuses() + "".join(_command(name, *described) for name, described in commands.items())


def _exit_statuses() -> str:
    """The rows of all statuses, and a table of when each command exits with 1."""
    rows = "".join(f"| {status} | {meaning} |\n" for status, meaning in EXIT_STATUSES.items())
    failures = "".join(f"| `{name}` | {one.failure} |\n" for name, one in COMMANDS.items() if one.failure)
    return f"{rows}\n| command | its exit status is 1 if |\n|---|---|\n{failures}"


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[argparse.ArgumentParser, str]]:
    """Each command's parser and one line on it."""
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {name: (choice, summaries[name]) for name, choice in action.choices.items()}


def _command(name: str, parser: argparse.ArgumentParser, summary: str) -> str:
    head = f"\n## spinbench {name} {{ #{name} }}\n\n{summary}\n\n"
    if name == "sweep":  # its arguments are Hydra's
        return head + _sweep()
    usage = " ".join(parser.format_usage().removeprefix("usage:").split())
    rows = [_row(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    table = "\n".join(["| argument | |", "|---|---|", *rows]) if rows else "It takes no arguments."
    example = f"spinbench {name} {COMMANDS[name].example}".rstrip()
    return f"{head}```text\n{usage}\n```\n\n{table}\n\nAn example:\n\n```sh\n{example}\n```\n"


def _row(action: argparse.Action) -> str:
    """An option with its values, or a positional argument."""
    values = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
    names = ", ".join(action.option_strings)
    return f"| `{' '.join(filter(None, [names, values]))}` | {action.help or ''} |"


def _sweep() -> str:
    """The usage that `spinbench sweep --help` prints, up to the groups."""
    template: str = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["hydra"]["help"]["template"]
    usage = template.partition("== Groups")[0].strip()
    link = (
        "[Configuration](configuration.md) has all groups and values; further flags are Hydra's, such as `--cfg job`.\n"
    )
    return f"```text\n{usage}\n```\n\n{link}"
