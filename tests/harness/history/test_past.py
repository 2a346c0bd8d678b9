"""Commits of the past, built and measured: a plugin's repository, by `sweep … commits=` and by `asv run`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spinbench import cli
from spinbench.foundation.git import Checkout
from spinbench.history import builds
from spinbench.history.builds import Build
from spinbench.history.recorder import History

CLIP = "m = np.clip("
LOST = 'raise ValueError("lost")\n        m = np.clip('
SUITE = """import os
from pathlib import Path


def track_length():
    import my_method

    return len(Path(my_method.__file__).read_text())


def track_shared_length():
    kept = Path(os.environ["SPINBENCH_ASV_RUN"]) / "length"
    if not kept.exists():
        kept.write_text(str(track_length()))
    return int(kept.read_text())
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a method, of which nothing is installed here; one stands in it."""
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    for name, value in {"HOME": str(tmp_path), "SPINBENCH_MACHINE": "testbox", "GIT_CONFIG_GLOBAL": os.devnull}.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "my_method"
    assert cli.main(["init", str(root), "--method", "mine"]) == 0
    (root / "benchmarks" / "length.py").write_text(SUITE)
    monkeypatch.chdir(root)
    return root


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=tester", "-c", "user.email=tester@example.org", *arguments], check=True)


def commit(title: str, **changes: tuple[str, str]) -> str:
    """Replace a text in files, named without their ends; returns the hash."""
    for name, (old, new) in changes.items():
        (path,) = Path().glob(f"{name}.*")
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", title)
    return Checkout.open(Path()).resolve("HEAD")


def installed(root: Path) -> Path:
    """The method as it is now, in a folder to import it from."""
    folder = root.parent / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, str(root)], check=True)
    return folder


def test_a_sweep_over_commits_names_the_wrong_one(repository: Path) -> None:
    """Of five commits one cannot be built, one does not have the method, and one has broken it."""
    first = commit("first")
    commit("unbuildable", pyproject=("build_meta", "builds_meta"))
    git("revert", "--no-commit", "HEAD")
    without = commit("without", pyproject=("mine = ", "other = "), my_method=('] = "mine"', '] = "other"'))
    again = commit("again", pyproject=("other = ", "mine = "), my_method=('] = "other"', '] = "mine"'))
    wrong = commit("wrong", my_method=(CLIP, LOST))
    cells = ("model=boltzmann/neural15", "method=exact,mine", "backend=numpy", "budget=smoke", "seed=0")
    done = spinbench("sweep", "-m", *cells, f"commits={first},{first}..main", "sweep_dir=out", root=repository)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    for line in (
        "unbuildable: left out, its build fails: ",
        f"{first[:8]} first, seed-0: 2 ok",
        f"{without[:8]} without: method=mine is left out, no method is named 'mine'",
        f"{without[:8]} without, seed-0-method-exact: 1 ok",
        f"{without[:8]} without: no change",
        f"{again[:8]} again: no change",
        f"{wrong[:8]} wrong, seed-0: 1 failed, 1 ok",
        f"{wrong[:8]} wrong: fails",
        "picture: out/commits.png",
    ):
        assert any(line in one for one in lines), (line, done.stdout)
    assert (repository / "out" / "commits.png").stat().st_size > 10_000
    kept = History.open(repository).journal
    assert [len(kept.read_entries(commit)) for commit in (first, without, again, wrong)] == [2, 1, 2, 2]
    assert not subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, check=True).stdout


# In the place of a build's interpreter: gives the records that were prepared for its commit and seed.
CHILD = """#!{python}
import os, pathlib, shutil, signal, sys, time
folder = pathlib.Path(sys.argv[-1].removeprefix("sweep_dir='").removesuffix("'"))
tree = pathlib.Path(os.environ["SPINBENCH_HISTORY"])
shutil.copytree(pathlib.Path("prepared") / tree.name / folder.name, folder / "records")
if (folder / "records" / "interrupts").exists():
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(60)
if (folder / "records" / "vanishes").exists():
    tree.rmdir()
