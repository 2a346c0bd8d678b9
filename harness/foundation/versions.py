"""A history without a project of its own: a git repository whose commits are versions of what is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from spinbench.errors import HistoryError
from spinbench.foundation import atomic, git

# File at the top of the repository; a sweep commits it when versions have changed.
FILE = "versions.json"
BRANCH = "main"
_WHO = ("-c", "user.name=spinbench", "-c", "user.email=spinbench@localhost", "-c", "commit.gpgsign=false")


def begin(folder: Path) -> None:
    """Make a repository of a folder, with all that it holds.

    Raises:
        HistoryError: git is not installed, or refuses.
    """
    atomic.write_json(folder / FILE, {})
    _git(folder, "init", "-q", "-b", BRANCH)
    _git(folder, "add", "--all")
    _git(folder, *_WHO, "commit", "-q", "-m", "nothing measured")


def note(folder: Path, installed: Mapping[str, str]) -> bool:
    """Commit what is installed, by name, if the folder is such a repository and holds something else.

    Raises:
        HistoryError: git is not installed, or refuses.
    """
    path = folder / FILE
    if not path.is_file():
        return False
    with FileLock(folder / ".git" / "versions.lock"):
        atomic.clear_fragments(folder)
        # Read from the last commit and not from the file: a writer may have been killed before its commit.
        before = json.loads(_git(folder, "show", f"HEAD:{FILE}"))
        if before == installed:
            return False
        atomic.write_json(path, dict(sorted(installed.items())))
        changed = [f"{name} {version}" for name, version in installed.items() if before.get(name) != version]
        gone = [f"without {name}" for name in before if name not in installed]
        _git(folder, *_WHO, "commit", "-q", "-m", ", ".join([*changed, *gone]), "--", FILE)
    return True


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = git.ask(folder, *arguments)
    except FileNotFoundError as error:
        raise HistoryError("git is not installed; a history is kept in a git repository") from error
    if done.returncode:
        reason = (done.stderr.decode().strip().splitlines() or ["no word"])[0]
        raise HistoryError(f"git cannot keep the versions in {folder}: {reason}")
    return done.stdout
