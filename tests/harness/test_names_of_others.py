"""What spinbench reaches in asv and Hydra that is not public is still there, and is listed in the docs."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
OWNERS = {
    "Benchmarks": "asv.benchmarks",
    "Environment": "asv.environment",
    "ExistingEnvironment": "asv.environment",
    "Machine": "asv.machine",
    "MachineCollection": "asv.machine",
    "Results": "asv.results",
    "ConfigLoaderImpl": "hydra._internal.config_loader_impl",
    "Plugins": "hydra.core.plugins",
    "Singleton": "hydra.core.singleton",
    "BasicSweeper": "hydra._internal.core_plugins.basic_sweeper",
}
CLASSES = {name: getattr(importlib.import_module(module), name) for name, module in OWNERS.items()}
LISTED = re.findall(rf"`({'|'.join(OWNERS)})\.(\w+)`", PAGE.read_text(encoding="utf-8"))
IN_ASV = ("asv_cells.py", "asv_results.py", "asv_plugin.py")


def text_of(folder: str, *names: str) -> str:
    paths = [ROOT / "harness" / folder / name for name in names] or sorted((ROOT / "harness" / folder).glob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


@pytest.mark.parametrize(("owner", "name"), LISTED, ids=".".join)
def test_a_name_that_is_not_public_is_there(owner: str, name: str) -> None:
    source = inspect.getsource(CLASSES[owner])
    there = hasattr(CLASSES[owner], name) or re.search(rf"self\.{name}\b", source)
    assert there, f"there is no {owner}.{name} in {OWNERS[owner]} any more; {PAGE} says what it is for"


def test_the_page_lists_all_names_that_are_reached_in_asv() -> None:
    text = text_of("history", *IN_ASV)
    owners = "".join(inspect.getsource(CLASSES[name]) for name, module in OWNERS.items() if module.startswith("asv"))
    private = {
        name for name in re.findall(r"(?:[.\"]|    def )(_[a-z]\w+)", text) if re.search(rf"self\.{name}\b", owners)
    }
    replaced = set(re.findall(r"^ *[\w.]+\.(\w+) = (?:load|save_all|name)$", text, re.MULTILINE))
    assert len(private) > 10
    assert private | replaced == {name for owner, name in LISTED if OWNERS[owner].startswith("asv")}


def test_the_page_lists_all_names_that_are_reached_in_hydra() -> None:
    """Names of private modules, private members, and members of Hydra's own that are set."""
    text = text_of("sweeping")
    modules = set(re.findall(r"hydra\._internal[\w.]*\.(\w+)(?: import|\.\w+\")", text))
    assert modules == {OWNERS[name].rpartition(".")[2] for name in ("ConfigLoaderImpl", "BasicSweeper")}
    owners = r"\b(ConfigLoaderImpl|Singleton|Plugins)(?:\.instance\(\))?"
    reached = set(re.findall(rf"{owners}\.(_\w+|set_state|class_\w+)", text))
    listed = {(owner, name) for owner, name in LISTED if OWNERS[owner].startswith("hydra")}
    assert listed == {*reached, ("BasicSweeper", "sweep")}
