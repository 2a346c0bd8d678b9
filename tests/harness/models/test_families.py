"""Models from configuration: families, those of third parties too, shipped models, files."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_sweeps import QUICK, stored, sweep

from spinbench import cli
from spinbench.conf import searchpath
from spinbench.errors import BrokenPluginError, ModelError, SpinbenchError, UnknownNameError
from spinbench.measuring.records import model_label
from spinbench.models import build, catalogue, families, generators, networks, save, specs

SOURCE = '''
from spinbench.api import PairwiseModel, family

@family
def star(leaves: int, field: float = 0.5, sign: str = "plus") -> PairwiseModel:
    """One hub."""
    coupling = 1.0 if sign == "plus" else -1.0
    edges = [(0, leaf) for leaf in range(1, leaves + 1)]
    return PairwiseModel.from_edges([field] * (leaves + 1), edges, [coupling] * leaves, name="star")

def text() -> str:
    return "no model"

constant = 3

def positional(n, /): ...

def anything(**parameters): ...

def named(name="x"): ...
'''
Install = Callable[..., Path]


@pytest.mark.parametrize("name", families.names())
def test_every_family_builds_with_its_defaults(name, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "spinbench-cache"))
    model = build({"name": name})
    assert model.name.split()[0] == name
    assert model.content_hash == families.load(name)().content_hash


def test_every_generator_is_a_family():
    public = {
        name
        for module in (generators, networks)
        for name, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public | {"bayesian_network", "skip_chain"} == set(families.names())


def test_parameters_reach_the_family():
    model = build({"name": "grid", "rows": 3, "cols": 4.0, "c1": 1, "kind": "frustrated", "seed": 5, "scale": None})
    assert model.content_hash == generators.grid(3, 4, c1=1.0, kind="frustrated", seed=5).content_hash


def test_shipped_models_and_files(tmp_path):
    assert build({"name": "libdai/testfast"}).content_hash == catalogue.load("libdai/testfast").content_hash
    save(generators.grid(2, 2), tmp_path / "m.uai")
    (tmp_path / "m.evid").write_text("1 0 1")
    spec = {"name": "file", "path": tmp_path / "m.uai", "evidence": None, "beta": None}
    assert build(spec).num_variables == 4
    assert build(spec | {"evidence": str(tmp_path / "m.evid")}).num_variables == 3
    assert build(spec | {"evidence": {0: 1, 3: 0}}).num_variables == 2


@pytest.fixture
def star(install_plugin: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """For processes that a sweep starts, too."""
    folder = install_plugin("spinbench_star", SOURCE, {"models": {"star": "star"}})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.usefixtures("star")
def test_a_third_partys_family_is_listed_and_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    assert ", star," in " ".join(capsys.readouterr().out.split())
    assert "star" in specs.names()
    model = build({"name": "star", "leaves": 3.0, "field": None})
    assert (model.num_variables, model.biases[0], model.couplings[0]) == (4, 0.5, 1.0)
    for wrong, message in (
        ({"name": "star", "leaves": 2.5}, r"^model 'star': leaves = 2\.5 was given; an integer is needed$"),
        ({"name": "star", "field": 1}, "^model 'star' needs the parameter leaves$"),
        ({"name": "star", "leafs": 2}, "^model 'star' has no parameter 'leafs'; its parameters are leaves, field"),
        ({"name": "stat"}, "no model is named 'stat'; did you mean star"),
    ):
        with pytest.raises((ModelError, UnknownNameError), match=message):
            build(wrong)


@pytest.mark.usefixtures("star", "faulty")
def test_a_third_partys_family_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert searchpath.model_defaults("star") == {"name": "star", "leaves": "???", "field": 0.5, "sign": "plus"}
    cell = [line for line in QUICK if not line.startswith("model")]
    assert sweep(*cell, "model=star", "model.leaves=3", "model.sign=minus", "sweep_dir=out") == 0
    (record,) = stored("out")
    assert record["status"] == "ok"
    assert record["config"]["model"] == {"name": "star", "leaves": 3, "field": 0.5, "sign": "minus"}
    assert model_label(record["config"]["model"]) == "star(leaves=3,sign=minus)"


@pytest.mark.usefixtures("star")
def test_a_sweep_of_a_family_says_which_parameter_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("model=star", "budget=smoke") == 2
    assert "model.leaves was not given; add model.leaves=VALUE" in capsys.readouterr().err
    assert sweep("model=star", "model.leaves=2", "model.feld=1") == 2
    assert "no setting of model star is named 'feld'; did you mean field" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ("constant", "is of type int; a function that returns a model is needed"),
        ("positional", "takes n; parameters that are given by name are needed"),
        ("anything", r"takes \*\*parameters; parameters that are given by name are needed"),
        ("named", "takes a parameter called name, which is what the family is found by"),
        ("missing", "failed on import: AttributeError: .*"),
        ("text", "returned a str; a PairwiseModel or a FactorGraph is needed"),
    ],
)
def test_what_is_no_family_is_refused_in_one_sentence(install_plugin: Install, attribute: str, sentence: str) -> None:
    install_plugin("spinbench_star", SOURCE, {"models": {"bad": attribute}})
    with pytest.raises(BrokenPluginError, match=rf"^model 'bad' \(spinbench_star:{attribute}, from .*\) {sentence}$"):
        build({"name": "bad"})


def test_a_broken_family_hurts_nobody_else(install_plugin: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install_plugin("spinbench_broken", "raise SystemExit(5)", {"models": {"bad": "bad"}})
    assert cli.main(["list"]) == 0
    output = capsys.readouterr().out
    assert "  broken   bad" in output
    assert "model 'bad' (spinbench_broken:bad, from spinbench_broken 1.0) failed on import: SystemExit: 5" in output
    assert "grid" in output.partition("broken   bad")[0].partition("families")[2]
    assert build({"name": "grid", "rows": 2, "cols": 2}).num_variables == 4
    assert searchpath.model_defaults("bad") == {"name": "bad"}, "building the cell's model fails with the error"


def test_two_owners_of_one_name_break_that_name_only(install_plugin: Install) -> None:
    owners = {"grid": "star", "file": "star", "uai14/Grids_12": "star"}
    install_plugin("spinbench_star", SOURCE, {"models": owners})
    assert set(families.load_errors()) == {"grid of spinbench-star", "file", "uai14/Grids_12"}
    assert build({"name": "grid"}).num_variables == 100  # spinbench's own
    for name in ("file", "uai14/Grids_12"):
        with pytest.raises(
            SpinbenchError, match=rf"^model '{name}' \(.*\) has the name of a model of spinbench's own$"
        ):
            build({"name": name})
    assert build({"name": "torus"}).num_variables == 256


def test_names_are_read_from_metadata_alone() -> None:
    code = "import sys; from spinbench.models import families; names = families.names(); print(len(names)); "
    code += "print([name for name in sys.modules if name.startswith(('spinbench.papers', 'spinbench.models.gen'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"
    assert int(done.stdout.splitlines()[0]) >= 15
