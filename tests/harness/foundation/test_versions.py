"""A history of versions of what is installed."""

from __future__ import annotations

import json
from pathlib import Path

from spinbench.foundation import atomic, git, versions


def test_what_a_killed_writer_left_is_committed_and_cleared(tmp_path: Path) -> None:
    """A number of a process that is dead; and a file that was written, but not committed."""
    versions.begin(tmp_path)
    installed = {"spinbench": "1.0"}
    (tmp_path / versions.FILE).write_text(json.dumps(installed), encoding="utf-8")
    fragment = tmp_path / f".versions.json.{atomic._host()}.{2**22 + 1}.0.tmp"
    fragment.write_text("{", encoding="utf-8")
    assert versions.note(tmp_path, installed)
    assert not fragment.exists()
    assert git.ask(tmp_path, "status", "--porcelain").stdout == b""
    assert b"spinbench 1.0" in git.ask(tmp_path, "log", "-1", "--format=%s").stdout
    assert not versions.note(tmp_path, installed)
