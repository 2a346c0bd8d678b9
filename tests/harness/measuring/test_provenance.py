"""Plugins of other distributions are part of what is measured: an edited one is measured again."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spinbench.foundation import plugins
from spinbench.measuring import environment, provenance, records
from spinbench.models import formats

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
    """The same, whenever it is asked for."""
    found, again = (records.cell_key(CELL, GIT, provenance.foreign_plugins(CELL)) for _ in range(2))
    assert found == again
    return found


def edit(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def test_built_in_plugins_are_the_checkouts() -> None:
    assert provenance.foreign_plugins({**CELL, "method": {"name": "gibbs"}, "backend": {"name": "numba"}}) == {}


def test_an_edited_plugin_is_another_cell(faulty: Path) -> None:
    (found,) = provenance.foreign_plugins(CELL).values()
    assert (found["name"], found["commit"]) == ("faulty", None)
    assert found["distribution"]
    assert found["version"]
    before = key()
    edit(next(faulty.rglob("*.py")))
    assert len({before, key(), records.cell_key(CELL, GIT)}) == 3


def test_a_tracked_plugin_has_a_commit(faulty: Path) -> None:
    def git(*arguments: str) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(faulty), *options, *arguments], check=True, capture_output=True)

    git("init", "-q")
    assert provenance.foreign_plugins(CELL)["methods"]["commit"] is None  # nothing is tracked yet
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    found = provenance.foreign_plugins(CELL)["methods"]
    assert (found["commit"], found["dirty"]) == (environment.git_state(faulty)["commit"], False)
    edit(next(faulty.rglob("*.py")))
    assert provenance.foreign_plugins(CELL)["methods"]["dirty"] is True


def test_a_format_of_others_is_part_of_what_is_measured(install_plugin: Callable[..., Path], tmp_path: Path) -> None:
    source = (
        "from spinbench.models.files.uai import UAI\n"
        "class Other(UAI):\n    suffixes = ('.other',)\n    def recognises(self, head): return False\n"
    )
    formats._load_all.cache_clear()
    install_plugin("spinbench_other", source, {"formats": {"other": "Other"}})
    found = {}
    for name in ("m.uai", "m.other", "missing.other", "m.unknown"):
        if not name.startswith("missing"):
            (tmp_path / name).write_text("MARKOV 1 2 0" if name == "m.uai" else "?")
        cell = {**CELL, "model": {"name": "file", "path": str(tmp_path / name)}}
        found[name] = (
            provenance.foreign_plugins({**cell, "method": {"name": "gibbs"}}).get("formats", {}).get("distribution")
        )
    formats._load_all.cache_clear()
    assert found == {"m.uai": None, "m.other": "spinbench_other", "missing.other": None, "m.unknown": None}


def test_another_module_of_the_distribution_counts(faulty: Path) -> None:
    """Whether it is listed, as installers do, or has another plugin in it."""
    (info,) = faulty.glob("*.dist-info")
    helper = faulty / "spinbench_helper_of_faulty.py"
    helper.write_text("ONE = 1\n")
    alone = key()
    (info / "top_level.txt").write_text(f"{helper.stem}\n__editable___faulty_finder\n")
    before = key()
    helper.write_text("ONE = 2\n")
    assert len({alone, before, key()}) == 3


def test_a_plugin_in_a_namespace_counts(install_plugin: Callable[..., Path]) -> None:
    """Of a folder without an `__init__` module, which others may share, or which stands for no folder."""
    folder = install_plugin("spinbench_spread", "", {"methods": {"x": "X"}})
    (info,) = folder.glob("spinbench_spread*.dist-info")
    (info / "entry_points.txt").write_text("[spinbench.methods]\nspread = spaces_of.inner.plugin:X\n")
    inner = folder / "spaces_of" / "inner"
    inner.mkdir(parents=True)
    for name in ("__init__.py", "plugin.py"):
        (inner / name).write_text("X = 1\n")
    plugins.forget()
    cell = {**CELL, "method": {"name": "spread"}}
    before = provenance.foreign_plugins(cell)["methods"]["source"]
    (inner / "plugin.py").write_text("X = 2\n")
    after = provenance.foreign_plugins(cell)["methods"]["source"]
    assert after != before
    (folder / "spaces_of" / "other.py").write_text("X = 3\n")
    assert provenance.foreign_plugins(cell)["methods"]["source"] == after


def test_a_distribution_that_it_requires_counts(faulty: Path, install_plugin: Callable[..., Path]) -> None:
    """A kernel may inherit from that of another distribution; what no plugin is in is as good as its version."""
    (info,) = (found for found in faulty.glob("*.dist-info") if "faulty" in found.name)
    folder = install_plugin("spinbench_base", "ONE = 1\n", {"methods": {"x": "X"}})
    alone = key()
    with (info / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: Spinbench.Base>=1\nRequires-Dist: numpy\nRequires-Dist: ?\n")
        metadata.write('Requires-Dist: spinbench-other; extra == "more"\n')
    before = key()
    (folder / "spinbench_base.py").write_text("ONE = 2\n")
    assert len({alone, before, key()}) == 3


def test_versions_of_what_a_plugin_requires_are_recorded(install_plugin: Callable[..., Path]) -> None:
    """An upgrade of a framework that only a plugin knows is not taken for a change of the code."""
    assert "packaging" not in environment.describe()["versions"]
    folder = install_plugin("array_backend", "class X: pass\n", {"backends": {"x": "X"}})
    with (folder / "array_backend-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: packaging>=1\nRequires-Dist: a-framework-that-is-not-here\n")
    versions = environment.describe()["versions"]
    assert versions["packaging"] == importlib.metadata.version("packaging")
    assert "a-framework-that-is-not-here" not in versions
