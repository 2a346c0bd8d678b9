"""git, asked about the checkout in a folder: does a commit exist, what does a name mean, which commits came before.

Where there is no project, commits of a repository of its own are versions of what is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.foundation import atomic

CONFIG = "asv.conf.json"
# The configuration of a repository must not run programs: file-system monitors, hooks, or signature checks.
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "log.showSignature=false")
_OWN_SCOPES = ("local", "worktree")
_FILTERS = r"^filter\..*\.(clean|smudge|process)$"
# File at the top of the repository; a sweep commits it when versions have changed.
VERSIONS_FILE = "versions.json"
VERSIONS_BRANCH = "main"
_WHO = ("-c", "user.name=spinbench", "-c", "user.email=spinbench@localhost", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Checkout:
    """A git checkout whose top folder holds asv.conf.json."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> Checkout:
        """The checkout at `root`, or around it where `root` lies inside one.

        Raises:
            HistoryError: no asv.conf.json here or above, or its folder is not the top of a git checkout.
        """
        start = root.resolve()
        if not start.is_dir():
            raise HistoryError(f"{root} is not a folder; history is kept in a checkout that holds {CONFIG}")
        top = next((folder for folder in (start, *start.parents) if (folder / CONFIG).is_file()), None)
        if top is None:
            raise HistoryError(
                f"there is no {CONFIG} in {start} or above it; history is kept in a checkout that holds one"
            )
        checkout = cls(top)
        answer = checkout._git("rev-parse", "--show-toplevel")
        if answer.returncode:
            reason = (answer.stderr.strip().splitlines() or ["git failed"])[0]
            raise HistoryError(f"{top} is not a git checkout ({reason}); history belongs to commits")
        if Path(answer.stdout.strip()).resolve() != top:
            raise HistoryError(
                f"{top} holds {CONFIG} but the git checkout starts at {answer.stdout.strip()}; move {CONFIG} there"
            )
        return checkout

    def has(self, commit: str) -> bool:
        """Whether a full hash names a commit of this repository."""
        return self._git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def resolve(self, name: str) -> str:
        """The full hash behind a branch, tag or abbreviated hash.

        Raises:
            HistoryError: no such commit.
        """
        answer = None
        if not name.startswith("-"):
            answer = self._git("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        if answer is None or answer.returncode:
            raise HistoryError(f"{name!r} names no commit of {self.root}; give a branch, a tag or a hash")
        return answer.stdout.strip()

    def resolve_all(self, text: str) -> list[str]:
        """Full hashes of what "v0.1..main" or "main~2,my-branch" names, oldest first within a range.

        Of merges, ranges have what the branch was itself, without the commits that were merged into it.

        Raises:
            HistoryError: a name means nothing here, or a range is empty.
        """
        commits: list[str] = []
        for part in text.split(","):
            if ".." not in part:
                commits.append(self.resolve(part))
                continue
            listed = self._git("rev-list", "--reverse", "--first-parent", "--end-of-options", part)
            if listed.returncode:
                raise HistoryError(f"{part!r} names no commits of {self.root}; give a range as v0.1..main")
            if not listed.stdout.split():
                raise HistoryError(
                    f"there is no commit in {part}: what stands behind the dots comes first, or both are one commit"
                )
            commits += listed.stdout.split()
        return list(dict.fromkeys(commits))

    def ancestors(self, commit: str) -> list[str]:
        """The commit and all that came before it, newest first."""
        return self._list_commits(commit)

    def line(self, commit: str) -> list[str]:
        """The commit and those before it on its own branch, newest first: what was merged is in the merge.

        Branches that were measured side by side are no course of one program, whatever their dates say.
        """
        return self._list_commits("--first-parent", commit)

    def commits_with_tags(self) -> list[str]:
        """The commits that tags name, newest first."""
        return self._list_commits("--no-walk", "--tags")

    def subject(self, commit: str) -> str:
        """First line of the commit's message, which need not be text in any encoding."""
        return ask(self.root, "log", "-1", "--format=%s", commit).stdout.decode(errors="replace").strip()

    def author_time(self, commit: str) -> int:
        """Unix time at which the commit was written."""
        return int(self._git("log", "-1", "--format=%at", commit).stdout)

    def _list_commits(self, *arguments: str) -> list[str]:
        answer = self._git("rev-list", *arguments)
        if answer.returncode:
            raise HistoryError(f"{self.root} has no commits before {arguments[-1]!r}; history belongs to commits")
        return answer.stdout.split()

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = _ask(self.root, *arguments)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """What git says in a folder, whatever repository the environment points at, as in a hook of another.

    Raises:
        FileNotFoundError: git is not installed.
    """
    command = ["git", "-C", str(folder), *_OPTIONS, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment())


def difference(folder: Path) -> bytes | None:
    """What tracked files differ in from the commit that is checked out; None where git cannot tell.

    No program of the checkout's own configuration runs, so that a filter that it requires is a difference unknown.

    Raises:
        FileNotFoundError: git is not installed.
    """
    listed = ask(folder, "config", "--show-scope", "-z", "--get-regexp", _FILTERS)
    # Status 1: nothing is set; above 1: this version of git has no --show-scope.
    if listed.returncode > 1:
        return None
    words = listed.stdout.decode(errors="replace").split("\0")
    own = [key.partition("\n")[0] for scope, key in zip(words[::2], words[1::2], strict=False) if scope in _OWN_SCOPES]
    off = [word for key in own for word in ("-c", f"{key}=")]
    answer = ask(folder, *off, "diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary")
    return None if answer.returncode else answer.stdout


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


def begin_versions(folder: Path) -> None:
    """Make a repository of a folder, with all that it holds.

    Raises:
        HistoryError: git is not installed, or refuses.
    """
    atomic.write_json(folder / VERSIONS_FILE, {})
    _change(folder, "init", "-q", "-b", VERSIONS_BRANCH)
    _change(folder, "add", "--all")
    _change(folder, *_WHO, "commit", "-q", "-m", "nothing measured")


def note_versions(folder: Path, installed: Mapping[str, str]) -> bool:
    """Commit what is installed, by name, if the folder is such a repository and holds something else.

    Raises:
        HistoryError: git is not installed, or refuses.
    """
    path = folder / VERSIONS_FILE
    if not path.is_file():
        return False
    # Here and not above: what only asks git starts without it.
    from filelock import FileLock

    with FileLock(folder / ".git" / "versions.lock"):
        atomic.clear_fragments(folder)
        # Read from the last commit and not from the file: a writer may have been killed before its commit.
        before = json.loads(_change(folder, "show", f"HEAD:{VERSIONS_FILE}"))
        if before == installed:
            return False
        atomic.write_json(path, dict(sorted(installed.items())))
        changed = [f"{name} {version}" for name, version in installed.items() if before.get(name) != version]
        gone = [f"without {name}" for name in before if name not in installed]
        _change(folder, *_WHO, "commit", "-q", "-m", ", ".join([*changed, *gone]), "--", VERSIONS_FILE)
    return True


def _change(folder: Path, *arguments: str) -> bytes:
    done = _ask(folder, *arguments)
    if done.returncode:
        reason = (done.stderr.decode().strip().splitlines() or ["no word"])[0]
        raise HistoryError(f"git cannot keep the versions in {folder}: {reason}")
    return done.stdout


def _ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return ask(folder, *arguments)
    except FileNotFoundError as error:
        raise HistoryError("git is not installed; history belongs to commits") from error
