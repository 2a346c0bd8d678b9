"""`spinbench init`: what it writes works under any valid name, and what it refuses is left as it was."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.scaffold.package import KINDS, Package

ROOT = Path(__file__).parents[3]


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_linters_find_nothing(kind: str, tmp_path: Path) -> None:
    assert cli.main(["init", str(tmp_path / "my_package"), f"--{kind}", "mine"]) == 0
    for command in (["check", "--no-cache", "--select=E,F,I,W"], ["format", "--no-cache", "--check"]):
        done = subprocess.run(["ruff", *command, "."], cwd=tmp_path / "my_package", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_type_checker_finds_nothing(tmp_path: Path) -> None:
    """`mypy --strict`, with spinbench's own types as the wheel has them."""
    for kind in KINDS:
        assert cli.main(["init", str(tmp_path / f"my_{kind}"), f"--{kind}", "mine"]) == 0
    package = tmp_path / "types" / "spinbench"
    package.mkdir(parents=True)
    for part in (*(ROOT / "harness").iterdir(), *(ROOT / name for name in ("backends", "methods", "conf"))):
        (package / part.name).symlink_to(part)
    options = ("--strict", "--follow-imports=silent", "--cache-dir=/dev/null")
    files = [str(path) for path in sorted(tmp_path.glob("my_*/*.py"))]
    variables = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy", *options, *files]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(files) == sum(2 + bool(kind.loops) for kind in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ising_2", "Backend", "method", "State", "x"])
def test_names_are_filled_in_everywhere(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "my-new_package"
    assert cli.main(["init", str(folder), f"--{kind}", name]) == 0
    assert f"pip install -e {folder}" in capsys.readouterr().out
    files = written(folder)
    modules = ["my_new_package", "my_new_package_loops"] if KINDS[kind].loops else ["my_new_package"]
    shared = {"pyproject.toml", "test_my_new_package.py", "README.md", "asv.conf.json", ".gitignore"}
    assert set(files) == {*shared, *(f"{module}.py" for module in modules)}
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["name"] == "my-new-package"
    groups = project["project"]["entry-points"]
    assert list(groups) == [f"spinbench.{place.partition('.')[0]}" for place in KINDS[kind].groups]
    assert project["tool"]["setuptools"]["py-modules"] == modules
    tree = ast.parse(files["my_new_package.py"])
    defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    imported = {alias.asname or alias.name for n in tree.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    attributes = []
    for points in groups.values():
        ((point, target),) = points.items()
        module, _, attribute = target.partition(":")
        assert (point.partition(".")[0], module) == (name, "my_new_package")
        assert defined.count(attribute) == 1
        assert attribute not in imported
        attributes.append(attribute)
    cells = (folder / "benchmarks" / "cells.yaml").read_text(encoding="utf-8")
    workflow = (folder / ".github" / "workflows" / "track-regressions.yml").read_text(encoding="utf-8")
    if kind not in ("format", "metric", "bound"):
        assert f"[{name}]" in cells
        assert f"={name}" in workflow
    compile(files["test_my_new_package.py"], "test", "exec")
    for text in files.values():
        assert "$" not in text
        assert "mine" not in text
        assert "class My" not in text or {"MyBackend", "MyMethod", "MyBound"} & {*attributes}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new", "--method", "a.b"), "a name of letters, digits and underscores is needed that begins with a letter"),
        (("new", "--method", "2nd"), "a name of letters"),
        (("new", "--method", "class"), "a name of letters"),
        (("new", "--backend", "Null"), "a name of letters"),
        (("new", "--backend", "é"), "a name of letters"),
        (("new", "--backend", ""), "a name of letters"),
        (("new", "--method", "gibbs"), "has one of this name"),
        (("new", "--family", "grid"), "has one of this name"),
        (("new", "--family", "file"), "--family file was given; spinbench means something else by this name"),
        (("new", "--metric", "log_z_error"), "spinbench means something else by this name"),
        (("setup", "--method", "mine"), "a folder is needed that can be a module"),
        (("new", "--family", "np"), "the template needs this name itself"),
        (("new", "--family", "range"), "the template needs this name itself"),
        (("numpy", "--method", "fresh"), "there is a module numpy already"),
        (("a.b", "--method", "fresh"), "a folder is needed that can be a module"),
        (("..", "--method", "fresh"), "a folder is needed that can be a module"),
        (("1st", "--method", "fresh"), "a folder is needed that can be a module"),
    ],
)
def test_wrong_names_are_refused_before_anything_is_written(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "taken"
    folder.mkdir()
    for path in (folder / "notes", tmp_path / "file"):
        path.write_text("mine")
    for path, why in (
        (folder, "exists and is not empty; nothing was written"),
        (tmp_path / "file", "exists and is not empty; nothing was written"),
        (tmp_path / "file" / "new", "cannot be written: Not a directory"),
    ):
        assert cli.main(["init", str(path), "--method", "fresh"]) == 2
        assert f"{path} {why}" in capsys.readouterr().err
    assert (written(folder), (tmp_path / "file").read_text()) == ({"notes": "mine"}, "mine")
    (folder / "notes").unlink()
    assert cli.main(["init", str(folder), "--method", "fresh"]) == 0


def test_an_empty_folder_is_filled_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(tmp_path))  # as `python -m` has it: an empty folder is no module
    assert cli.main(["init", ".", "--backend", "fresh"]) == 0
    assert "here.py" in written(tmp_path / "here")


def test_names_of_others_are_taken(install_plugin: Callable[..., Path], tmp_path: Path) -> None:
    install_plugin("otherplugin", "", {"methods": {"fresh": "Fresh"}})
    with pytest.raises(SpinbenchError, match=r"otherplugin 1\.0 has one of this name"):
        Package(tmp_path / "new", "method", "fresh")
    Package(tmp_path / "new", "backend", "fresh")


def test_two_kinds_are_refused() -> None:
    assert cli.main(["init", "new", "--method", "a", "--backend", "b"]) == 2
