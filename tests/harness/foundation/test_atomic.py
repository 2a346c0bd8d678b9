"""Files that are written whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spinbench.foundation.atomic import clear_fragments, write_json


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
