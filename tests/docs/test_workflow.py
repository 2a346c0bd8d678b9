"""The workflow of "Track regressions in CI": its steps run in a small repository, with one cell for all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from markdown_blocks import DOCS, ROOT

yaml = pytest.importorskip("yaml")
WORKFLOW = yaml.safe_load((DOCS / "how-to" / "workflows" / "track-regressions.yml").read_text(encoding="utf-8"))
CELLS = "experiment=gate model=boltzmann/neural15 method=gibbs backend=numpy budget.burn_in=null"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with two commits, and the repository it was cloned from."""
    origin, clone = tmp_path / "origin.git", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(origin))
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    shutil.copy(ROOT / "asv.conf.json", clone)
    shutil.copy(ROOT / ".gitignore", clone)
    shutil.copytree(
        ROOT / "harness" / "history" / "suite", clone / "harness" / "history" / "suite"
    )  # asv reads the benchmarks there
    for number in (1, 2):
        (clone / "change").write_text(str(number))
        git(clone, "add", ".")
        git(clone, "commit", "-q", "-m", f"commit {number}")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return clone


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def steps(job: str) -> Iterator[dict[str, Any]]:
    """Steps with a script."""
    yield from (step for step in WORKFLOW["jobs"][job]["steps"] if "run" in step)


def run(
    job: str, clone: Path, *, statuses: Mapping[str, tuple[int, ...]] = MappingProxyType({}), **variables: str
) -> dict[str, str]:
    """All steps of a job; what each has printed. Installing does nothing: spinbench is there.

    `statuses`: exit statuses of steps, by name, that are right beside 0.
    """
    programs = clone.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name, line in {"pip": "exit 0", "spinbench": f'exec "{sys.executable}" -m spinbench "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    said = {}
    for step in steps(job):
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=clone,
            env={
                **os.environ,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "SPINBENCH_HISTORY": str(clone),
                "SPINBENCH_MACHINE": str(WORKFLOW["env"]["SPINBENCH_MACHINE"]),
                "CELLS": CELLS,
                "SEEDS": "0 1",
                "PAIRS": "1s",
                **{str(name): str(value) for name, value in step.get("env", {}).items()},
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, *statuses.get(step["name"], ())), f"{step['name']}\n{done.stdout}{done.stderr}"
        said[step["name"]] = done.stdout
    return said


@pytest.mark.slow
def test_the_gate_compares_both_commits(clone: Path) -> None:
    target, head = git(clone, "rev-parse", "HEAD~1"), git(clone, "rev-parse", "HEAD")
    said = run("gate", clone, TARGET=target, HEAD=head)
    assert f"base {target[:8]} commit 1" in said["compare"]
    assert f"head {head[:8]} commit 2" in said["compare"]
    assert "numbers identical in 2 of 2 runs" in said["compare"]
    assert "costs were not measured by pairs: it has no pyproject.toml" in said["compare"]
    assert re.search(r"on github-ubuntu-24.04: \d+ tests: 0 worse", said["compare"])
    assert list((clone / "report").glob("*.html"))


@pytest.mark.slow
def test_the_history_grows_on_its_branch(clone: Path) -> None:
    commits = git(clone, "rev-list", "--reverse", "HEAD").split()
    for commit in commits:
        git(clone, "checkout", "-q", commit)
        shutil.rmtree(clone / ".asv", ignore_errors=True)  # each run of the workflow begins with a fresh clone
        shutil.rmtree(clone / "multirun", ignore_errors=True)
        run("history", clone, GITHUB_SHA=commit)
    kept = git(clone.parent / "origin.git", "ls-tree", "-r", "--name-only", "asv-history").splitlines()
    assert all(any(commit in path for path in kept) for commit in commits)
    assert (clone / ".asv" / "html" / "index.html").exists()


def test_the_page_quotes_the_workflow() -> None:
    page = (DOCS / "how-to" / "track-regressions.md").read_text(encoding="utf-8")
    for name, value in WORKFLOW["env"].items():
        assert f"  {name}: {value}\n" in page
