"""The harness knows methods and backends by what they declare: where it knows one by its name is counted here."""

from __future__ import annotations

import ast
from pathlib import Path

from spinbench.foundation import plugins

HARNESS = Path(__file__).resolve().parents[2] / "harness"
# Papers and templates are about methods by name.
APART = ("papers/", "scaffold/")
# Names that also say something else: a grade of log Z, and libraries that the harness itself uses.
OTHER_MEANINGS = ("exact", "numpy", "pgmpy")
# Texts that are names, and imports from `spinbench.methods` and `spinbench.backends`, by file. These numbers may fall.
NAMED = {
    "api/types.py": 1,
    "auditing/known.py": 1,
    "command_options.py": 2,
    "history/regression_test/measurements.py": 3,
    "history/suite/kernels.py": 16,
    "inference/advising/advice.py": 1,
    "inference/advising/candidates.py": 43,
    "inference/answers.py": 3,
    "inference/bracketing/annealing.py": 6,
    "inference/bracketing/mini_buckets.py": 2,
    "inference/bracketing/sources.py": 8,
    "inference/checks/disconnected_support.py": 2,
    "inference/checks/probes.py": 2,
    "inference/checks/weight_bounds.py": 7,
    "inference/engine.py": 1,
    "inference/initial_states.py": 2,
    "inference/kernels.py": 2,
    "inference/mixing.py": 10,
    "inference/runner.py": 2,
    "measuring/cells.py": 4,  # what 0.1.0 wrote does not change
    "measuring/environment.py": 11,
    "measuring/isolation.py": 2,
    "reference/answering.py": 1,
    "reference/counting/ganak.py": 2,
    "reporting/commands/warm.py": 1,
    "reporting/plotting.py": 47,
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
