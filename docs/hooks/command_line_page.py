"""The page of the command line, from its parser."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from spinbench import cli

HEAD = """# Command line

`spinbench COMMAND --help` prints the same. `--debug` or `SPINBENCH_DEBUG=1` shows where an error comes from.

| exit status | meaning |
|---|---|
| 0 | done; for `run`, `advise`, `bracket`, `mixing` and `audit`: resolved, ok or passed |
| 1 | an answer that is not ok or not resolved, a tolerance that was not reached, a model without an exact answer, \
a cell or a check that failed, samples that fail an audit, figures that `rerun` does not find again, \
a regression that the gate found |
| 2 | an error of the user's, with one sentence on what to do |
| 130 | interrupted |
"""
CONF = Path(__file__).resolve().parents[2] / "conf"


def text() -> str:
    """Markdown."""
    commands = _commands(cli._parser())
    return HEAD + "".join(_command(name, parser, summary) for name, (parser, summary) in commands.items())


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[argparse.ArgumentParser, str]]:
    """Each command's parser and one line on it."""
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {name: (choice, summaries[name]) for name, choice in action.choices.items()}


def _command(name: str, parser: argparse.ArgumentParser, summary: str) -> str:
    head = f"\n## spinbench {name} {{ #{name} }}\n\n{summary[:1].upper()}{summary[1:]}.\n\n"
    if name == "sweep":  # its arguments are Hydra's
        return head + _sweep()
    usage = " ".join(parser.format_usage().removeprefix("usage:").split())
    rows = [_row(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    table = "\n".join(["| argument | |", "|---|---|", *rows]) if rows else "It takes no arguments."
    return f"{head}```text\n{usage}\n```\n\n{table}\n"


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
