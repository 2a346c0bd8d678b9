"""The how-tos, followed to the letter in fresh environments: their commands, what these write, and its test files."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fresh_environment import build_wheel, fresh_environment

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
# The folders that they write.
PAGES = {"add-a-backend": "my_backend", "add-a-method": "my_method", "add-a-model-family": "my_family"}
# Of the checks in a page's test file, those that are run here.
CHOSEN = {"add-a-backend": "namespace or transfer", "add-a-method": "numpy and (plan or accuracy)"}

# What the pages name to make a check take less time, behind those that would take minutes here.
QUICKER = {
    "check --backend mine": "--method mf --chains 256 --seconds 2",
    "check --method mine --backend numpy": "--chains 256 --seconds 2",
    "check --method mine": "--chains 256 --only 'accuracy, dense'",
}

# Commands until the package is installed.
BEGUN = 3
# The page of two packages, whose commands are one script.
FORMAT_AND_METRIC = "add-a-model-format-or-metric"


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", (HOW_TO / f"{page}.md").read_text(), re.M | re.S)
    return [textwrap.dedent(text) for _, text in found]


def lines(page: str) -> list[str]:
    """Its commands."""
    return [line for text in blocks(page, "sh") for line in text.splitlines()]


@dataclass(frozen=True)
class Author:
    """Someone with spinbench's wheel in a fresh environment, outside of the checkout.

    Attributes:
        folder: of the package that `spinbench init` has written, or of several.
        variables: for commands.
    """

    folder: Path
    variables: dict[str, str]

    def run(self, line: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            shlex.split(line),
            cwd=folder or self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module", params=list(PAGES))
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """spinbench's wheel, installed once for all authors."""
    base = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(base / "packages")]
    subprocess.run([*command, str(build_wheel(base))], check=True)
    return base / "packages"


def begin(base: Path, packages: Path) -> Author:
    variables = {
        **fresh_environment(base / "environment", packages),
        "SPINBENCH_HISTORY": str(base),  # writes no history
        "SPINBENCH_CACHE_DIR": str(base / "cache"),
        "COLUMNS": "200",
    }
    return Author(base, variables)


@pytest.fixture(scope="module")
def author(page: str, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Author:
    """Steps 1 and 2: the package is written and installed."""
    base = tmp_path_factory.mktemp("author")
    init, enter, install = lines(page)[:BEGUN]
    found = replace(begin(base, packages), folder=base / PAGES[page])
    where = found.run("python -c 'import spinbench; print(spinbench.__file__)'", base)
    assert Path(where).is_relative_to(packages)
    found.run(init, base)
    assert enter == f"cd {PAGES[page]}"
    assert install == "pip install -e ."
    found.run(install)
    return found


@pytest.mark.slow
def test_commands(page: str, author: Author) -> None:
    """The steps after the installation."""
    said = {}
    for line in lines(page)[BEGUN:]:
        program, *words = shlex.split(line)
        assert program == "spinbench"
        said[words[0]] = author.run(f"{line} {QUICKER.get(' '.join(words), '')}")
    assert re.search(r"\bmine\b", said["list"])
    assert "broken" not in said["list"]
    if page in CHOSEN:
        assert "generic" in said["list"]
        assert said["check"].splitlines()[-1].endswith("0 failed")
    assert "mine" in said["sweep"]


def test_the_test_file(page: str, author: Author) -> None:
    """The last step; of a suite, a few of the checks."""
    (source,) = blocks(page, "python")
    assert (author.folder / f"test_{PAGES[page]}.py").read_text() == source
    chosen = f"-k '{CHOSEN[page]}'" if page in CHOSEN else ""
    said = author.run(f"pytest -q {chosen} -p no:cacheprovider")
    assert re.search(r"\b([4-9]|[12]\d) passed" if chosen else r"\b1 passed", said)


def test_the_entry_point_is_the_one_shown(page: str, author: Author) -> None:
    assert blocks(page, "toml")[0] in (author.folder / "pyproject.toml").read_text()


def test_kernel_example_is_valid(page: str) -> None:
    """Further blocks of TOML are entry points of groups that exist."""

    for block in blocks(page, "toml"):
        groups = tomllib.loads(block)["project"]["entry-points"]
        kinds = ("backends", "methods", "kernels", "models", "conf")
        assert set(groups) <= {f"spinbench.{kind}" for kind in kinds}


# Kinds of packages that no page begins with, and the checks that are run here.
UNPAGED = {
    "bound": "bound or bracket",
    "c-kernel": "accuracy or hidden",
    "numba-kernel": "accuracy or hidden",
    "program": "accuracy and (17 or three)",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNPAGED)
def test_kernels_and_programs(kind: str, packages: Path, tmp_path: Path) -> None:
    """Made, installed and tested; `asv run` finds its cells."""
    author = begin(tmp_path, packages)
    author.run(f"spinbench init my_package --{kind} mine")
    folder = tmp_path / "my_package"
    author = Author(folder, {**author.variables, "SPINBENCH_HISTORY": str(folder)})
    author.run("pip install -e .")
    said = author.run(f"pytest -q -k '{UNPAGED[kind]}' -p no:cacheprovider")
    assert re.search(r"\b\d+ passed", said)
    name = "gibbs" if kind == "bound" else "mine"  # a bound is no cell
    assert name in author.run("python -c 'from benchmarks import cells; print(cells.track_step_seconds.params)'")


@pytest.fixture(scope="module")
def format_and_metric(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Author, str]:
    """All commands of the page in order, in one shell: who has run them, and what was printed."""
    found = begin(tmp_path_factory.mktemp("author"), packages)
    script = "\n".join(["set -e", *blocks(FORMAT_AND_METRIC, "sh")])
    return found, found.run(shlex.join(["sh", "-c", script]))


@pytest.mark.slow
def test_commands_of_formats_and_metrics(format_and_metric: tuple[Author, str]) -> None:
    said = format_and_metric[1]
    assert said.count(".coins") > 1
    assert "broken" not in said
    assert "two.coins" in said
    assert re.search(r"metrics +mine, pair_rmse", said)
    assert "largest" in said
    assert "failed" not in said


@pytest.mark.slow
@pytest.mark.parametrize(("place", "folder"), [(0, "my_format"), (1, "my_metric")])
def test_test_files_of_formats_and_metrics(format_and_metric: tuple[Author, str], place: int, folder: str) -> None:
    author = format_and_metric[0]
    written = author.folder / folder
    assert (written / f"test_{folder}.py").read_text() == blocks(FORMAT_AND_METRIC, "python")[place]
    assert blocks(FORMAT_AND_METRIC, "toml")[place] in (written / "pyproject.toml").read_text()
    assert "1 passed" in author.run("pytest -q -p no:cacheprovider", written)
