"""Compiled kernels are kept apart by their sources, so that an update never measures old machine code."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinbench.backends.numba import machine_code


def forget() -> None:
    machine_code.sources_digest.cache_clear()
    machine_code.numba_folder.cache_clear()


@pytest.mark.parametrize("name", ["backends/numba/helper.py", f"methods/{machine_code.CONSTANTS[0]}"])
def test_a_changed_source_gets_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for path in ("backends/numba/helper.py", *(f"methods/{constants}" for constants in machine_code.CONSTANTS)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("a = 1\n")
    monkeypatch.setattr(machine_code, "__file__", str(tmp_path / "backends" / "numba" / "machine_code.py"))
    named = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / name).write_text(text)
        forget()
        named.append(machine_code.numba_folder().name)
    forget()
    assert named[0] == named[2] != named[1]


def outer_names(source: Path) -> set[str]:
    """Modules of spinbench outside the kernels' folder whose names functions with a decorator or constants read, and
    of functions that are compiled as they are."""
    tree = ast.parse(source.read_text())
    imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and one.module]
    outer = {
        name.asname or name.name: str(one.module)
        for one in imports
        for name in one.names
        if str(one.module).startswith("spinbench.") and not str(one.module).startswith("spinbench.backends")
    }
    compiled = [
        one
        for one in ast.walk(tree)
        if (isinstance(one, ast.FunctionDef) and "njit" in " ".join(map(ast.unparse, one.decorator_list)))
        or (isinstance(one, ast.Assign) and one in tree.body)
    ]
    read = {name.id for one in compiled for name in ast.walk(one) if isinstance(name, ast.Name)}
    made = [one for one in tree.body if isinstance(one, ast.Assign) and "njit" in ast.unparse(one.value)]
    functions = {name.id for one in made for name in ast.walk(one) if isinstance(name, ast.Name)}
    return {outer[name] for name in read if name in outer and (name.isupper() or name in functions)}


def test_modules_whose_constants_are_compiled_are_named() -> None:
    """Else a changed constant would leave the machine code as it was."""
    found = set().union(*map(outer_names, Path(machine_code.__file__).parent.rglob("*.py")))
    assert found == {f"spinbench.methods.{name[:-3].replace('/', '.')}" for name in machine_code.CONSTANTS}


def test_folders_of_older_sources_are_removed_when_nobody_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path))
    compiled = tmp_path / "compiled"
    days = {"numba-a": 0.5, "numba-b": 0.6, "numba-c": 0.7, "numba-d": 0.8, "numba-e": 2, "numba-f": 30, "jax": 99}
    for name, age in days.items():
        (compiled / name).mkdir(parents=True)
        (compiled / name / "kernel.nbi").write_text("")
        os.utime(compiled / name, (time.time() - age * 86_400,) * 2)
    forget()
    own = machine_code.numba_folder()
    forget()
    left = {path.name for path in compiled.iterdir()}
    # a to c are the last used, d was used today
    assert left == {own.name, "jax", "numba-a", "numba-b", "numba-c", "numba-d"}


@pytest.mark.parametrize("chosen", [False, True], ids=["own", "chosen"])
def test_kernels_are_compiled_into_that_folder(tmp_path: Path, chosen: bool) -> None:
    """Or into one below the folder that the user chose."""
    code = (
        "from spinbench import run, PairwiseModel; from spinbench.backends.numba import machine_code;"
        "run(PairwiseModel.from_edges([0.1, 0.2], [(0, 1)], [0.3]), 'bp', 'numba');"
        "print(sum(machine_code.sources_digest() in str(path) for path in PLACE.rglob('*.nbi')))"
    ).replace("PLACE", f"__import__('pathlib').Path({str(tmp_path)!r})")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["SPINBENCH_CACHE_DIR"] = str(tmp_path / "cache")
    if chosen:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "chosen")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0
