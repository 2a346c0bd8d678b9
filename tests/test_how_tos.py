"""The how-tos, followed to the letter: their template, their pyproject.toml, their commands, their test file."""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
PAGES = {
    "add-a-backend": ("backend_template.py", "my_backend"),
    "add-a-method": ("method_template.py", "my_method"),
    "add-a-model-family": ("family_template.py", "my_family"),
}
CHOSEN = {"add-a-backend": "namespace or transfer", "add-a-method": "numpy and (plan or accuracy)"}
"""Of the checks in a page's test file, those that are run here."""


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", (HOW_TO / f"{page}.md").read_text(), re.M | re.S)
    return [textwrap.dedent(text) for _, text in found]


@pytest.fixture(scope="module", params=list(PAGES))
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def installed(page: str, pip_install: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Steps 1 to 3."""
    template, module = PAGES[page]
    folder = tmp_path_factory.mktemp("author") / module
    folder.mkdir()
    assert f"(templates/{template})" in (HOW_TO / f"{page}.md").read_text()
    shutil.copy(HOW_TO / "templates" / template, folder / f"{module}.py")
    (folder / "pyproject.toml").write_text(blocks(page, "toml")[0])
    return pip_install(folder)


@pytest.mark.slow
def test_commands(page: str, installed: Any) -> None:
    """The steps after the installation. For a backend, the suite is run with one method only, to save time."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert lines[0] == "pip install -e ."
    said = {}
    for line in lines[1:]:
        program, *words = shlex.split(line)
        assert program == "spinbench"
        if words == ["check", "--backend", "mine"]:
            words += ["--method", "gibbs"]
        done = installed.spinbench(*words)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        said[words[0]] = done.stdout
    assert re.search(r"\bmine\b", said["list"])
    assert "broken" not in said["list"]
    if page in CHOSEN:
        assert "generic" in said["list"]
        assert said["check"].splitlines()[-1].endswith("0 failed")
    assert "mine" in said["sweep"]


def test_the_test_file(page: str, installed: Any) -> None:
    """The last step; of a suite, a few of the checks."""
    (source,) = blocks(page, "python")
    (installed.work / f"test_{page.replace('-', '_')}.py").write_text(source)
    chosen = ["-k", CHOSEN[page]] if page in CHOSEN else []
    done = installed.python("-m", "pytest", "-q", *chosen, "-p", "no:cacheprovider", str(installed.work))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b([4-9]|1\d) passed" if chosen else r"\b1 passed", done.stdout)


def test_kernel_example_is_valid(page: str) -> None:
    """Further blocks of TOML are entry points of groups that exist."""
    import tomllib

    for block in blocks(page, "toml"):
        groups = tomllib.loads(block)["project"]["entry-points"]
        kinds = ("backends", "methods", "kernels", "models", "conf")
        assert set(groups) <= {f"spinbench.{kind}" for kind in kinds}


def test_the_promised_functions_are_those_that_the_suite_checks() -> None:
    from spinbench.testing import NAMESPACE

    text = (HOW_TO.parent / "reference" / "contracts.md").read_text()
    (names,) = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    assert names.split() == sorted(NAMESPACE)
