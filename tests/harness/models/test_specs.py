"""Models from configuration."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.errors import ModelError, UnknownNameError
from spinbench.models import build, catalogue, families, generators, networks, save, simplify
from spinbench.models.networks import bayesian_network
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.problem import Problem


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


def test_tables_are_conditional_probabilities_and_the_evidence_is_possible() -> None:
    model = bayesian_network(layers=4, width=12, parents=3, determinism=0.5, states=3, observed=0, seed=2)
    assert [factor.scope[-1] for factor in model.factors] == list(range(48))
    for k, factor in enumerate(model.factors):
        assert [v // 12 for v in factor.scope[:-1]] == [k // 12 - 1] * 3 * (k >= 12)
        np.testing.assert_allclose(np.exp(factor.log_table).sum(axis=-1), 1.0)
    deterministic = [bool((factor.log_table.max(axis=-1) == 0).all()) for factor in model.factors]
    assert not any(deterministic[:12])
    assert 8 <= sum(deterministic) <= 28  # 18 of 36 are expected
    for seed in range(5):
        seen = bayesian_network(layers=3, width=8, determinism=1.0, observed=4, seed=seed)
        assert [v // 8 for v in range(24) if v not in seen.origin.free] == [2] * 4
        assert -np.inf < reference.solve(seen, cache=False, marginals=False).log_z <= 0


def test_without_observations_all_sums_out() -> None:
    assert simplify(bayesian_network(observed=0), 99).factors == ()


def test_what_was_out_of_reach_is_exact() -> None:
    model = bayesian_network(width=60, seed=1)
    whole = BucketTree.build(Problem(model))
    assert whole.memory(marginals=True) > 2**30
    found = spinbench.exact(model, max_gib=1.0, cache=False)
    assert found.status == "ok"
    assert "open_marginals" not in found.diagnostics
    assert found.log_z < 0
    assert np.isfinite(found.marginals).all()


def test_seeds_keep_their_meaning() -> None:
    model = bayesian_network()
    assert model.content_hash == bayesian_network(seed=0).content_hash != bayesian_network(seed=1).content_hash
    assert reference.solve(model, marginals=False, cache=False).log_z == pytest.approx(-3.998317373020436, abs=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 0},
        {"parents": 200},
        {"determinism": 1.5},
        {"observed": 101},
        {"states": 0},
        {"seed": -1},
        {"states": 40, "parents": 5},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="model 'bayesian_network'"):
        bayesian_network(**wrong)