"""


def test_what_was_measured_stands_in_the_history_at_once(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep over commits that is terminated, of which a build vanishes, and that is gone on with."""
    python, built = tmp_path / "python", []
    python.write_text(CHILD.format(python=sys.executable))
    python.chmod(0o755)
    commits = [project.commit("first"), project.commit("second")]

    def build(checkout: Checkout, commit: str) -> Build:
        built.append(commit)
        (tmp_path / commit).mkdir(exist_ok=True)
        return Build(commit, tmp_path / commit, python)

    def prepared(commit: str, seed: int, *marks: str) -> None:
        folder = project.root / "prepared" / commit / f"seed-{seed}"
        folder.mkdir(parents=True)
        one = project.record(project.cells[0], commit, seed)
        (folder / f"record-{one['key']}.json").write_text(json.dumps(one))
        for mark in marks:
            (folder / mark).touch()

    def entered() -> list[int]:
        journal = History.open(project.root).journal
        return [len(journal.read_entries(commit)) for commit in commits]

    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.setattr(builds, "build", build)
    monkeypatch.chdir(project.root)
    prepared(commits[0], 0)
    prepared(commits[1], 0, "interrupts")
    cells = ["-m", "method=gibbs", "seed=0,1", f"commits={','.join(commits)}"]
    assert cli.main(["sweep", *cells, "sweep_dir=out"]) == 130
    assert "interrupted; 2 new records stand in the history" in capsys.readouterr().out
    assert entered() == [1, 1]

    for commit in commits:
        shutil.rmtree(project.root / "prepared" / commit)
    for commit, seed, *marks in ((0, 0), (1, 0), (1, 1, "vanishes"), (0, 1)):
        prepared(commits[commit], seed, *marks)
    shutil.rmtree("out")
    built.clear()
    assert cli.main(["sweep", *cells, "sweep_dir=out"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "second, seed-1: left out, its build," in told
    assert "vanished meanwhile" in told
    assert entered() == [3, 2]
    assert built == [*commits, *commits, *commits[::-1]]  # to begin with, and before each turn


def test_asv_runs_a_range_of_commits(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that asv was never told of, and where nobody is asked."""
    monkeypatch.delenv("SPINBENCH_MACHINE")
    commit("nothing measured")
    first = commit("first")
    second = commit("second", my_method=(CLIP, LOST))
    asv("run", f"{first}^..{second}", "--bench", "length")
    found = [json.loads(path.read_text()) for path in Path(".asv/results").glob("*/*-spinbench-py*.json")]
    for name in ("length.track_length", "length.track_shared_length"):
        lengths = {one["commit_hash"]: one["results"][name][0] for one in found}
        assert lengths[second][0] - lengths[first][0] == len(LOST) - len(CLIP)


def asv(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "asv", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def spinbench(*arguments: str, root: Path) -> subprocess.CompletedProcess[str]:
    """The command line, where the method is installed as it is now."""
    variables = {**os.environ, "PYTHONPATH": str(installed(root))}
    command = [sys.executable, "-m", "spinbench", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("system", "installed", "isolated"),
    [
        ('requires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"', {"setuptools": "65.5.0"}, True),
        ("", {"setuptools": "65.5.0"}, True),
        ("", {"setuptools": "65.5.0", "wheel": "0.40"}, False),
        ("", {"setuptools": "80.1"}, False),
        ('requires = ["setuptools>=77", "cython"]', {"setuptools": "80.1"}, True),
        ('requires = ["setuptools>=77"]', {"setuptools": "70.1", "wheel": "1"}, True),
        ("requires = [\"hatchling; python_version > '2'\", \"x; python_version < '3'\"]", {"hatchling": "1"}, True),
        ('requires = ["hatchling"]\nbuild-backend = "hatchling.build"', {"hatchling": "1"}, False),
        ('requires = ["not a requirement"]', {"setuptools": "80.1"}, True),
    ],
)
def test_builds_fetch_nothing_where_what_they_need_is_here(
    system: str, installed: dict[str, str], isolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    (tmp_path / "pyproject.toml").write_text(f"[build-system]\n{system}\n")
    monkeypatch.setattr(importlib.metadata, "version", version)
    assert builds._isolation_options(tmp_path) == ([] if isolated else ["--no-build-isolation"])


def test_a_build_error_is_not_a_hint() -> None:
    output = (
        "error: subprocess-exited-with-error\n  error: invalid command 'bdist_wheel'\nhint: See above for details.\n"
    )
    assert builds._extract_build_error(output) == "invalid command 'bdist_wheel'"
