"""The wheel holds what the tree holds: every module, every configuration file, every model with its licence."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from fresh_environment import build_wheel

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "harness": "spinbench",
    "backends": "spinbench/backends",
    "methods": "spinbench/methods",
    "conf": "spinbench/conf",
}


def test_wheel_matches_the_tree(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = {FOLDERS[folder] + "/" + rest for folder, _, rest in (name.partition("/") for name in tracked)}
    wheel = build_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if name.startswith("spinbench/")}
    assert found == expected
