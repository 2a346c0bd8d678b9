"""git, asked about the checkout in a folder, whatever repository the environment points at, as in a hook of another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """What git says in a folder.

    Raises:
        FileNotFoundError: git is not installed.
    """
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False, env=environment())


def branch(folder: Path) -> str:
    """The one that is checked out, or "main"."""
    answer = ask(folder, "symbolic-ref", "--short", "-q", "HEAD")
    return answer.stdout.decode().strip() or "main"


def environment() -> dict[str, str]:
    """This process's variables without those that name a repository or change what git prints; GIT_CONFIG* stay."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
    }
