"""The folder of what can be made again, and files that are written whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spinbench.errors import SpinbenchError
from spinbench.foundation import folders
from spinbench.foundation.atomic import clear_fragments, write_json


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that does not exist yet, and is chosen."""
    monkeypatch.setenv(folders.VARIABLE, str(tmp_path / "mine"))
    return tmp_path / "mine"


def test_the_cache_folder_can_be_chosen(chosen: Path) -> None:
    assert folders.cache_folder() == chosen
    assert chosen.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o710])
def test_a_folder_that_others_can_enter_is_not_believed(chosen: Path, mode: int) -> None:
    """What is below it may have been made with any umask."""
    chosen.mkdir()
    chosen.chmod(mode)
    found = folders.cache_folder()
    # Where others may write, they may put another folder in the place of one that nobody else can enter.
    assert (found.parent == chosen) == (mode != 0o777)
    assert found.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_another_user_made_is_not_believed(chosen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the one below it of the name that ours would have, which anybody can guess."""
    user = os.getuid() + 1
    (chosen / f"private-{user}").mkdir(parents=True)
    monkeypatch.setattr(os, "getuid", lambda: user)
    found = folders.cache_folder()
    assert chosen not in (found, *found.parents)
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make links that are another user's")
def test_a_link_that_another_user_made_is_not_followed(chosen: Path, tmp_path: Path) -> None:
    """It may lead elsewhere tomorrow."""
    (tmp_path / "ours").mkdir(mode=0o700)
    chosen.symlink_to(tmp_path / "ours")
    assert folders.cache_folder() == chosen
    os.lchown(chosen, 12345, -1)
    folders._below.cache_clear()
    found = folders.cache_folder()
    assert found.stat().st_mode & 0o777 == 0o700
    assert found.resolve() != tmp_path / "ours"


def test_where_nothing_can_be_written_a_temporary_folder_lives_as_long_as_the_process(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = """
import os, subprocess, sys
from spinbench.foundation.folders import cache_folder
print(cache_folder(), cache_folder().stat().st_mode & 0o777)
child = "from spinbench.foundation.folders import cache_folder; print(cache_folder())"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout)
"""
    environment = {**os.environ, folders.VARIABLE: str(blocked / "below"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    own, mode, of_child = done.stdout.split()
    assert Path(own).parent == tmp_path
    assert int(mode) == 0o700
    assert of_child == own
    assert not Path(own).exists()


def test_what_stands_in_the_place_of_a_part_is_named(chosen: Path) -> None:
    part = folders.cache_folder() / "cores"
    part.write_text("")
    with pytest.raises(SpinbenchError, match=r"the folder .*cores, which cannot be made \(File exists\)"):
        folders.ensure_folder(part)
    part.unlink()
    assert folders.ensure_folder(part).is_dir()


@pytest.mark.parametrize(("mode", "safe"), [(0o777, False), (0o1777, True), (0o755, True), (0o772, False)])
def test_nobody_else_may_replace_the_cache_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, safe: bool
) -> None:
    parent = tmp_path / "parent"
    (parent / "inner").mkdir(parents=True)
    parent.chmod(mode)
    monkeypatch.setenv(folders.VARIABLE, str(parent / "inner" / "mine"))
    assert (parent in folders.cache_folder().parents) == safe


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_groups_and_owners_of_folders_above_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, group, mode, safe in ((12345, 0, 0o755, False), (0, 12345, 0o775, False), (0, 0, 0o775, True)):
        parent = tmp_path / f"{owner}-{group}"
        parent.mkdir()
        parent.chmod(mode)
        os.chown(parent, owner, group)
        monkeypatch.setenv(folders.VARIABLE, str(parent / "mine"))
        assert (parent in folders.cache_folder().parents) == safe


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_who_may_read_a_file_is_what_the_umask_says(tmp_path: Path, mask: int) -> None:
    """A group can read the records in a folder that it shares."""
    before = os.umask(mask)
    try:
        write_json(tmp_path / "a.json", {})
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_fragments_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spinbench.foundation.atomic.os.replace", kept)
    monkeypatch.setattr("spinbench.foundation.atomic.os.unlink", lambda path: None)
    with pytest.raises(KeyboardInterrupt):
        write_json(tmp_path / "a.json", {})
    monkeypatch.undo()
    (fragment,) = tmp_path.iterdir()
    assert clear_fragments(tmp_path) == 0
    dead = fragment.with_name(fragment.name.replace(f".{os.getpid()}.", ".4194305."))
    fragment.rename(dead)
    assert clear_fragments(tmp_path) == 1
