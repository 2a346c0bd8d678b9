"""The command line after `spinbench sweep`: Hydra's, and a few words of our own."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import unknown_name
from spinbench.measuring.records import COMMAND_FILE

# Flags of `spinbench sweep` and those of Hydra that it accepts.
FLAGS = (
    "--resume", "--profile", "--multirun", "-m", "--config-dir", "-cd",
    "--help", "-h", "--hydra-help", "--cfg", "-c", "--resolve", "--info", "-i",
)  # fmt: skip

_MULTIRUN = {"-m", "--multirun"}

# Hydra's flags that select another application's configurations.
_OF_ANOTHER_APPLICATION = ("--config-path", "-cp", "--config-name", "-cn")

# Overrides that a file of overrides may contain: they define what is measured and how many cells run in parallel, and
# execute no code. Therefore a group's value must not leave its group, "$" (interpolation) is refused, and so are line
# breaks, since lines become scripts on clusters.
_OF_A_CELL = re.compile(
    r"\+{0,2}(?!(hydra|commits)\b)(?!launcher\.address\b)"
    r"(\w+(/\w+)*\.[\w./]+=|sweep_dir=|\w+(/\w+)*=(?!/)(?!.*(\.\.|\\|[:,'\"\[( ]/)))(?!.*(_target_|[\$\x00-\x1f])).*",
    re.DOTALL,
)

_COMMITS = "commits="

# Hydra's settings for the folder of results, which is `sweep_dir` here for one cell and for several.
_FOLDER = re.compile(r"\+{0,2}hydra\.(?:sweep|run)\.dir=")

# What may be another when a sweep is resumed: who runs its cells, and for how long.
_OF_THE_CALL = re.compile(r"\+{0,2}(?:launcher|hydra/launcher|hydra\.launcher|time_limit|sweep_dir)\b")

# The same, and what a search may go on with.
_NOT_OF_CELLS = re.compile(rf"{_OF_THE_CALL.pattern}|\+{{0,2}}hydra\b")

_OF_A_FILE = re.compile(r"\+{0,2}model\.(?:path|evidence|corpus)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Arguments:
    """The command line after `spinbench sweep`.

    Attributes:
        flags: of Hydra, in its order, but `--multirun`.
        overrides: NAME=VALUE.
        resume: folder of the sweep to go on with.
        multirun: whether all combinations were asked for.
        profile: whether to tell at the end where the time went.
    """

    flags: tuple[str, ...]
    overrides: tuple[str, ...]
    resume: Path | None
    multirun: bool = False
    profile: bool = False

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Arguments:
        """Flags may stand anywhere; `--resume FOLDER` without overrides takes those of the first start.

        Raises:
            SpinbenchError: the folder to resume is none of a sweep, has other cells, asks for more than a file may, or
                has relative paths and was started elsewhere.
        """
        flags: list[str] = []
        overrides: list[str] = []
        resume: Path | None = None
        profile, multirun = "--profile" in argv, not _MULTIRUN.isdisjoint(argv)
        rest = (argument for argument in argv if argument not in ("--profile", *_MULTIRUN))
        for argument in rest:
            name, _, value = argument.partition("=")
            if name == "--resume":
                folder = value
                if argument == name:
                    folder = next(rest, "")
                if not folder or ("=" in folder and not Path(folder).exists()):
                    raise SpinbenchError("--resume needs the folder of a sweep: --resume FOLDER")
                resume = Path(folder)
            elif name in ("--cfg", "-c", "--info", "-i"):
                flags.append(argument)
                if not value:
                    flags += itertools.islice(rest, 1)
            elif name in ("--config-dir", "-cd"):
                overrides.append(_searchpath_override(value or next(rest, "")))
            elif name in _OF_ANOTHER_APPLICATION:
                raise SpinbenchError(
                    f"{name} would replace spinbench's own configurations; configurations of yours, as of "
                    "experiment/mine.yaml, are found beside them with --config-dir FOLDER"
                )
            elif argument.startswith("-") and name not in FLAGS:
                # Here and not above: only a misspelt flag needs it.
                from difflib import get_close_matches

                # Above the default of 0.6, at which `--model=grid` would suggest --help.
                if get_close_matches(name, FLAGS, cutoff=0.75):
                    raise unknown_name("option of spinbench sweep", name, FLAGS)
                plain = argument.lstrip("-")
                raise SpinbenchError(
                    f"{argument} is no flag of spinbench sweep; settings are given without dashes, as "
                    f"{plain if '=' in plain else f'{plain}=VALUE'}, and flags are {', '.join(FLAGS)}"
                )
            else:
                (flags if argument.startswith("-") else overrides).append(_FOLDER.sub("sweep_dir=", argument))
        if resume is not None:
            first = read_command(resume)
            of_the_call = list(filter(_OF_THE_CALL.match, overrides))
            if len(of_the_call) == len(overrides):
                changed = set(map(_key, of_the_call))
                stored = _check_stored_overrides(resume, *first)
                overrides = [line for line in stored if _key(line) not in changed] + of_the_call
            else:
                _check_same_cells(resume, first[0], overrides)
        return cls(tuple(flags), tuple(overrides), resume, multirun, profile)

    @property
    def commits(self) -> str | None:
        """Which commits are to be measured; None: the one that is checked out."""
        selections = [line.removeprefix(_COMMITS) for line in self.overrides if line.startswith(_COMMITS)]
        return next(reversed(selections), None)

    @property
    def of_cells(self) -> tuple[str, ...]:
        """The overrides without the commits."""
        return tuple(line for line in self.overrides if not line.startswith(_COMMITS))

    def again(self, folder: str) -> str:
        """The command that goes on with this sweep."""
        overrides = () if all(map(_OF_A_CELL.fullmatch, self.overrides)) else self.overrides
        return shlex.join(["spinbench", "sweep", "--resume", folder, *overrides])


def _searchpath_override(folder: str) -> str:
    """Hydra's override for config groups of the user's own."""
    if not Path(folder or "-").is_dir():
        raise SpinbenchError(
            f"--config-dir {folder} was given; the folder of config groups is needed, as of model/mine.yaml"
        )
    escaped = str(Path(folder).absolute()).replace("'", "\\'")
    return f"hydra.searchpath=['file://{escaped}']"


def _key(line: str) -> str:
    return line.partition("=")[0]


def read_command(folder: Path) -> tuple[list[str], str]:
    """The overrides that a sweep was started with, and where."""
    try:
        content = json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8"))
        return list(map(str, content["overrides"])), str(content["started_in"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SpinbenchError(
            f"{folder} is not the folder of a sweep (it has no readable {COMMAND_FILE}), so there is nothing to resume"
        ) from error


def _check_same_cells(folder: Path, stored: Sequence[str], given: Sequence[str]) -> None:
    """Raises SpinbenchError where the values differ that cells are made of, in whatever order."""
    first, again = ({_key(line): line for line in lines if not _NOT_OF_CELLS.match(line)} for lines in (stored, given))
    keys = first.keys() | again.keys()
    differ = [key for key in sorted(keys) if _values(first.get(key, "")) != _values(again.get(key, ""))]
    if differ:
        theirs, ours = (shlex.join(lines[key] for key in differ if key in lines) for lines in (first, again))
        raise SpinbenchError(
            f"--resume {folder} goes on with its cells, of {theirs or 'defaults'}, and {ours or 'nothing'} was given; "
            "give what was given first, or start another sweep, into the same folder with sweep_dir=FOLDER"
        )


def _values(line: str) -> list[str]:
    """Sorted; of files their names, since the folder that they lie in may have another path."""
    values = line.partition("=")[2].split(",")
    if _OF_A_FILE.fullmatch(line):
        values = [Path(value.strip(" '\"[]")).name for value in values]
    return sorted(values)


def _check_stored_overrides(folder: Path, overrides: list[str], started_in: str) -> list[str]:
    again = "spinbench sweep --resume FOLDER NAME=VALUE …"
    for line in overrides:
        if not _OF_A_CELL.fullmatch(line):
            raise SpinbenchError(
                f"{folder / COMMAND_FILE} asks for {line!r}, which is not taken from a file, as it may run code; give "
                f"all overrides again: {again}"
            )
        if _is_relative(line) and Path(started_in) != Path.cwd():
            raise SpinbenchError(
                f"{folder} belongs to a sweep with {line!r} that was started in {started_in}; go on there, or give all "
                f"overrides again: {again}"
            )
    return overrides


def _is_relative(line: str) -> bool:
    """Whether one of its values is a path that is looked for where one stands."""
    match = _OF_A_FILE.fullmatch(line)
    return match is not None and any(not value.strip(" '\"[").startswith("/") for value in match[1].split(","))
