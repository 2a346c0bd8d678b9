"""Models from configuration."""

from __future__ import annotations

import inspect

import pytest

from spinbench.errors import ModelError, UnknownNameError
from spinbench.models import build, catalogue, families, generators, networks, save


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


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ({}, ModelError, "the model's name is None"),
        ({"name": 3}, ModelError, "the model's name is 3"),
        ({"name": "grids"}, UnknownNameError, "no model is named 'grids'; did you mean grid"),
        ({"name": "uai14/Grids_13"}, UnknownNameError, "uai14/Grids_12"),
        (
            {"name": "grid", "row": 3},
            ModelError,
            "model 'grid' has no parameter 'row'; its parameters are rows, cols, c1",
        ),
        ({"name": "grid", "rows": 2.5}, ModelError, "model 'grid': rows = 2.5 was given; an integer is needed"),
        ({"name": "grid", "rows": True}, ModelError, "model 'grid': rows = True was given; an integer is needed"),
        (
            {"name": "grid", "rows": float("inf")},
            ModelError,
            "model 'grid': rows = inf was given; an integer is needed",
        ),
        ({"name": "grid", "c1": "x"}, ModelError, "model 'grid': c1 = 'x' was given; a number is needed"),
        ({"name": "grid", "kind": 3}, ModelError, "model 'grid': kind = 3 was given; standard or frustrated"),
        ({"name": "grid", "kind": "odd"}, ModelError, "model 'grid': kind = 'odd'; 'standard'"),
        ({"name": "grid", "rows": 0}, ModelError, "model 'grid': rows = 0"),
        (
            {"name": "libdai/testfast", "seed": 1},
            ModelError,
            "model 'libdai/testfast' has no parameter 'seed'; it has no",
        ),
        ({"name": "file"}, ModelError, "model 'file' needs the parameter path"),
        (
            {"name": "file", "file": "x"},
            ModelError,
            "model 'file' has no parameter 'file'; its parameters are path, evi",
        ),
        ({"name": "file", "path": "missing.uai"}, ModelError, "missing.uai: there is no such file"),
    ],
)
def test_bad_specs_are_refused(spec, error, words):
    with pytest.raises(error) as info:
        build(spec)
    assert words in str(info.value)
