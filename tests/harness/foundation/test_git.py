"""Histories in git: of a checkout that somebody else configured, and of versions of what is installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from spinbench.foundation import atomic, git
from spinbench.measuring.environment import git_state


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of one commit whose configuration and hooks name programs that leave the file `ran`."""
    folder, program = tmp_path / "found", tmp_path / "program"
    folder.mkdir()
    program.write_text(f"#!/bin/sh\necho $0 $* >> '{tmp_path / 'ran'}'\ncat\n")
    program.chmod(0o755)
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")

    def call(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, env=git.environment())

    call("init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitattributes").write_text("*.txt diff=evil filter=evil\n")
    call("add", ".")
    call("commit", "-q", "-m", "first")
    names = ["core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "core.pager", "gpg.program"]
    for name in [*names, "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"]:
        call("config", name, str(program))
    call("config", "log.showSignature", "true")
    for hook in ("post-index-change", "post-checkout"):
        (folder / ".git" / "hooks" / hook).symlink_to(program)
    return folder


def test_nothing_runs_that_a_found_checkout_names(checkout: Path) -> None:
    state = git_state(checkout)
    assert (len(state["commit"]), state["dirty"], state["diff"]) == (40, False, None)
    (checkout / "a.txt").write_text("two\n")
    assert git_state(checkout)["dirty"] is True
    assert git.branch(checkout) == "main"
    found = git.Checkout(checkout)
    assert found.subject("HEAD") == "first"
    assert found.ancestors("main") == [state["commit"]]
    assert not (checkout.parent / "ran").exists()


def test_a_difference_that_git_cannot_tell_is_unknown(checkout: Path) -> None:
    subprocess.run(["git", "-C", str(checkout), "config", "filter.evil.required", "true"], check=True)
    (checkout / "a.txt").write_text("two\n")
    state = git_state(checkout)
    assert (len(state["commit"]), state["dirty"], state["diff"]) == (40, None, None)
    assert git_state(checkout.parent) == {"commit": None, "dirty": None, "diff": None}
    assert not (checkout.parent / "ran").exists()


def test_what_a_killed_writer_left_is_committed_and_cleared(tmp_path: Path) -> None:
    """A number of a process that is dead; and a file that was written, but not committed."""
    git.begin_versions(tmp_path)
    installed = {"spinbench": "1.0"}
    (tmp_path / git.VERSIONS_FILE).write_text(json.dumps(installed), encoding="utf-8")
    fragment = tmp_path / f".versions.json.{atomic._host()}.{2**22 + 1}.0.tmp"
    fragment.write_text("{", encoding="utf-8")
    assert git.note_versions(tmp_path, installed)
    assert not fragment.exists()
    assert git.ask(tmp_path, "status", "--porcelain").stdout == b""
    assert b"spinbench 1.0" in git.ask(tmp_path, "log", "-1", "--format=%s").stdout
    assert not git.note_versions(tmp_path, installed)
