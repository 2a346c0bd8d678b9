"""A commit's build in a virtual environment, which has for all the rest what runs here.

Versions of libraries are then equal at all commits, so that what differs is the project, and nothing is fetched.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from spinbench.errors import HistoryError
from spinbench.foundation import git, projects
from spinbench.foundation.atomic import write_json
from spinbench.foundation.checkout import Checkout

FOLDER = Path(".asv") / "commits"
"""In a checkout, builds of its commits; whoever needs the room may delete it."""
BUILD_SECONDS = 600.0

_MADE = "made-of.json"
_SHARED = "0-shared.pth"  # before others in the alphabet: what they import may lie in a folder that it names


@dataclass(frozen=True)
class Build:
    """A commit that can be run.

    Attributes:
        commit: full hash.
        tree: its files, a worktree of the repository.
        python: the interpreter whose environment has the commit's own build.
    """

    commit: str
    tree: Path
    python: Path

    @property
    def is_whole(self) -> bool:
        """Whether it is still there."""
        return self.tree.is_dir() and self.python.exists()


def build(checkout: Checkout, commit: str) -> Build:
    """Check a commit out and install it, unless that was done before with the libraries of today.

    Args:
        checkout: of a project that pip can install.
        commit: full hash.

    Raises:
        HistoryError: it has no pyproject.toml that names a project, or cannot be checked out or installed; why, in a
            line.
    """
    home = checkout.root / FOLDER / commit[:16]
    made = Build(commit, home / "tree", python_of(home / "venv"))
    installed = home / "installed"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(checkout.root / FOLDER / "build.lock"):
            _check_out(checkout, commit, made.tree)
            name = project(made.tree)
            if not (installed.exists() and is_current(home / "venv", name)):
                installed.unlink(missing_ok=True)
                create(home / "venv", name)
                install(made.python, made.tree)
                installed.touch()
    except OSError as error:
        raise HistoryError(f"it cannot be built in {home}: {error.strerror or error}") from error
    return made


def project(tree: Path) -> str:
    """The name of the project whose source lies in a folder.

    Raises:
        HistoryError: there is none.
    """
    found = projects.name(tree)
    if found is None:
        raise HistoryError("it has no pyproject.toml that names a project, so that there is nothing to build")
    return found


def create(folder: Path, name: str) -> None:
    """Make a virtual environment for the project `name`, with all distributions of this one but that."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.EnvBuilder(symlinks=sys.platform != "win32").create(folder)
    scheme = {"base": str(folder), "platbase": str(folder)}
    place = Path(sysconfig.get_path("purelib", "venv", scheme))
    (place / _SHARED).write_text("".join(f"{path}\n" for path in shared()), encoding="utf-8")
    for path in _path_files(without=name):
        shutil.copy(path, place)
    write_json(folder / _MADE, _state(name))


def is_current(folder: Path, name: str) -> bool:
    """Whether `create` made it for this project, from the folders that distributions are in today."""
    try:
        made = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(made == _state(name)) and python_of(folder).exists()


def install(python: Path, source: Path) -> None:
    """Install a source tree or a wheel, and nothing that it depends on.

    Raises:
        HistoryError: it cannot be built; with the last line of what was said.
    """
    done = _run([*_installer(python), "--no-deps", "--force-reinstall", *_isolation(source), str(source)])
    if done.returncode:
        raise HistoryError(f"its build fails: {_reason(done.stderr)}")


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin" / "python"


def shared() -> list[Path]:
    """Folders that this interpreter imports distributions from."""
    folders = dict.fromkeys(Path(name).resolve() for name in sys.path if name)
    return [folder for folder in folders if folder.is_dir() and next(folder.glob("*.dist-info"), None) is not None]


def _path_files(without: str) -> Iterator[Path]:
    """Those by which folders elsewhere are imported from, of plugins in work say."""
    own = {file.name for file in importlib.metadata.files(without) or ()} if _is_installed(without) else set()
    for folder in shared():
        yield from (path for path in folder.glob("*.pth") if path.name not in {*own, _SHARED})


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _installer(python: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install", "-q"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "-q", "--python", str(python)]
    raise HistoryError("neither pip nor uv is installed here, and one of them is needed to build commits")


def _reason(said: str) -> str:
    """The exception that ended a build; of pip's own words, what is no heading."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.endswith("Exception:")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unavailable)\b", line)]
    wrong = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return next(iter([*raised[-1:], *wrong, *lines[-1:]]), "nothing was said")


def _isolation(source: Path) -> list[str]:
    """Nothing is fetched where what builds the source is installed here."""
    if source.is_file():
        return []
    system: dict[str, Any] = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8")).get(
        "build-system", {}
    )
    backend = str(system.get("build-backend", "setuptools")).partition(":")[0].partition(".")[0]
    return ["--no-build-isolation"] if importlib.util.find_spec(backend) is not None else []


def _check_out(checkout: Checkout, commit: str, tree: Path) -> None:
    """A worktree at the commit, with all files as they were committed."""
    if _is_worktree(tree) and git.ask(tree, "checkout", "-q", "--detach", "--force", commit).returncode == 0:
        return
    shutil.rmtree(tree, ignore_errors=True)
    git.ask(checkout.root, "worktree", "prune")
    done = git.ask(checkout.root, "worktree", "add", "-q", "--detach", str(tree), commit)
    if done.returncode:
        said = done.stderr.decode().strip().splitlines() or ["git failed"]
        raise HistoryError(f"it cannot be checked out: {said[-1]}")


def _is_worktree(tree: Path) -> bool:
    """Itself, and not merely a folder in the checkout, where a forced checkout would overwrite the user's files."""
    if not tree.is_dir():
        return False
    found = git.ask(tree, "rev-parse", "--show-toplevel")
    return found.returncode == 0 and Path(found.stdout.decode().strip()).resolve() == tree.resolve()


def _state(name: str) -> dict[str, Any]:
    return {"project": name, "python": sys.version, "shared": [str(path) for path in shared()]}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"its build took more than {BUILD_SECONDS:g} s") from error
