"""The wheel holds what the tree holds: every module, every configuration file, every model with its licence."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

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
    # a copy, since setuptools leaves its build folders in the source tree
    source = tmp_path / "source"
    for name in [*tracked, "pyproject.toml", "README.md", "LICENSE"]:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if name.startswith("spinbench/")}
    assert found == expected
