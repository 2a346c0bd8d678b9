"""The configuration groups: options are the defaults of classes and functions, and presets of these."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError, UnknownNameError
from spinbench.foundation import plugins
from spinbench.inference import kernels
from spinbench.inference.budget import Budget
from spinbench.models import specs
from spinbench.sweeping import composition
from spinbench.sweeping.settings_checks import CHECKS

CONF = files("spinbench.conf")
PRESETS = [(group, name) for group, names in searchpath.presets().items() for name in names]
BUILT_IN = [name for name, points in plugins.entry_points("methods").items() if points[0].dist.name == "spinbench"]


def written(path: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(CONF.joinpath(path).read_text(encoding="utf-8"))
    return content


def stems(group: str) -> set[str]:
    return {
        entry.name.removesuffix(".yaml") for entry in CONF.joinpath(group).iterdir() if entry.name.endswith(".yaml")
    }


@pytest.mark.parametrize("name", [name for name in specs.names() if name != "file"])
def test_defaults_of_a_model_build_it(name: str) -> None:
    assert specs.build(searchpath.option("model", name)).num_variables > 0


@pytest.mark.parametrize(("group", "name"), PRESETS)
def test_presets_are_defaults_but_for_some_settings(group: str, name: str) -> None:
    changed = dict(searchpath.presets()[group][name])
    defaults = searchpath.option(group, changed.pop("of"))
    assert changed.keys() <= defaults.keys(), "settings that there are"
    assert searchpath.option(group, name) == defaults | changed


def test_a_preset_is_an_option_whose_values_can_be_overridden() -> None:
    plan = composition.plan(["method=peers/gibbs", "method.scan=raster", "model=field/grid_weak"], multirun=False)
    assert plan.config.method == searchpath.option("method", "peers/gibbs") | {"scan": "raster"}
    assert (plan.config.model.name, plan.config.model.rows, plan.config.model.c2) == ("grid", 16, 0.25)


def test_what_is_measured_by_default_is_listed_under_its_own_name_alone() -> None:
    assert composition.plan([], multirun=False).config.model.name == "uai14/Grids_12"
    with pytest.raises(SpinbenchError, match=r"glob\(d\*\)"):
        composition.plan(["model=glob(d*)"], multirun=True)


def test_each_setting_of_a_sweep_is_checked() -> None:
    config = composition.plan([], multirun=False).config
    elsewhere = {"size", "left_out", "hydra"}  # a group without settings; against the rest of the configuration
    assert {str(key) for key in config} == {*CHECKS} | elsewhere


def test_budgets_are_budgets() -> None:
    for name in stems("budget"):
        Budget(**written(f"budget/{name}.yaml"))


def test_the_tour_is_four_methods_by_three_backends_by_three_models_and_two_for_strong_couplings() -> None:
    plan = composition.plan(["experiment=tour"], multirun=False)
    assert (plan.multirun, plan.cells) == (True, 36 + 2)
    assert dict(plan.config.budget) == written("budget/standard.yaml"), "the series of asv has the default budget"
    short = composition.plan(["experiment=tour", "budget=smoke", "model=uai14/Grids_12"], multirun=True)
    assert (short.cells, short.config.budget.seconds) == (12 + 2, 0.1)
    asked = composition.plan(["experiment=tour", "method=pt"], multirun=True)
    assert asked.cells == 9, "what is asked for is measured"


def test_the_field_has_a_class_for_each_of_its_models_and_all_methods() -> None:
    plan = composition.plan(["experiment=field"], multirun=False)
    params = plan.config.hydra.sweeper.params
    models, methods = ("".join(params[axis].split()).split(",") for axis in ("model", "method"))
    assert len(set(models)) == len(models) >= 40
    others = {"nuts", "mala", "elliptical_slice"}, {"wmb_lower"}
    assert set(BUILT_IN) - set(methods) == set.union(*others), "which need jax and a package more, or have no marginals"
    names = [str(searchpath.option("model", name)["name"]) for name in models]
    classes = plan.config.classes
    assert {name for members in classes.values() for name in members} == set(names)
    for members in classes.values():
        assert sum(name in members for name in names) >= 4
    assert plan.config["class"] == "grids"
    one = ["experiment=field", "model=gauge_grid", "method=exact", "backend=numpy"]
    assert composition.plan(one, multirun=False).config["class"] is None
    assert composition.plan([*one, "class=mine"], multirun=False).config["class"] == "mine"


def test_libraries_are_asked_for_what_they_have() -> None:
    """Each kernel of a library runs somewhere; nothing is asked for that there is no kernel of."""
    assert composition.plan(["experiment=peers"], multirun=False).cells == 79
    config = composition.plan(["experiment=peers", "size=smoke"], multirun=False).config
    asked = {axis: config.hydra.sweeper.params[axis].split(",") for axis in ("method", "backend")}
    entries = [dict(entry) for entry in config.left_out if {*entry} == {"method", "backend"}]
    pairs = {
        f"{method.rpartition('/')[2]}.{backend}"
        for method, backend in itertools.product(asked["method"], asked["backend"])
        if not any(method in entry["method"] and backend in entry["backend"] for entry in entries)
    }
    native = {name for name in plugins.entry_points("kernels") if kernels.is_peer(name.partition(".")[2])}
    assert {pair for pair in pairs if kernels.is_peer(pair.partition(".")[2])} == native


def test_work_for_a_gpu_has_its_chains_by_model() -> None:
    assert composition.plan(["experiment=gpu"], multirun=False).cells == 33
    assert composition.plan(["experiment=gpu", "size=smoke"], multirun=False).cells == 31
    config = composition.plan(["experiment=gpu"], multirun=False).config
    counts = {"gpu/torus": 256, "gpu/grid_100": 1000, "gpu/grid_1000": 32, "gpu/glass_1000": 1024, "gpu/rbm": 4096}
    counts |= {"gpu/cubic": 128, "gpu/dense": 1000, "gpu/glass_100": 64}
    assert set(config.hydra.sweeper.params.model.split(",")) == set(counts)
    for model, chains in counts.items():
        cell = composition.plan(["experiment=gpu", f"model={model}"], multirun=False).config
        assert (cell.chains, cell.backend.device, cell.backend.precision) == (chains, "gpu", "float32")


@pytest.mark.parametrize(
    ("overrides", "cells"),
    [
        ([], 1),
        (["seed=0,1,2", "backend=numpy,numba"], 6),
        (["seed=range(0,5)"], 5),
        (["method=dhmc", "method.leapfrog_steps=3,5"], 2),
        (["hydra.job.name='a,b'"], 1),
        (["left_out=[{method:[pt,bp]}]"], 1),
    ],
)
def test_cells_are_counted(overrides: list[str], cells: int) -> None:
    plan = composition.plan(overrides, multirun=False)
    assert (plan.cells, plan.multirun) == (cells, cells > 1)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["method=gibs"], "no method is named 'gibs'; did you mean gibbs"),
        (["method=gibbs,dhmx"], "no method is named 'dhmx'; did you mean dhmc"),
        (["backend=nunpy"], "no backend is named 'nunpy'; did you mean numpy"),
        (["model=uai14/Grids_11"], "did you mean uai14/Grids_12"),
        (["budget=smok"], "no budget is named 'smok'; did you mean smoke"),
        (["experiment=tuor"], "no experiment is named 'tuor'; did you mean tour"),
        (["chians=3"], "no setting or group is named 'chians'; did you mean chains"),
        (
            ["method=dhmc", "method.leapfrog=3"],
            "no setting of method dhmc is named 'leapfrog'; did you mean leapfrog_steps",
        ),
        (["model=grid", "model.row=3"], "no setting of model grid is named 'row'; did you mean rows"),
        (["budget.second=3"], "no setting in budget is named 'second'; did you mean seconds"),
        (["bidget.seconds=3"], "no setting or group is named 'bidget'; did you mean budget"),
        (["seed=["], "the override 'seed=[' cannot be read"),
        (["seed=interval(0,1)"], "sweep"),
        (["hydra/launcher=joblip"], "no hydra/launcher is named 'joblip'"),
    ],
)
def test_wrong_overrides_are_one_sentence(overrides: list[str], sentence: str) -> None:
    with pytest.raises(SpinbenchError) as caught:
        composition.plan(overrides, multirun=True)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_method_without_a_file_has_the_defaults_of_its_class(faulty: Path) -> None:
    plan = composition.plan(["method=faulty", "method.how=raise"], multirun=False)
    assert dict(plan.config.method) == {"name": "faulty", "how": "raise"}
    with pytest.raises(UnknownNameError, match="did you mean faulty"):
        composition.plan(["method=fault"], multirun=False)


def test_backend_without_a_file(install_plugin: Callable[..., Path]) -> None:
    install_plugin(
        "spinbench_other",
        "from spinbench.testing import NumpyBackend\nclass Other(NumpyBackend):\n    name = 'other'\n",
        {"backends": {"other": "Other"}},
    )
    plan = composition.plan(["backend=other", "backend.precision=float32"], multirun=False)
    wishes = {"tier": None, "kernel": None}
    assert dict(plan.config.backend) == {"name": "other", "device": "cpu", "precision": "float32", **wishes}


def test_method_that_raises_on_import_is_composed_and_fails_later(install_plugin: Callable[..., Path]) -> None:
    install_plugin("spinbench_broken", "raise SystemExit(5)", {"methods": {"broken": "Broken"}})
    assert dict(composition.plan(["method=broken"], multirun=False).config.method) == {"name": "broken"}


def test_plugins_bring_config_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A preset in a package of its own; built-in files come first, and packages that are missing or raise are told."""
    package = tmp_path / "spinbench_presets"
    (package / "method").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "method" / "fast_gibbs.yaml").write_text("name: gibbs\nlog_z: none\n")
    (package / "method" / "gibbs.yaml").write_text("name: other\n")
    info = tmp_path / "spinbench_presets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spinbench_presets\nVersion: 1.0\n")
    (tmp_path / "spinbench_boom.py").write_text("raise OSError('no licence')")
    names = "".join(f"{name} = spinbench_{name}\n" for name in ("presets", "gone", "boom"))
    (info / "entry_points.txt").write_text(f"[spinbench.conf]\n{names}")
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = composition.plan(["method=fast_gibbs,gibbs"], multirun=False)
    said = capsys.readouterr().err
    assert "left out: config groups of plugin 'gone' (spinbench_gone): ModuleNotFoundError: No module named" in said
    assert "left out: config groups of plugin 'boom' (spinbench_boom): OSError: no licence" in said
    assert dict(plan.config.method) == {"name": "gibbs", "log_z": "none"}
    plan = composition.plan(["method=gibbs"], multirun=False)
    assert dict(plan.config.method) == searchpath.option("method", "gibbs")
