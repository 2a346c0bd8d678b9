"""Plugins of other distributions are part of what is measured: an edited one is measured again."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from spinbench.measuring import environment, provenance, records

CELL: dict[str, Any] = {
    "model": {"name": "grid"},
    "method": {"name": "faulty"},
    "backend": {"name": "numpy"},
    "budget": {"samples": 10},
    "chains": 4,
    "seed": 0,
}
GIT = {"commit": "a" * 40, "dirty": False, "diff": None}


def key() -> str:
    return records.cell_key(CELL, GIT, provenance.foreign(CELL))


def test_built_in_plugins_are_the_checkouts() -> None:
    assert provenance.foreign({**CELL, "method": {"name": "gibbs"}, "backend": {"name": "numba"}}) == {}


def test_an_edited_plugin_is_another_cell(faulty: Path) -> None:
    (found,) = provenance.foreign(CELL).values()
    assert found["name"] == "faulty"
    assert found["distribution"]
    assert found["version"]
    assert found["commit"] is None
    before = key()
    assert key() == before
    assert before != records.cell_key(CELL, GIT)
    source = next(faulty.rglob("spinbench_faulty*.py"), None) or next(faulty.rglob("*.py"))
    source.write_text(source.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert key() != before


def test_a_tracked_plugin_has_a_commit(faulty: Path) -> None:
    def git(*arguments: str) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(faulty), *options, *arguments], check=True, capture_output=True)

    git("init", "-q")
    assert provenance.foreign(CELL)["methods"]["commit"] is None  # nothing is tracked yet
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    found = provenance.foreign(CELL)["methods"]
    assert found["commit"] == environment.git_state(faulty)["commit"]
    assert found["dirty"] is False
    source = next(faulty.rglob("*.py"))
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert provenance.foreign(CELL)["methods"]["dirty"] is True
