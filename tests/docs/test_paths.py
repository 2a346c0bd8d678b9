"""Paths, modules, code and commands, wherever prose and pages mention them: they exist, run and parse."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from markdown_blocks import PAGES, ROOT, blocks, check_printed, commands

from spinbench.cli import build_parser
from spinbench.sweeping import composition
from spinbench.sweeping.arguments import Arguments

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


# Pages whose Python another test runs.
ELSEWHERE = {
    "README.md": "tests/docs/test_followed_pages.py",
    "docs/tutorial.md": "tests/docs/test_followed_pages.py",
    "docs/how-to/compare-methods.md": "tests/docs/test_followed_pages.py",
    "docs/how-to/add-a-method.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-backend.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-model-family.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-model-format-or-metric.md": "tests/test_how_tos.py",
}

# In commands that need what the reader writes or installs: a plugin (which tests/test_how_tos.py and
# test_followed_pages.py run), a configuration, ray.
OF_THE_READER = ("mine", "hydra.searchpath", "launcher=ray")

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
WITH_PYTHON = [
    name
    for name in NAMES
    if name not in ELSEWHERE and any(one.language == "python" and not one.skipped for one in blocks(ROOT / name))
]


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "".join(one.text for one in blocks(ROOT / name) if one.language == "python" and not one.skipped)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), {"__name__": "page"})
    check_printed(source, printed.getvalue())


@pytest.mark.parametrize("name", [name for name in NAMES if "```sh" in (ROOT / name).read_text(encoding="utf-8")])
def test_commands_parse(name: str) -> None:
    found = [line for one in blocks(ROOT / name) if one.language == "sh" for line in commands(one)]
    for line in found:
        words = shlex.split(line)[1:]
        if any(word in line for word in OF_THE_READER):
            continue
        if words[0] != "sweep":
            build_parser().parse_args(words)
        elif not {"--help", "--resume", "--profile"} & set(words):
            given = Arguments.parse(words[1:])
            compose(given.of_cells, given.multirun)


@cache
def compose(overrides: tuple[str, ...], multirun: bool) -> None:
    """Once for the same command on several pages."""
    composition.plan(overrides, multirun=multirun)
