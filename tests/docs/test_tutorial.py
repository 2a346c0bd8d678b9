"""The tutorial, followed in a folder of its own: its shell blocks in a fresh environment, its Python in one session."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from markdown_blocks import DOCS, ROOT, Block, blocks, check_printed

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
    """A virtual environment that sees the packages of this one, so that `pip install` changes nothing here."""
    folder = place.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    Path(paths["purelib"], "outer.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n", encoding="utf-8"
    )
    for name, module in {"pip": "pip", "spinbench": "spinbench"}.items():
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's word for: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "SPINBENCH_ROOT": str(place),  # writes no history
        "COLUMNS": "150",
    }


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


def test_the_package_file_is_that_of_the_how_to() -> None:
    """The tutorial's pyproject.toml and the one of "Add a method" are the same."""
    (package,) = (one.text for one in TUTORIAL if "pyproject.toml" in one.text and one.language == "sh")
    (toml, *_) = (one.text for one in blocks(ROOT / "docs/how-to/add-a-method.md") if one.language == "toml")
    assert toml in package
