"""Whatever happened to compiled kernels on disk, what runs is what the source says."""

from __future__ import annotations

import errno
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core import caching, config

from spinbench.backends.numba import stored_code

SOURCE = """
from numba import njit

@njit(TYPE + "(" + TYPE + ")", cache=True)
def kernel(x):
    return 2 * x
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A kernel for integers or floats, from the folder's files as far as they serve."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(caching, "IndexDataCacheFile", caching.IndexDataCacheFile)
    stored_code.keep_below(tmp_path / "code")

    def read(kind: str = "int64") -> Any:
        source = tmp_path / "source.py"
        if not source.exists():
            source.write_text(SOURCE)
        return runpy.run_path(str(source), {"TYPE": kind})["kernel"]

    return read


def entries(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{suffix}"))


def hits(kernel: Any) -> int:
    return sum(kernel.stats.cache_hits.values())


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "foreign", "flipped", "gone"])
def test_damaged_files_are_made_anew(compiled, tmp_path, suffix, damage):
    assert compiled()(21) == 42
    assert hits(compiled()) == 1
    (file,) = entries(tmp_path, suffix)
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    forms = {"empty": b"", "cut": content[:-10], "foreign": b"\x80\x05N.", "flipped": flipped}
    file.unlink() if damage == "gone" else file.write_bytes(forms[damage])
    assert compiled()(21) == 42
    assert hits(compiled()) == 1  # it is whole again


def test_code_for_other_arguments_is_not_taken(compiled, tmp_path):
    """Two processes that compile a function at one time may both name their file 1, and the later index wins."""
    compiled("float64")
    (of_floats,) = entries(tmp_path, "nbc")
    shutil.copy(of_floats, tmp_path / "floats")
    for file in entries(tmp_path, "nb?"):
        file.unlink()
    assert compiled("int64")(21) == 42
    (of_integers,) = entries(tmp_path, "nbc")
    shutil.copy(tmp_path / "floats", of_integers)
    found = compiled("int64")(21)
    assert found == 42
    assert isinstance(found, int)


def test_a_full_disk_costs_only_the_cache(compiled, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(caching.os, "replace", full)
    assert compiled()(21) == 42
    assert not entries(tmp_path, "nb?")


def test_files_elsewhere_stay_as_numba_makes_them(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "of a user"))
    assert compiled()(21) == 42
    monkeypatch.setattr(caching, "IndexDataCacheFile", stored_code._PLAIN)
    assert hits(compiled()) == 1


def test_two_installations_of_the_same_sources_share_code(tmp_path, monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", stored_code._LOCATORS)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "by path"))
    found = {}
    for place in ("one", "two", "elsewhere"):
        source = tmp_path / place / "inner" / "source.py"
        source.parent.mkdir(parents=True)
        source.write_text(SOURCE)
        if place != "elsewhere":
            stored_code.keep_by_place(tmp_path / place, tmp_path / "kernels-digest")
        found[place] = hits(runpy.run_path(str(source), {"TYPE": "int64"})["kernel"])
    assert found == {"one": 0, "two": 1, "elsewhere": 0}
    assert len(entries(tmp_path / "kernels-digest" / "inner" / "source", "nbi")) == 1
    assert len(entries(tmp_path / "by path", "nbi")) == 1
