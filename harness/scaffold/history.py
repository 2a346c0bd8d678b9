"""Writes what makes a repository's commits the subject of a history, or a folder one of versions."""

from __future__ import annotations

import importlib.resources
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from spinbench.errors import SpinbenchError
from spinbench.foundation import git

TEMPLATES = "spinbench.scaffold.templates"
SUITE = "benchmarks"
WORKFLOW = Path(".github") / "workflows" / "track-regressions.yml"
IGNORED = (".asv/", "multirun/", "__pycache__/", "*.egg-info/")
_INIT = '"""What `asv run` measures in this repository. What is swept beside enters the history by itself."""\n'
FAMILY_MODULE = """\
\"\"\"The benchmarks `{name}.track_METRIC`: the cells of {name}.yaml.\"\"\"

from spinbench.history.suite.cells import benchmark_functions

globals().update(benchmark_functions("{name}"))
"""
_CELLS = """\
# What `asv run` measures, as the benchmarks `cells.track_METRIC`: models x methods x backends. Sweeps of the same cells
# enter the same series. Only ever append values: asv hides the results of a value that is removed.
settings: [{settings}]
axes:
"""
_SETTINGS = "budget=gate"


def init(folder: Path) -> list[str]:
    """Have a folder's commits tracked; of a folder in no git repository, versions of spinbench and plugins.

    Args:
        folder: the top of a git repository; or one in no repository, which becomes one and may not exist yet.

    Returns:
        What was written, and what to do next: lines.

    Raises:
        SpinbenchError: there is a history, the folder lies inside a repository, or it cannot be written.
    """
    top = _top(folder)
    if (folder / git.CONFIG).exists():
        raise SpinbenchError(f"{folder / git.CONFIG} exists; sweeps that are started there enter the history")
    if top is not None and top != folder.resolve():
        raise SpinbenchError(f"{folder} lies in the git repository {top}; its commits are tracked from there")
    tracked = top is not None
    try:
        written = _write(
            folder,
            _files(
                folder.resolve().name,
                git.branch(folder) if tracked else git.VERSIONS_BRANCH,
                _own_cells(folder),
                tracked=tracked,
            ),
        )
        if not tracked:
            git.begin_versions(folder)
    except OSError as error:
        raise SpinbenchError(f"{folder} cannot be written: {error.strerror or error}") from error
    units, then = "commits", f"name your cells in {WORKFLOW} (CELLS), commit these files, then: "
    if not tracked:
        units, then = "versions of spinbench and its plugins", f"cd {folder}, then: "
    return [f"{folder}: {', '.join(written)}", f"next: {then}spinbench sweep …, whose results are filed by {units}"]


def track(folder: Path) -> list[str]:
    """Make a package's new folder a repository whose commits are measured, with what `asv run` and a workflow measure.

    Returns:
        What was written; nothing inside a repository, which has a history of its own, or without git.
    """
    try:
        if _top(folder) is not None:
            return []
    except FileNotFoundError:
        return []
    git.ask(folder, "init", "-q", "-b", git.VERSIONS_BRANCH)
    files = _files(folder.resolve().name, git.VERSIONS_BRANCH, _own_cells(folder), tracked=True)
    return _write(folder, files)


def _files(name: str, branch: str, own: Mapping[str, tuple[str, ...]], *, tracked: bool) -> dict[Path, str]:
    config = {
        "version": 1,
        "project": name,
        "project_url": "#",
        "show_commit_url": "#",
        "repo": ".",
        "branches": [branch],
        "dvcs": "git",
        "environment_type": "spinbench",
        "plugins": [".spinbench.history.asv_plugin", ".spinbench.reporting.past.changes"],
        "benchmark_dir": SUITE,
        "results_dir": ".asv/results",
        "html_dir": ".asv/html",
        "env_dir": ".asv/env",
    }
    contents = {Path(git.CONFIG): json.dumps(config, indent=4) + "\n", Path(SUITE) / "__init__.py": _INIT}
    if tracked:
        workflow = importlib.resources.files(TEMPLATES).joinpath("workflow.txt").read_text(encoding="utf-8")
        if own:
            contents[Path(SUITE) / "cells.py"] = FAMILY_MODULE.format(name="cells")
            contents[Path(SUITE) / "cells.yaml"] = _CELLS.format(settings=_SETTINGS) + "".join(
                f"  {group}: {{group: {group}, values: [{', '.join(values)}]}}\n" for group, values in own.items()
            )
            cells = " ".join([_SETTINGS, *(f"{group}={','.join(values)}" for group, values in own.items())])
            workflow = workflow.replace("CELLS: experiment=gate", f"CELLS: {cells}")
        contents[WORKFLOW] = workflow
    return contents


def _own_cells(folder: Path) -> dict[str, tuple[str, ...]]:
    """Values of each axis by the plugins that a folder's project registers; empty where it registers none."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        groups = {group: tuple(points) for group, points in project.get("entry-points", {}).items()}
    except (OSError, ValueError, AttributeError):
        return {}
    kernels = [name.split(".") for name in groups.get("spinbench.kernels", ())]
    own = {
        "model": groups.get("spinbench.models", ()),
        "method": (*groups.get("spinbench.methods", ()), *(method for method, _ in kernels)),
        "backend": (*groups.get("spinbench.backends", ()), *(backend for _, backend in kernels)),
    }
    if not any(group.startswith("spinbench.") for group in groups):
        return {}
    usual = {"model": ("grid",), "method": ("gibbs",), "backend": ("numpy",)}
    return {group: tuple(dict.fromkeys(names)) or usual[group] for group, names in own.items()}


def _write(folder: Path, files: Mapping[Path, str]) -> list[str]:
    """What was not there before; and .gitignore, to which what is missing is added."""
    written = []
    for name, text in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(str(name))
    ignore = folder / ".gitignore"
    before = ignore.read_text(encoding="utf-8") if ignore.exists() else ""
    missing = [line for line in IGNORED if line not in before.splitlines()]
    if missing:
        if before and not before.endswith("\n"):
            before += "\n"
        ignore.write_text(before + "\n".join(missing) + "\n", encoding="utf-8")
        written.append(ignore.name)
    return written


def _top(folder: Path) -> Path | None:
    """Of the git repository around a folder."""
    nearest = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.is_dir())
    answer = git.ask(nearest, "rev-parse", "--show-toplevel")
    if answer.returncode:
        return None
    return Path(answer.stdout.decode().strip()).resolve()
