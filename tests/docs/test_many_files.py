"""The sweep over two hundred files, as the page has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from markdown_blocks import DOCS, Block, blocks
from small_sweeps import stored

PAGE = DOCS / "how-to" / "own-model.md"


def section(heading: str) -> list[Block]:
    """The blocks below a heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"## {heading}")
    end = next(place for place in range(begin + 1, len(lines)) if lines[place].startswith("## "))
    return [one for one in blocks(PAGE) if begin < one.line <= end]


@pytest.mark.parametrize("files", [5, 200])
def test_its_commands(files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    python, shell = section("Two hundred files")
    exec(python.text.replace("range(200)", f"range({files})"), {})
    assert len([*Path("many").iterdir()]) == files
    done = subprocess.run(["bash", "-ec", shell.text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records = stored(Path("multirun/many"))
    assert len(records) == 2 * files
    assert {record["status"] for record in records} <= {"ok", "oversubscribed", "marginals too short"}
    assert f"RMSE of the marginals after 500 samples, {files} models" in done.stdout
    assert f"{files} models" in Path("board.md").read_text(encoding="utf-8")
    assert "many/003.uai" in done.stdout
