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
from typing import cast

from filelock import FileLock
from packaging.requirements import InvalidRequirement, Requirement

from spinbench.errors import HistoryError
from spinbench.foundation import atomic, git
from spinbench.measuring import environment

# Folder of a checkout with builds of its commits; it can be deleted at any time.
FOLDER = Path(".asv") / "commits"
# Seconds after which a build counts as failed.
BUILD_SECONDS = 600.0

_STATE_FILE = "made-of.json"
# Sorts before other .pth files, which may import from a folder that this one adds.
_PTH_FILE = "0-shared.pth"


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


def build(checkout: git.Checkout, commit: str) -> Build:
    """Check a commit out and install it, unless that was done before with the libraries of today.

    Args:
        checkout: of a project that pip can install.
        commit: full hash.

    Raises:
        HistoryError: it has no pyproject.toml that names a project, or cannot be checked out or installed; why, in a
            line.
    """
    home = checkout.root / FOLDER / commit[:16]
    built = Build(commit, home / "tree", environment_python(home / "venv"))
    installed = home / "installed"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(checkout.root / FOLDER / "build.lock"):
            _check_out(checkout, commit, built.tree)
            name = project_name(built.tree)
            if not (installed.exists() and is_environment_current(home / "venv", name)):
                installed.unlink(missing_ok=True)
                create_environment(home / "venv", name)
                install(built.python, built.tree)
                installed.touch()
    except OSError as error:
        raise HistoryError(f"it cannot be built in {home}: {error.strerror or error}") from error
    return built


def project_name(tree: Path) -> str:
    """The name of the project whose source lies in a folder.

    Raises:
        HistoryError: there is none.
    """
    name = environment.project_name(tree)
    if name is None:
        raise HistoryError("it has no pyproject.toml that names a project, so that there is nothing to build")
    return name


def create_environment(folder: Path, project: str) -> None:
    """Make a virtual environment for the project `name`, with all distributions of this one but that."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.EnvBuilder(symlinks=sys.platform != "win32").create(folder)
    scheme = {"base": str(folder), "platbase": str(folder)}
    place = Path(sysconfig.get_path("purelib", "venv", scheme))
    (place / _PTH_FILE).write_text("".join(f"{path}\n" for path in distribution_folders()), encoding="utf-8")
    for path in _pth_files(without=project):
        shutil.copy(path, place)
    atomic.write_json(folder / _STATE_FILE, _environment_state(project))


def is_environment_current(folder: Path, project: str) -> bool:
    """Whether `create` made it for this project, from the folders that distributions are in today."""
    try:
        state = json.loads((folder / _STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(state == _environment_state(project)) and environment_python(folder).exists()


def install(python: Path, source: Path) -> None:
    """Install a source tree or a wheel, and nothing that it depends on.

    Raises:
        HistoryError: it cannot be built; with the last line of what was said.
    """
    done = _run_with_timeout(
        [*_install_command(python), "--no-deps", "--force-reinstall", *_isolation_options(source), str(source)]
    )
    if done.returncode:
        raise HistoryError(f"its build fails: {_extract_build_error(done.stderr)}")


def environment_python(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    if sys.platform == "win32":
        return folder / "Scripts" / "python.exe"
    return folder / "bin" / "python"


def distribution_folders() -> list[Path]:
    """Folders that this interpreter imports distributions from."""
    folders = dict.fromkeys(Path(name).resolve() for name in sys.path if name)
    return [folder for folder in folders if folder.is_dir() and next(folder.glob("*.dist-info"), None) is not None]


def _pth_files(without: str) -> Iterator[Path]:
    """Those by which folders elsewhere are imported from, of plugins in work say."""
    distributions = importlib.metadata.distributions(name=without)
    own_files = {file.name for distribution in distributions for file in distribution.files or ()}
    for folder in distribution_folders():
        yield from (path for path in folder.glob("*.pth") if path.name not in {*own_files, _PTH_FILE})


def _install_command(python: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check"]
        return [*pip, "--python", str(python), "install", "-q"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "-q", "--python", str(python)]
    raise HistoryError("neither pip nor uv is installed here, and one of them is needed to build commits")


def _extract_build_error(output: str) -> str:
    """The exception that ended a build; of pip's own words, what is no heading."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.endswith("Exception:")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unavailable)\b", line)]
    # pip's own "error: metadata-generation-failed" says nothing.
    wrong = [reason for line in lines if line.lower().startswith("error: ") and " " in (reason := line[7:])]
    return next(iter([*raised[-1:], *wrong, *lines[-1:]]), "nothing was said")


def _isolation_options(source: Path) -> list[str]:
    """Nothing is fetched where what builds the source is installed here."""
    if source.is_file():
        return []
    system: dict[str, object] = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8")).get(
        "build-system", {}
    )
    needs = [str(need) for need in cast("list[object]", system.get("requires", ["setuptools"]))]
    backend = str(system.get("build-backend", "setuptools"))
    # Before 70.1, as in fresh environments of Python 3.11, setuptools makes no wheels without the package `wheel`.
    makes_wheels = not backend.startswith("setuptools") or _is_installed("setuptools>=70.1") or _is_installed("wheel")
    return ["--no-build-isolation"] if makes_wheels and all(map(_is_installed, needs)) else []


def _is_installed(requirement: str) -> bool:
    try:
        need = Requirement(requirement)
        return (need.marker is not None and not need.marker.evaluate()) or need.specifier.contains(
            importlib.metadata.version(need.name), prereleases=True
        )
    except (InvalidRequirement, importlib.metadata.PackageNotFoundError):
        return False


def _check_out(checkout: git.Checkout, commit: str, tree: Path) -> None:
    """A worktree at the commit, with all files as they were committed."""
    if _is_worktree(tree) and git.ask(tree, "checkout", "-q", "--detach", "--force", commit).returncode == 0:
        return
    shutil.rmtree(tree, ignore_errors=True)
    git.ask(checkout.root, "worktree", "prune")
    done = git.ask(checkout.root, "worktree", "add", "-q", "--detach", str(tree), commit)
    if done.returncode:
        messages = done.stderr.decode().strip().splitlines() or ["git failed"]
        raise HistoryError(f"it cannot be checked out: {messages[-1]}")


def _is_worktree(tree: Path) -> bool:
    """Itself, and not merely a folder in the checkout, where a forced checkout would overwrite the user's files."""
    if not tree.is_dir():
        return False
    top_level = git.ask(tree, "rev-parse", "--show-toplevel")
    return top_level.returncode == 0 and Path(top_level.stdout.decode().strip()).resolve() == tree.resolve()


def _environment_state(name: str) -> dict[str, object]:
    return {"project": name, "python": sys.version, "shared": [str(path) for path in distribution_folders()]}


def _run_with_timeout(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"its build took more than {BUILD_SECONDS:g} s") from error
