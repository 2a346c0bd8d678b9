"""The page of benchmarks is what `benchmarks/page.py` writes of the tables in benchmarks/figures."""

from __future__ import annotations

import subprocess
import sys

from markdown_blocks import DOCS, ROOT


def test_the_page_is_written_by_its_command() -> None:
    command = [sys.executable, "-X", "utf8", ROOT / "benchmarks" / "page.py"]
    written = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert written == (DOCS / "benchmarks.md").read_text(encoding="utf-8")
