"""The command line after `spinbench sweep`: Hydra's, and a few words of our own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.measuring.records import COMMAND_FILE

FLAGS = ("--resume", "--profile", "--multirun", "-m", "--help", "-h", "--cfg", "-c", "--resolve", "--info", "-i")
"""Of ours, and those of Hydra that make sense here."""


@dataclass(frozen=True)
class Arguments:
    """The command line after `spinbench sweep`.

    Attributes:
        flags: of Hydra, in its order.
        overrides: NAME=VALUE.
        resume: folder of the sweep to go on with.
        profile: whether to tell at the end where the time went.
    """

    flags: tuple[str, ...]
    overrides: tuple[str, ...]
    resume: Path | None
    profile: bool = False

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Arguments:
        """Flags may stand anywhere; `--resume FOLDER` without overrides takes those of the first start.

        Raises:
            SpinbenchError: the folder to resume is none of a sweep.
        """
        flags: list[str] = []
        overrides: list[str] = []
        resume: Path | None = None
        profile = "--profile" in argv
        rest = [word for word in argv if word != "--profile"]
        while rest:
            word = rest.pop(0)
            name, _, value = word.partition("=")
            if name == "--resume":
                folder = value or (rest.pop(0) if rest and word == name else "")
                if not folder or ("=" in folder and not Path(folder).exists()):
                    raise SpinbenchError("--resume needs the folder of a sweep: --resume FOLDER")
                resume = Path(folder)
            elif name in ("--cfg", "-c", "--info", "-i"):
                flags += [word] if value or not rest else [word, rest.pop(0)]
            elif word.startswith("-") and name not in FLAGS:
                plain = word.lstrip("-")
                raise SpinbenchError(
                    f"{word} is no flag of spinbench sweep; settings are given without dashes, as "
                    f"{plain if '=' in plain else f'{plain}=VALUE'}, and flags are {', '.join(FLAGS)}"
                )
            else:
                (flags if word.startswith("-") else overrides).append(word)
        if resume is not None:
            first = _first_overrides(resume)
            overrides = overrides or first
        return cls(tuple(flags), tuple(overrides), resume, profile)

    @property
    def multirun(self) -> bool:
        """Whether all combinations were asked for."""
        return bool({"-m", "--multirun"} & set(self.flags))


def _first_overrides(folder: Path) -> list[str]:
    try:
        return list(map(str, json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8"))["overrides"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpinbenchError(
            f"{folder} is not the folder of a sweep (it has no readable {COMMAND_FILE}), so there is nothing to resume"
        ) from error
