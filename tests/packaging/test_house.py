"""The rules of the house, names of methods that the harness knows, and the list of tests that the gate leaves out."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import thorough

from spinbench.foundation import plugins

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "harness": "spinbench",
    "backends": "spinbench.backends",
    "methods": "spinbench.methods",
    "conf": "spinbench.conf",
}
FILES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
(LAYERS,) = (contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")

MOST_PARAMETERS = 9
DOOR = "harness/inference/runner.py:run"
# `spinbench.run` is the one public door: all that can be asked of a run is a keyword there, so that it is found in one
# signature and one docstring. Behind the door no function takes so many.
DOOR_OPTIONS = (
    "chains",
    "seed",
    "burn_in",
    "precision",
    "device",
    "start",
    "checkpoints",
    "tier",
    "kernel",
    "simplify",
    "until",
    "keep",
    "keep_in",
    "target",
    "settings",
)


@cache
def trees() -> dict[str, ast.Module]:
    return {file: ast.parse(text) for file, text in FILES.items()}


def test_a_folder_holds_at_most_twenty_modules() -> None:
    modules = Counter(str(Path(file).parent) for file in FILES if not file.endswith("__init__.py"))
    assert {folder: count for folder, count in modules.items() if count > 20} == {}


def test_the_top_of_harness_holds_at_most_eight_files() -> None:
    assert len([path for path in (ROOT / "harness").iterdir() if path.is_file()]) <= 8


def test_files_are_short() -> None:
    lines = {file: text.count("\n") for file, text in FILES.items()}
    assert statistics.median(lines.values()) <= 150
    assert sum(count > 280 for count in lines.values()) <= 0.05 * len(lines)
    assert {file: count for file, count in lines.items() if count > 320} == {}


def test_functions_are_short() -> None:
    lines = [node.end_lineno - node.lineno + 1 for _, node in _functions() if node.end_lineno]
    assert sum(count > 30 for count in lines) <= 0.05 * len(lines)


def test_functions_take_few_parameters() -> None:
    counts = [(name, len(_parameters(node))) for name, node in _functions() if name != DOOR]  # some share their name
    assert [(name, count) for name, count in counts if count > MOST_PARAMETERS] == []


def test_the_door_takes_what_is_listed_here() -> None:
    names = _parameters(dict(_functions())[DOOR])
    assert names[-len(DOOR_OPTIONS) :] == list(DOOR_OPTIONS)
    assert len(names) - len(DOOR_OPTIONS) <= MOST_PARAMETERS


def test_what_is_installed_has_the_entry_points_of_this_checkout() -> None:
    """An editable install keeps those it was made with."""
    for group, points in PROJECT["project"]["entry-points"].items():
        own = [all_of[0] for all_of in plugins.entry_points(group.removeprefix("spinbench.")).values()]
        installed = {point.name: point.value for point in own if plugins.distribution(point) == plugins.OWN}
        assert installed == points, f"{group} differs; run again: pip install -e ."


def test_strings_name_no_module_above() -> None:
    """What is imported by a name in a string escapes the contract of imports. Entry points stand in pyproject.toml."""
    assert _upward(_modules_in_strings) == set()


def test_names_of_the_whole_package_come_from_no_module_above() -> None:
    """`spinbench.run` is imported when it is asked for, so that the contract of imports does not see from where."""
    assert _upward(_modules_behind_names) == set()


@pytest.mark.parametrize(
    "code", ["from spinbench import run", "import spinbench as sb\nsb.run", "import spinbench.errors\nspinbench.run"]
)
def test_names_of_the_whole_package_are_known_by_their_modules(code: str) -> None:
    assert list(_modules_behind_names(ast.parse(code))) == ["spinbench.inference.runner"]


def test_modules_in_strings_are_found_where_their_ends_are_not_known() -> None:
    code = 'import_module(f"spinbench.inference.{name}"), import_module("spinbench.cli:main")'
    assert set(_modules_in_strings(ast.parse(code))) == {"spinbench.inference", "spinbench.cli"}


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file}:{node.name}", node


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Names, without those of an object or a class itself."""
    given = node.args
    positional = [one.arg for one in (*given.posonlyargs, *given.args)]
    rest = [one.arg for one in (given.vararg, *given.kwonlyargs, given.kwarg) if one is not None]
    return positional[positional[:1] in (["self"], ["cls"]) :] + rest


def _upward(modules: Callable[[ast.Module], Iterator[str]]) -> set[str]:
    """Files, with the modules of higher floors that they name."""
    return {
        f"{file}: {name}"
        for file, tree in trees().items()
        if file != "harness/__init__.py"  # the names of the whole package
        for name in modules(tree)
        if _height(name) > _height(_module(file))
    }


