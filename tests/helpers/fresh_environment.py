"""Virtual environments in which commands of the pages run as a reader runs them, without the network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("harness", "backends", "methods", "conf")


def fresh_environment(folder: Path, *nearer: Path) -> dict[str, str]:
    """A virtual environment that sees the packages of this one, so that `pip install` changes nothing here.

    Args:
        folder: of the environment, which is made.
        nearer: folders of packages that are found before those of this environment.

    Returns:
        The variables for commands in it.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    outer = f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n"
    Path(paths["purelib"], "outer.pth").write_text("".join(f"{path}\n" for path in nearer) + outer, encoding="utf-8")
    for name in ("pip", "pytest", "spinbench"):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {name} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's word for: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def build_wheel(folder: Path) -> Path:
    """The wheel of the checkout, as git knows its files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    source = folder / "source"  # a copy, since setuptools leaves its build folders in the source tree
    for name in [*tracked, "pyproject.toml", "README.md", "LICENSE"]:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
