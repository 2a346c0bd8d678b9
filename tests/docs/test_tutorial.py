"""The tutorial, followed in a folder of its own: its shell blocks in a fresh environment, its Python in one session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fresh_environment import fresh_environment
from markdown_blocks import DOCS, Block, blocks, check_printed

pytest.importorskip("pip")
TUTORIAL = [one for one in blocks(DOCS / "tutorial.md") if one.language in ("sh", "python")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the clone, with the reader's own beside it."""
    clone = tmp_path_factory.mktemp("reader") / "spinbench"
    clone.mkdir()
    (clone / "docs").symlink_to(DOCS)
    return clone


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    made = fresh_environment(place.parent / "environment")
    return {**made, "SPINBENCH_HISTORY": str(place), "COLUMNS": "150"}  # writes no history


def shell(block: Block, place: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.tested],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}: {block.tested}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_block_runs(place: Path, environment: dict[str, str]) -> None:
    """In order; Python at the end, since it needs no more than a file that the shell writes."""
    said = [shell(one, place, environment) for one in TUTORIAL if one.language == "sh" and not one.skipped]
    assert any("gibbs on numba" in text for text in said)
    assert (place / "multirun" / "tour" / "report" / "report.html").exists()
    assert any(text.count("mine") >= 1 and " 0 failed" in text for text in said)
    source = "".join(one.text for one in TUTORIAL if one.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=place, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    check_printed(source, done.stdout)