def _modules_behind_names(tree: ast.Module) -> Iterator[str]:
    """Homes of what is taken from the package itself, by `from spinbench import` or as an attribute."""
    (homes,) = (
        ast.literal_eval(node.value)
        for node in trees()["harness/__init__.py"].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME"
    )
    nodes = list(ast.walk(tree))
    packages = {
        alias.asname or "spinbench"
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "spinbench" or (alias.name.startswith("spinbench.") and not alias.asname)
    }
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "spinbench":
            yield from (homes[alias.name] for alias in node.names if alias.name in homes)
        elif isinstance(node, ast.Attribute) and node.attr in homes and ast.unparse(node.value) in packages:
            yield homes[node.attr]


def _modules_in_strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0].removesuffix(".")  # of an f-string, the begin
            if re.fullmatch(r"spinbench(\.\w+)+", name) and _is_module(name):
                yield name


def _is_module(name: str) -> bool:
    return any(_module(file) == name for file in FILES)


def _module(file: str) -> str:
    folder, _, rest = file.removesuffix(".py").removesuffix("/__init__").partition("/")
    return ".".join(filter(None, [FOLDERS[folder], rest.replace("/", ".")]))


def _height(module: str) -> int:
    """Of the module's floor, counted from the ground."""
    name = module.split(".")[1]
    (level,) = (i for i, layer in enumerate(reversed(LAYERS)) if name in layer.split(" | "))
    return level


TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("test", "expected"),
    [("a.py::test_b[jax-one]", True), ("a.py::test_b[jax-two]", False), ("a.py::test_c[jax]", False)],
)
def test_all_words_must_be_there_and_no_other(test: str, expected: bool) -> None:
    assert thorough.left_out(test, (("zzz",), ("test_b", "jax", "!two"))) is expected


def test_each_line_names_a_file_or_a_function() -> None:
    files = [
        (file.name, re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8")))
        for file in TESTS.rglob("test_*.py")
    ]

    def holds(file: str, functions: list[str], names: list[str]) -> bool:
        return all(name == file or any(function.startswith(name) for function in functions) for name in names)

    for names in map(thorough.names, thorough.lines()):
        assert names
        assert any(holds(*file, names) for file in files), f"no file has all of {names}"


HARNESS = Path(__file__).resolve().parents[2] / "harness"
# Papers and templates are about methods by name, and the defaults are names.
APART = ("papers/", "scaffold/", "foundation/defaults.py")
# Names that also say something else: a grade of log Z, and libraries that the harness itself uses.
OTHER_MEANINGS = ("exact", "numpy", "pgmpy", "pyagrum")
# Texts that are names, and imports from `spinbench.methods` and `spinbench.backends`, by file. These numbers may fall.
NAMED = {
    "api/types.py": 1,
    "history/suite/kernels.py": 16,
    "inference/advising/advice.py": 1,
    "inference/answers.py": 3,
    "inference/bracketing/sources.py": 1,
    "inference/checks/disconnected_support.py": 2,
    "inference/checks/probes.py": 2,
    "inference/checks/weight_bounds.py": 3,
    "inference/engine.py": 1,
    "measuring/cells.py": 4,  # what 0.1.0 wrote does not change
    "reference/answering.py": 1,
    "reference/counting/ganak.py": 2,
    "testing/__init__.py": 1,
    "testing/streams.py": 1,
}


def names_used(tree: ast.Module, names: set[str]) -> int:
    """How often a module has such a name as a text, or imports what belongs to a method or a backend."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    texts = sum(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in names
        and id(node) not in docstrings
        for node in ast.walk(tree)
    )
    imports = sum(
        isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("spinbench.methods", "spinbench.backends"))
        for node in ast.walk(tree)
    )
    return texts + imports


def test_no_more_files_know_methods_and_backends_by_name() -> None:
    names = {name for kind in ("methods", "backends") for name in plugins.entry_points(kind)} - set(OTHER_MEANINGS)
    files = {path.relative_to(HARNESS).as_posix(): path for path in sorted(HARNESS.rglob("*.py"))}
    counts = {
        file: names_used(ast.parse(path.read_text(encoding="utf-8")), names)
        for file, path in files.items()
        if not file.startswith(APART)
    }
    more = {file: count for file, count in counts.items() if count > NAMED.get(file, 0)}
    assert not more, f"files that know more methods and backends by name than they did: {more}"
