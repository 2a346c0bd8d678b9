"""The how-to of formats and metrics, followed to the letter in a fresh environment outside the checkout."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from fresh_environment import build_wheel, fresh_environment

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "add-a-model-format-or-metric.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.M | re.S)
    return [textwrap.dedent(text) for _, text in found]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """All commands in order, in one shell: the folder, the variables and what was printed."""
    base = tmp_path_factory.mktemp("author")
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    variables = {
        **fresh_environment(base / "environment"),
        "SPINBENCH_HISTORY": str(base),  # writes no history
        "SPINBENCH_CACHE_DIR": str(base / "cache"),
        "COLUMNS": "200",
    }
    script = "\n".join(["set -e", f"pip install --quiet --force-reinstall {wheel}", *blocks("sh")])
    done = subprocess.run(
        ["sh", "-c", script], cwd=base, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return base, variables, done.stdout


@pytest.mark.slow
def test_commands(followed: tuple[Path, dict[str, str], str]) -> None:
    said = followed[2]
    assert said.count(".coins") > 1
    assert "broken" not in said
    assert "two.coins" in said
    assert re.search(r"metrics +mine, pair_rmse", said)
    assert "largest" in said
    assert "failed" not in said


@pytest.mark.slow
@pytest.mark.parametrize(("place", "folder"), [(0, "my_format"), (1, "my_metric")])
def test_test_files(followed: tuple[Path, dict[str, str], str], place: int, folder: str) -> None:
    base, variables, _ = followed
    assert (base / folder / f"test_{folder}.py").read_text() == blocks("python")[place]
    assert blocks("toml")[place] in (base / folder / "pyproject.toml").read_text()
    done = subprocess.run(
        ["pytest", "-q", "-p", "no:cacheprovider"],
        cwd=base / folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
