"""The page on comparing methods, followed in a folder with a model of the reader's own."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

import pytest
from markdown_blocks import DOCS, blocks, check_printed

import spinbench
from spinbench.models import generators

PAGE = DOCS / "how-to" / "compare-methods.md"


def test_its_commands_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", str(tmp_path))
    spinbench.save(generators.grid(3, 3, seed=1), "my.uai")
    source = ""
    printed = io.StringIO()
    for block in blocks(PAGE):
        if block.language == "sh":
            done = subprocess.run(["bash", "-ec", block.tested], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"line {block.line}: {done.stdout}{done.stderr}"
        else:
            source += block.text
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, str(PAGE), "exec"), {"__name__": "page"})
    check_printed(source, printed.getvalue())
    assert len([*Path("multirun/compare/records").glob("*.json")]) == 8
