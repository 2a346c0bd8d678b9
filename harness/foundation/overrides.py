"""NAME=VALUE as Hydra's grammar has it, and the command line that measures a cell again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

_PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)(?:[A-Za-z_/]|\.{1,2}/)[\w./-]*", re.IGNORECASE | re.ASCII)
_EVIDENCE_FILE = re.compile(r"\.evid(?:\.\w+)?$", re.IGNORECASE)


def is_assignment(evidence: object) -> bool:
    """Whether evidence is the text VARIABLE=STATE, and not the path of a file."""
    return isinstance(evidence, str) and "=" in evidence and not _EVIDENCE_FILE.search(evidence)


def format_value(value: object) -> str:
    """A value: texts that Hydra could read as something else, 12e3 as a number, are in quotes."""
    if isinstance(value, str):
        # "${" is escaped: OmegaConf would read it as a reference to another setting.
        literal = re.sub(r"(\\*)\$\{", lambda match: 2 * match[1] + "\\${", value)
        return literal if _PLAIN.fullmatch(literal) else quote(literal)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{format_value(item)}" for key, item in value.items()) + "}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def quote(text: str) -> str:
    """A text in quotes."""
    escaped = re.sub(r"(\\*)('|$)", lambda match: 2 * match[1] + match[2].replace("'", "\\'"), text)
    return f"'{escaped}'"


def command(settings: Mapping[str, object]) -> str:
    """`spinbench sweep` with these values, to be typed into a shell."""
    return shlex.join(["spinbench", "sweep", *(f"{name}={format_value(value)}" for name, value in settings.items())])


def of_cell(config: Mapping[str, object], seeds: Iterable[int]) -> str:
    """The command that measures a record's cell, with all of its settings.

    Args:
        config: of the record.
        seeds: in place of its own.
    """
    return f"{command(dict(_settings(config)))} seed={','.join(map(str, seeds))}"


def _settings(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in config.items():
        if name == "seed":
            continue
        if not isinstance(value, Mapping):
            yield name, value
            continue
        if "name" in value:
            yield name, value["name"]
        yield from ((f"{name}.{key}", item) for key, item in value.items() if key != "name")
