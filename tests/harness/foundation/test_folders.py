"""The folder of what can be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinbench.foundation import folders


def test_the_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path / "mine"))
    assert folders.cache_folder() == tmp_path / "mine"
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(blocked / "below"))
    assert blocked not in folders.cache_folder().parents
