"""Compiled kernels on disk are kept apart by their sources: whatever becomes of them, what runs is what they say."""

from __future__ import annotations

import ast
import errno
import importlib
import os
import pkgutil
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core import caching, config
from numba.core.dispatcher import Dispatcher

from spinbench.backends import numba as backend
from spinbench.backends.numba import kernel_cache, machine_code


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


@pytest.mark.parametrize("settings", ["cache_dir: strange\ndebug: 1\n", "[[[: no YAML"], ids=["whole", "broken"])
@pytest.mark.parametrize(
    "words",
    [
        "from spinbench.backends.numba import NumbaBackend as b; b()",
        "from spinbench.reference.orders import plan; plan.min_fill_order([2], plan.np.zeros((0, 2), int), 0)",
    ],
)
def test_a_file_of_the_working_directory_chooses_no_folder(tmp_path: Path, words: str, settings: str) -> None:
    """Code that lies there would run."""
    (tmp_path / ".numba_config.yaml").write_text(settings)
    code = f"{words}; from numba.core import config; print(config.DEBUG, config.CACHE_DIR)"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("0 ")
    assert "strange" not in done.stdout


SOURCE = """
from spinbench.backends.numba.kernel_cache import njit

@njit(cache=True)
def kernel(x):
    return x + x
"""
TWO_TYPES = """
import sys
from pathlib import Path
from numba.core import config
from spinbench.backends.numba import kernel_cache

config.CACHE_DIR, kernel_cache.SOURCES = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, sys.argv[2])
from source import kernel
for kind in (int, float, complex)[:: int(sys.argv[3])]:
    assert kernel(kind(21)) == 42 and type(kernel(kind(21))) is kind
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A kernel from the folder's files as far as they serve."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "source.py").write_text(SOURCE)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "")
    monkeypatch.setattr(kernel_cache, "SOURCES", tmp_path / "sources")
    return lambda: runpy.run_path(str(tmp_path / "sources" / "source.py"))["kernel"]


def code_files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{suffix}"))


def hits(kernel: Any) -> int:
    return sum(kernel.stats.cache_hits.values())


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "foreign", "flipped", "gone"])
def test_damaged_files_are_made_anew(compiled, tmp_path, suffix, damage):
    assert compiled()(21) == 42
    intact = compiled()
    assert (intact(21), hits(intact)) == (42, 1)
    (file,) = code_files(tmp_path, suffix)
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    forms = {"empty": b"", "cut": content[:-10], "foreign": b"\x80\x05N.", "flipped": flipped}
    file.unlink() if damage == "gone" else file.write_bytes(forms[damage])
    repaired = compiled()
    assert (repaired(21), hits(repaired)) == (42, 0)
    again = compiled()
    assert (again(21), hits(again)) == (42, 1)


@pytest.mark.parametrize("damage", ["", "0123"])
def test_a_damaged_seal_costs_only_the_code(compiled, tmp_path, damage):
    assert compiled()(21) == 42
    (seal,) = tmp_path.rglob("seal")
    seal.write_text(damage)
    assert compiled()(21) == 42
    again = compiled()
    assert (again(21), hits(again)) == (42, 1)


def test_a_process_that_ends_between_code_and_seal_does_no_harm(compiled, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "_seal", lambda folder: None)
        assert compiled()(21) == 42
    kernel = compiled()
    assert (kernel(21), hits(kernel)) == (42, 0)


def test_processes_that_compile_one_kernel_at_once_get_their_own_code(compiled, tmp_path):
    """For different arguments: each is compiled once, the others wait for it."""
    command = [sys.executable, "-c", TWO_TYPES, str(tmp_path / "code"), str(tmp_path / "sources")]
    started = [subprocess.Popen([*command, str(1 - 2 * (k % 2))], stdout=subprocess.PIPE, text=True) for k in range(8)]
    counts = [process.communicate(timeout=300)[0].split() for process in started]
    assert all(process.returncode == 0 for process in started)
    assert sum(int(misses) for _, misses in counts) == 3
    after = subprocess.run([*command, "1"], capture_output=True, text=True, check=True)
    assert after.stdout.split() == ["3", "0"]


@pytest.mark.parametrize("step", ["replace", "makedirs"])
def test_a_full_disk_costs_only_the_cache(compiled, tmp_path, monkeypatch, step):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(caching.os, "replace", full)
    if step == "makedirs":
        monkeypatch.setattr(Path, "mkdir", full)
        monkeypatch.setattr(os, "makedirs", full)
    kernel = compiled()
    assert (kernel(21), kernel(0.5)) == (42, 1.0)
    assert not code_files(tmp_path / "code", "nb?")


def test_two_installations_of_the_same_sources_share_code(compiled, tmp_path, monkeypatch):
    assert compiled()(21) == 42
    (tmp_path / "sources").rename(tmp_path / "moved")
    monkeypatch.setattr(kernel_cache, "SOURCES", tmp_path / "moved")
    kernel = runpy.run_path(str(tmp_path / "moved" / "source.py"))["kernel"]
    assert (kernel(21), hits(kernel)) == (42, 1)


def test_a_change_of_what_a_kernel_calls_counts(compiled, monkeypatch):
    """Numba itself looks at the file of the function alone; the digest is that of all sources."""
    assert compiled()(21) == 42
    monkeypatch.setattr(kernel_cache.machine_code, "sources_digest", lambda: "of changed sources")
    kernel = compiled()
    assert (kernel(21), hits(kernel)) == (42, 0)


def test_all_kernels_on_disk_are_guarded() -> None:
    unguarded = set()
    for module in pkgutil.walk_packages(backend.__path__, f"{backend.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and value.targetoptions.get("cache") and "compile" not in vars(value):
                unguarded.add(f"{module.name}.{name}")
    assert not unguarded


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked there")
def test_a_forked_process_compiles_for_other_types(compiled, tmp_path):
    kernel = compiled()
    assert kernel(21) == 42
    child = os.fork()
    if not child:
        try:
            os._exit(0 if kernel(0.5) == 1.0 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kernel_cache.is_whole(Path(kernel.stats.cache_path))
    assert len(code_files(tmp_path, "nbc")) == 2
