"""What spinbench reaches in asv that is not public is still there, and is listed in the docs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from asv import benchmarks, environment, machine, results

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
OWNERS = {
    "Benchmarks": benchmarks.Benchmarks,
    "Environment": environment.Environment,
    "ExistingEnvironment": environment.ExistingEnvironment,
    "Machine": machine.Machine,
    "MachineCollection": machine.MachineCollection,
    "Results": results.Results,
}
LISTED = re.findall(rf"`({'|'.join(OWNERS)})\.(\w+)`", PAGE.read_text(encoding="utf-8"))
USES = ("asv_cells.py", "asv_results.py", "asv_plugin.py")


@pytest.mark.parametrize(("owner", "name"), LISTED, ids=".".join)
def test_a_name_that_is_not_public_is_there(owner: str, name: str) -> None:
    source = inspect.getsource(OWNERS[owner])
    there = hasattr(OWNERS[owner], name) or re.search(rf"self\.{name}\b", source)
    assert there, f"this asv has no {owner}.{name}; {PAGE} says what it is for"


def test_the_page_lists_all_names_that_are_reached() -> None:
    history = PAGE.parents[1] / "harness" / "history"
    text = "".join((history / name).read_text(encoding="utf-8") for name in USES)
    owners = "".join(map(inspect.getsource, OWNERS.values()))
    private = {
        name for name in re.findall(r"(?:[.\"]|    def )(_[a-z]\w+)", text) if re.search(rf"self\.{name}\b", owners)
    }
    replaced = set(re.findall(r"^ *\w+\.(\w+) = (?:load|save_all|name)$", text, re.MULTILINE))
    assert len(private) > 10
    assert private | replaced == {name for _, name in LISTED}
