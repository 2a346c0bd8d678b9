"""The page of records names each column that a sweep's table has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from markdown_blocks import DOCS

import spinbench


def test_each_column_is_on_the_page(tmp_path: Path) -> None:
    sys.path.insert(0, str(DOCS / "hooks"))
    try:
        import records_page
    finally:
        sys.path.pop(0)
    patterns = [
        re.compile(re.escape(name).replace("NAME", r".+"))
        for name in re.findall(r"^\| `([^`]+)`", records_page.text(), re.MULTILINE)
    ]
    words = ["model=grid", "model.rows=3", "method=gibbs", "backend=numpy", "budget=samples", "budget.samples=20"]
    folder = spinbench.sweep(*words, f"sweep_dir={tmp_path}")
    columns = spinbench.read(folder, kind="arrow").column_names
    assert [name for name in columns if not any(pattern.fullmatch(name) for pattern in patterns)] == []
