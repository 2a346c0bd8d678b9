"""`spinbench init`: writes the package that a plugin begins with, or begins a history."""

from __future__ import annotations

import builtins
import importlib.resources
import importlib.util
import keyword
import re
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template

from spinbench.errors import SpinbenchError
from spinbench.foundation import plugins
from spinbench.metrics import METRICS, MIXING
from spinbench.scaffold import history
from spinbench.scaffold.kinds import CLASSES, KINDS

TEMPLATES = "spinbench.scaffold.templates"

# Names without an entry point that are taken.
RESERVED = {"family": ("file",), "metric": (*METRICS, MIXING)}
# Largest number of letters of a module's name, which files and folders contain.
LONGEST = 100
# Module names that pytest and setuptools execute.
FILES = ("conftest", "setup")
# Words that a sweep's configuration reads as values and not as names.
VALUES = ("true", "false", "null", "nan", "inf")


@dataclass(frozen=True)
class Package:
    """A package that is to be written.

    Attributes:
        folder: for it; its name is that of the module.
        kind: of `KINDS`.
        name: of the entry point.

    Raises:
        SpinbenchError: the folder holds something, or one of the names is not valid or taken.
    """

    folder: Path
    kind: str
    name: str

    def __post_init__(self) -> None:
        if not _is_identifier(self.name) or self.name.lower() in VALUES:
            raise SpinbenchError(
                f"--{self.kind} {self.name} was given; a name of letters, digits and underscores is needed that begins "
                f"with a letter and is no word of Python, and none of {', '.join(VALUES)}"
            )
        if points := plugins.entry_points(KINDS[self.kind].groups[0]).get(self.name):
            owner = plugins.origin(points[0])
            raise SpinbenchError(f"--{self.kind} {self.name} was given; {owner} has one of this name")
        if self.name in RESERVED.get(self.kind, ()):
            raise SpinbenchError(f"--{self.kind} {self.name} was given; spinbench means something else by this name")
        if self.kind == "family" and self.name in _names_in(self.source):
            raise SpinbenchError(f"--family {self.name} was given; the template needs this name itself")
        if not _is_identifier(self.module) or self.module in FILES:
            raise SpinbenchError(
                f"{self.folder} was given; a folder is needed that can be a module: letters, digits and underscores, "
                f"but not {' or '.join(FILES)}"
            )
        if len(self.module) > LONGEST:
            raise SpinbenchError(f"{self.folder} was given; a name of {LONGEST} letters at most is needed")
        if _is_importable(self.module):
            raise SpinbenchError(f"{self.folder} was given; there is a module {self.module} already")
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise SpinbenchError(f"{self.folder} exists and is not empty; nothing was written")

    @property
    def module(self) -> str:
        """The module's name."""
        return self.folder.absolute().name.replace("-", "_")

    @property
    def source(self) -> str:
        """The template of the module."""
        return _template(KINDS[self.kind].source)

    def object(self, group: str) -> str:
        """What an entry point of this group names in the module: a class, or a family's function."""
        if group == "models":
            return self.name
        stem = "".join(part.capitalize() for part in self.name.split("_")).removesuffix(CLASSES[group])
        # "My", since the name of the base class is taken.
        return (stem or "My") + CLASSES[group]

    def files(self) -> dict[str, str]:
        """What is to be written, by name."""
        kind = KINDS[self.kind]
        points = []
        for place in kind.groups:
            group, _, backend = place.partition(".")
            point = f'"{self.name}.{backend}"' if backend else self.name
            points.append(
                f'[project.entry-points."spinbench.{group}"]\n{point} = "{self.module}:{self.object(group)}"\n'
            )
        loops = f"{self.module}_loops"
        call = kind.checks.format(name=self.name)
        names = {
            "distribution": self.module.replace("_", "-"),
            "points": "\n".join(points),
            "modules": ", ".join(f'"{module}"' for module in (self.module, loops)[: 1 + bool(kind.loops)]),
            "module": self.module,
            "name": self.name,
            "object": self.object(kind.groups[0]),
            "noun": kind.noun,
            "replaced": kind.replaced,
            "command": kind.command.format(name=self.name),
            "tests": "runs spinbench's conformance suite" if call else "tests what is known of it",
            "call": call,
            "checks": call.partition("(")[0],
        }
        texts = {
            "pyproject.toml": "pyproject.txt",
            f"test_{self.module}.py": "test_suite.txt" if call else f"test_{self.kind}.txt",
            "README.md": "readme.txt",
        }
        modules = {f"{self.module}.py": self.source}
        if kind.loops:
            modules[f"{loops}.py"] = _template(kind.loops)
        return {name: self._fill_in(source) for name, source in modules.items()} | {
            name: Template(_template(text)).substitute(names) for name, text in texts.items()
        }

    def _fill_in(self, source: str) -> str:
        source = source.replace("mine_loops", f"{self.module}_loops")
        for group, base in CLASSES.items():
            source = re.sub(rf"\bMy{base}\b", self.object(group), source)
        return re.sub(r"\bmine\b", self.name, source)

    def write(self) -> None:
        """Write all files.

        Raises:
            SpinbenchError: the folder cannot be written.
        """
        files = self.files()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise SpinbenchError(f"{self.folder} cannot be written: {error.strerror or error}") from error


def init(folder: Path, kind: str, name: str) -> list[str]:
    """Write a package.

    Args:
        folder: that does not exist, or is empty; its name becomes that of the module.
        kind: of `KINDS`.
        name: of the entry point.

    Returns:
        What was written, and what to do next: lines.

    Raises:
        SpinbenchError: as `Package`.
    """
    package = Package(folder, kind, name)
    package.write()
    written = [*package.files(), *history.track(folder)]
    command = KINDS[kind].command.format(name=name).splitlines()[-1]
    return [f"{folder}: {', '.join(written)}", f"next: pip install -e {folder}, then {command}"]


def _template(name: str) -> str:
    return (importlib.resources.files(TEMPLATES) / name).read_text(encoding="utf-8")


def _is_identifier(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and not keyword.iskeyword(name)


def _is_importable(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return True
    # A folder without __init__.py is no module.
    return spec is not None and spec.origin is not None


def _names_in(source: str) -> set[str]:
    """Words that a function of the template must not be called."""
    return {*re.findall(r"[A-Za-z_]\w*", source), *dir(builtins)} - {"mine"}


def run(arguments: Namespace) -> int:
    """Write it, and print what is there now; 0, the exit status."""
    names = {kind: getattr(arguments, kind.replace("-", "_")) for kind in KINDS}
    kind = next((kind for kind, name in names.items() if name is not None), None)
    write = history.init if kind is None else partial(init, kind=kind, name=names[kind])
    print("\n".join(write(arguments.folder)))
    return 0
