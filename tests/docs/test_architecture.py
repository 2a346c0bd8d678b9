"""The page of the floors: its table is the contract's, and its walk is the one that a run takes."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import CodeType, FrameType
from typing import Any

from markdown_blocks import ROOT

import spinbench
from spinbench.foundation import plugins
from spinbench.models import generators

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_table_has_the_floors_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = _section("# The shape of spinbench").partition("|---|---|")[2]
    paths = [ROOT / path for path in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]
    assert [path.name.removesuffix(".py") for path in paths] == [
        name for layer in layers for name in layer.split(" | ")
    ]
    assert all(path.exists() for path in paths)


def test_the_walk_enters_each_room_as_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    spinbench.save(generators.grid(6, 6, seed=1), path)

    def walk() -> None:
        spinbench.run(spinbench.load(path), method="gibbs", backend="numba", budget=100)

    walk()  # imports and compiles
    plugins.forget()  # which are looked up once in a process
    written = [_room(line) for line in re.findall(r"^\d+\. `([^`]+)`", _section("## A walk"), re.MULTILINE)]
    assert len(written) == 14
    assert list(dict.fromkeys(_room(file) for file in _entered(walk))) == written


def test_a_run_enters_no_more_functions_than_it_does() -> None:
    """A reader has to follow each: less is welcome, and the number here goes down with them."""
    model = generators.grid(4, 4, seed=0)

    def walk() -> None:
        spinbench.run(model, "gibbs", "numpy", 50, seed=0)

    walk()
    most = 300 if sys.version_info >= (3, 12) else 332  # comprehensions are functions before 3.12
    assert len(_called(walk)) <= most


def _entered(walk: Callable[[], None]) -> list[str]:
    """Files of the checkout whose functions are called, in the order of their first calls."""
    return list(dict.fromkeys(Path(code.co_filename).relative_to(ROOT).as_posix() for code in _called(walk)))


def _called(walk: Callable[[], None]) -> list[CodeType]:
    """Functions of the checkout, but for tests and an environment in it, in the order of their first calls."""
    found: dict[CodeType, None] = {}

    def look(frame: FrameType, event: str, argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        others = map(file.is_relative_to, (ROOT / "tests", sys.prefix))
        if event == "call" and file.is_relative_to(ROOT) and not any(others):
            found.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(before)
    return list(found)


def _room(path: str) -> str:
    """A folder; models are one room with their files."""
    place = PurePosixPath(path)
    folder = place.parent if place.suffix else place
    return "harness/models" if folder.is_relative_to("harness/models") else str(folder)


def _section(title: str) -> str:
    """Of the page, up to the next heading."""
    return re.split(r"^#+ ", PAGE.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
