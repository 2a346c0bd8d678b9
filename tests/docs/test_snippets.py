"""Code and commands on the pages: Python runs and prints what its comments say; commands parse, with all names."""

from __future__ import annotations

import contextlib
import io
import shlex
from functools import cache
from pathlib import Path

import pytest
from markdown_blocks import PAGES, ROOT, blocks, check_printed, commands

from spinbench.command_options import build_parser
from spinbench.sweeping import composition
from spinbench.sweeping.arguments import Arguments

# Pages whose Python another test runs.
ELSEWHERE = {
    "README.md": "tests/test_readme.py",
    "docs/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/how-to/compare-methods.md": "tests/docs/test_compare_methods.py",
    "docs/how-to/add-a-method.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-backend.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-model-family.md": "tests/test_how_tos.py",
    "docs/how-to/add-a-model-format-or-metric.md": "tests/test_how_to_format_or_metric.py",
}

# In commands that need what the reader writes or installs: a plugin (which tests/test_how_tos.py and test_tutorial.py
# run), a configuration, ray.
OF_THE_READER = ("mine", "hydra.searchpath", "launcher=ray")

NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
WITH_PYTHON = [
    name
    for name in NAMES
    if name not in ELSEWHERE and any(one.language == "python" and not one.skipped for one in blocks(ROOT / name))
]


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "".join(one.text for one in blocks(ROOT / name) if one.language == "python" and not one.skipped)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), {"__name__": "page"})
    check_printed(source, printed.getvalue())


@pytest.mark.parametrize("name", [name for name in NAMES if "```sh" in (ROOT / name).read_text(encoding="utf-8")])
def test_commands_parse(name: str) -> None:
    found = [line for one in blocks(ROOT / name) if one.language == "sh" for line in commands(one)]
    for line in found:
        words = shlex.split(line)[1:]
        if any(word in line for word in OF_THE_READER):
            continue
        if words[0] != "sweep":
            build_parser().parse_args(words)
        elif not {"--help", "--resume", "--profile"} & set(words):
            given = Arguments.parse(words[1:])
            compose(given.of_cells, given.multirun)


@cache
def compose(overrides: tuple[str, ...], multirun: bool) -> None:
    """Once for the same command on several pages."""
    composition.plan(overrides, multirun=multirun)
