"""Records from anywhere are shown, whatever stands in them and wherever it is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def strange(key: str, path: str, **changes: Any) -> dict[str, Any]:
    parts = {name: {"name": other} for name, other in (("method", "gibbs"), ("backend", "numba"))}
    return {
        "schema": 1,
        "id": key,
        "key": key,
        "family": "inference",
        "axes": {"model": path, "method": "gibbs", "backend": "numba"},
        "config": {"model": {"name": "file", "path": path}, **parts, "budget": {"samples": 9}, "chains": 2, "seed": 0},
        "protocol": "p",
        "git": {},
        "status": "failed",
        "error": "± [/bold] \x1b]0;owned\x07",
        "traceback": None,
        "metrics": {},
        "result": None,
        "reference": None,
        "environment": {},
        "started_at": 1,
        "duration": 1.0,
        **changes,
    }


@pytest.mark.parametrize("words", [("report", "."), ("show", "a")])
def test_an_ascii_terminal_gets_plain_text(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "multirun" / "[/nope]" / "records"
    folder.mkdir(parents=True)
    for number, path in enumerate(("[/nope].uai", "[red]\x1b[2Jmine.uai")):
        (folder / f"record-{number}.json").write_text(json.dumps(strange("ab"[number], path)))
    done = subprocess.run(
        [sys.executable, "-m", "spinbench", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert b"[/nope].uai" in done.stdout
    assert not {0x1B, 0x07} & set(done.stdout)
    assert max(done.stdout) < 128
