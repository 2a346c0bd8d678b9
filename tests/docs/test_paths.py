"""Paths of the checkout and names of modules, wherever prose, comments and configuration mention them, exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from markdown_blocks import ROOT

FOLDERS = ("harness", "backends", "methods", "conf")
MENTIONING = (
    *(ROOT / name for name in ("README.md", "pyproject.toml", "mkdocs.yml", "asv.conf.json")),
    *(path for folder in (*FOLDERS, ".ci", "docs", "benchmarks") for path in sorted((ROOT / folder).rglob("*"))),
)
KINDS = ("", ".py", ".md", ".toml", ".yml", ".yaml", ".json")
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in MENTIONING
    if path.is_file() and path.suffix in KINDS and path.parent.name != "frozen"  # figures of an earlier commit
}
_PATH = re.compile(r"(?<![\w./-])(?:harness|backends|methods|conf|tests|docs|benchmarks|\.ci)/[\w./*{}-]*[\w*}/]")
_PLACEHOLDER = re.compile(r"\{[^}]*\}|\b[A-Z]+\b(?![.]md)")
_MODULE = re.compile(r"(?<![\w.])spinbench(?:\.[a-z_0-9]+)+(?::\w+|(?:\.\w+)?)")
_RESOLVER = re.compile(r"register_resolver\(\"([\w.]+)\"")


def test_paths_exist() -> None:
    missing = {
        f"{file}: {path}"
        for file, text in TEXTS.items()
        for path in _PATH.findall(text)
        if not any(ROOT.glob(_PLACEHOLDER.sub("*", path)))
    }
    assert missing == set()


def test_modules_exist() -> None:
    resolvers = set(_RESOLVER.findall(TEXTS["harness/sweeping/composition.py"]))
    groups = set(tomllib.loads(TEXTS["pyproject.toml"])["project"]["entry-points"])
    missing = {
        f"{file}: {name}"
        for file, text in TEXTS.items()
        for name in _MODULE.findall(text)
        if name.partition(":")[0] not in resolvers | groups and not _resolves(name)
    }
    assert missing == set()


def test_modules_are_looked_for() -> None:
    assert _resolves("spinbench.inference.runner.run")
    assert _resolves("spinbench.run")
    assert not _resolves("spinbench.inference.runner.walk")
    assert not _resolves("spinbench.inference.walker")


def _resolves(name: str) -> bool:
    """Whether it is a module, or a name that a module defines or imports."""
    parts = name.replace(":", ".").split(".")[1:]
    for length in range(len(parts), -1, -1):
        if (place := _place(parts[:length])) is not None:
            return length == len(parts) or parts[length] in _defined(place)
    return False


def _place(parts: list[str]) -> Path | None:
    """The file or the folder of a module; of the package itself, harness/."""
    home = ROOT if parts and parts[0] in FOLDERS else ROOT / "harness"
    place = home.joinpath(*parts)
    if parts and place.with_suffix(".py").is_file():
        return place.with_suffix(".py")
    return place if place.is_dir() else None


@cache
def _defined(place: Path) -> set[str]:
    found: set[str] = set()
    file = place / "__init__.py" if place.is_dir() else place
    if not file.is_file():  # of configurations
        return found
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                found.add(node.name)
            case ast.Import() | ast.ImportFrom():
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
    return found
