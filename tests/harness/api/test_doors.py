"""The doors that are promised to plugins: what they hold is documented, loads late, and suffices for a method."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spinbench
import spinbench.testing
from spinbench import api
from spinbench.api import messages, old_members, relaxation
from spinbench.errors import UnsupportedError
from spinbench.models import build, generators
from spinbench.testing.laws.cases import three_state_model

ROOT = Path(__file__).parents[3]
CONTRACTS = (ROOT / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
TABLES = ("messages", "relaxation", "sweeps")
DOORS = {"spinbench", "spinbench.api", "spinbench.testing", "spinbench.errors"}


def documented(door: str) -> set[str]:
    """What the page documents of a door: by its docstring, or by a link to where that stands."""
    linked = (
        re.findall(r"\[`(\w+)`\]\(models\.md#spinbench\.models\.(\w+)\)", CONTRACTS) if door.endswith("api") else []
    )
    assert all(shown == target for shown, target in linked)
    here = re.findall(rf"^::: {re.escape(door)}\.(\w+)$", CONTRACTS, re.M)
    return {*here, *(shown for shown, _ in linked)}


def test_the_page_of_contracts_lists_what_the_api_promises() -> None:
    (table,) = re.findall(r"^\| from `spinbench\.api` \| \|\n\|---\|---\|\n((?:\|.*\n)+)", CONTRACTS, re.M)
    listed = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(api.__all__)
    assert documented("spinbench.api") == set(api.__all__)


def test_the_page_of_contracts_lists_what_the_conformance_suite_promises() -> None:
    assert documented("spinbench.testing") == set(spinbench.testing.__all__)


def members(cls: type) -> set[str]:
    """Public names of a class and of those of spinbench that it inherits from, without those of version 0.1."""
    old = {
        "devices",
        "step_updates",
        *old_members.KERNELS,
        *old_members.NEW,
        *old_members.OPERATIONS,
        *old_members.ESTIMATE,
        *old_members.VERDICTS,
    }
    homes = [home for home in cls.__mro__ if home.__module__.startswith("spinbench")]
    found = {name for home in homes for name in {*vars(home), *getattr(home, "__annotations__", {})}}
    return {name for name in found if not (name.startswith("_") or name in old)}


def test_the_page_of_contracts_lists_the_members_of_each_class_and_counts_them() -> None:
    (table,) = re.findall(r"^\| members \|.*\n\|---\|---\|---\|\n((?:\|.*\n)+)", CONTRACTS, re.M)
    rows = {}
    for row in table.splitlines():
        name, *cells = (re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|"))
        rows[name[0]] = cells
    for name, (written, rest) in rows.items():
        own = members(getattr(api, name))
        assert sorted([*written, *rest]) == sorted(own | set(written)), name
    to_write, rest = ([name for cell in column for name in cell] for column in zip(*rows.values(), strict=True))
    names = {*to_write, *rest}
    assert len(names) <= 60
    assert len(rows["Method"][1]) <= 8
    assert f"These are {len(names)} names, of which {len({*to_write})} are to be written" in CONTRACTS


@pytest.mark.parametrize("door", [api, spinbench.testing, *(getattr(api, name) for name in TABLES)])
def test_everything_promised_is_there(door: object) -> None:
    promised = door.__all__  # type: ignore[attr-defined]
    assert promised == sorted(promised, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    for name in promised:
        assert getattr(door, name) is not None
    assert set(promised) <= set(dir(door))


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'spinbench\.api' has no attribute 'Gibbs'$"):
        _ = api.Gibbs  # type: ignore[attr-defined]


def test_the_contracts_load_no_array_library() -> None:
    program = (
        "import sys, spinbench.api\n"
        "print([name for name in ('numpy', 'scipy', 'numba', 'jax') if name in sys.modules])\n"
        "spinbench.api.PairwiseModel, spinbench.api.sweeps\n"
        "print([name for name in ('numpy', 'numba', 'jax') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['numpy']"]


def sources() -> dict[str, str]:
    """Every plugin that ships with the project or its tests."""
    files = [
        *(ROOT / "harness" / "scaffold" / "templates").glob("[!_]*.py"),
        *(ROOT / "tests" / "example_plugin").glob("*.py"),
        *(ROOT / "tests" / "example_methods").glob("*.py"),
        ROOT / "tests" / "harness" / "testing" / "faulty_plugin.py",
        ROOT / "tests" / "harness" / "api" / "host_tables_plugin.py",
        ROOT / "tests" / "harness" / "api" / "heat_bath_plugin.py",
    ]
    found = {path.name: path.read_text(encoding="utf-8") for path in files}
    found["surroundings.FAULTY"] = importlib.import_module("surroundings").FAULTY
    return found


@pytest.mark.parametrize("name", sorted(sources()))
def test_plugins_come_in_through_the_doors_alone(name: str) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(sources()[name])):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            imported.add(node.module)
            if node.module == "spinbench":
                imported |= {f"spinbench.{alias.name}" for alias in node.names} - {
                    f"spinbench.{name}" for name in spinbench.__all__
                }
    used = {module for module in imported if module.partition(".")[0] == "spinbench"}
    assert used
    assert used <= DOORS


SOURCE = Path(__file__).with_name("host_tables_plugin.py").read_text(encoding="utf-8")
SWEEPS = Path(__file__).with_name("heat_bath_plugin.py").read_text(encoding="utf-8")


@pytest.fixture
def plugin(install_plugin: Callable[..., Path]) -> None:
    install_plugin("spinbench_colours", SOURCE, {"methods": {"colours": "Colours"}, "models": {"star": "star"}})


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_a_method_of_a_third_party_samples_its_familys_models(backend: str) -> None:
    model = build({"name": "star", "leaves": 4, "sign": "minus"})
    result = spinbench.run(model, "colours", backend, 2000, chains=16, seed=3)
    exact = spinbench.exact(model, cache=False).marginals
    assert result.tier == "generic"
    assert np.abs((result.marginals - exact) / result.marginals_se).max() < 4
    assert result.ess.min() > 5000


@pytest.mark.usefixtures("plugin")
def test_tables_lead_to_a_model_and_back() -> None:
    model = build({"name": "star", "leaves": 3})
    graph = messages.lower(model)
    assert np.shape(messages.incidence(graph).target) == (2 * model.num_edges,)
    states = np.tile([0.25, 0.75], model.num_variables)
    np.testing.assert_allclose(messages.marginals(graph, model, states), 0.75)
    relaxed = relaxation.relax(model, "dd")
    x = np.random.default_rng(0).standard_normal((model.num_variables, 5))
    assert relaxed.log_density(x).shape == (5,)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("blocks", [True, False])
def test_sweeps_are_a_building_block(install_plugin: Callable[..., Path], backend: str, blocks: bool) -> None:
    install_plugin("spinbench_turns", SWEEPS, {"methods": {"turns": "Turns"}})
    model = generators.grid(4, 4, c2=0.6)
    found = spinbench.run(model, "turns", backend, 600, chains=32, seed=2, blocks=blocks)
    marginals, errors = np.hstack(found.marginals), np.hstack(found.marginals_se)
    exact = np.hstack(spinbench.exact(model, cache=False).marginals)
    assert (np.abs(marginals - exact) <= 4.5 * errors).all()
    assert errors.max() < 0.02
    with pytest.raises(UnsupportedError, match="has 1-of-K groups"):
        spinbench.run(three_state_model(), "turns", backend, 10, blocks=blocks)
