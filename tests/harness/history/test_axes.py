"""conf/axes: what it defines, and that each of its cells is a cell of a sweep with that label."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hydra import compose

from spinbench.errors import HistoryError, UnknownNameError
from spinbench.foundation import plugins
from spinbench.history import axes, journal
from spinbench.history.axes import Axis, Family
from spinbench.inference.kernels import is_peer
from spinbench.measuring import records
from spinbench.metrics import registry
from spinbench.models import FactorGraph, specs
from spinbench.sweeping import cellconfigs

FAMILY = axes.family("inference")


def test_the_family_is_what_records_hold() -> None:
    assert [axis.name for axis in FAMILY.axes] == ["model", "method", "backend"]
    assert tuple(metric.name for metric in FAMILY.metrics) == (*records.METRICS, *registry.metric_names())
    assert all(metric.floor > 0 for metric in FAMILY.metrics)
    judged = {metric.name: metric for metric in FAMILY.metrics if metric.judged != "no"}
    accuracy = {"marginal_rmse", "log_z_error", "samples_per_ess", "pair_rmse"}
    assert set(judged) == {*accuracy, "step_seconds", "step_cpu_seconds"}
    assert all(0 < metric.margin < 0.2 and 0 < metric.alpha <= 0.01 for metric in judged.values())
    assert sum(metric.alpha for metric in judged.values()) < 0.03
    assert FAMILY.benchmark_name("run_seconds") == "inference.track_run_seconds"


def test_families_share_the_metrics_of_one_name() -> None:
    assert set(axes.families()) == {"inference", "gate"}
    shared = {metric.name: metric for metric in FAMILY.metrics}
    assert all(shared[metric.name] == metric for metric in axes.family("gate").metrics)
    assert {*axes.metrics()} == {*FAMILY.metrics}


@pytest.mark.parametrize("family", [FAMILY, axes.family("gate")], ids=lambda family: family.name)
def test_every_cell_composes_and_bears_its_own_label(family: Family) -> None:
    """A record of a sweep over these values must find its cell."""
    firsts = [axis.values[0] for axis in family.axes]
    cells = {(*firsts[:i], value, *firsts[i + 1 :]) for i, axis in enumerate(family.axes) for value in axis.values}
    for cell, config in axes.canonical_configs(family, sorted(cells)).items():
        assert family.find_cell(records.axis_labels({name: config[name] for name in records.CELL})) == cell


def test_the_standard_set_has_all_methods_on_all_backends() -> None:
    """A method that is added is named here until conf/axes/gate.yaml has it, too. PyTorch, CuPy and other
    libraries come with extras alone."""
    built_in = {
        kind: {
            name
            for name, (point, *_) in plugins.entry_points(kind).items()
            if plugins.distribution(point) == "spinbench"
        }
        for kind in ("methods", "backends")
    }
    values = {axis.name: set(axis.values) for axis in axes.family("gate").axes}
    assert built_in["methods"] - values["method"] == set()
    own = {name for name in built_in["backends"] if not is_peer(name)}
    assert own - values["backend"] == {"torch", "cupy"}
    tour = {axis.name: set(axis.values) for axis in FAMILY.axes}
    assert tour["model"] < values["model"]
    beside = values["model"] - tour["model"]
    configs = axes.canonical_configs(axes.family("gate"), [(model, "gibbs", "numpy") for model in beside])
    models = [specs.build(config["model"]) for config in configs.values()]
    assert sum(isinstance(model, FactorGraph) for model in models) == 2


@pytest.mark.parametrize(("experiment", "more"), [("tour", []), ("gate", ["seed"])])
def test_experiments_hold_the_series(experiment: str, more: list[str]) -> None:
    """All of the tour's, and a part of the standard set."""
    with axes.composer() as compose_now:
        del compose_now
        whole = compose("config", [f"experiment={experiment}"], return_hydra_config=True)
    family, params = axes.family(whole.family), whole.hydra.sweeper.params
    values = [params[axis.group].split(",") for axis in family.axes]
    of_series = [
        [f"{axis.group}={value}" for axis, value in zip(family.axes, cell, strict=True)] for cell in family.cells
    ]
    swept, tracked = set(itertools.product(*values)), set(family.cells)
    assert swept <= tracked if experiment == "gate" else swept >= tracked
    assert not any(cellconfigs.is_excluded(cell, cellconfigs.exclusion_entries(whole, ())) for cell in of_series)
    assert list(params)[: len(more)] == more  # what stands first varies slowest
    assert set(params) == {axis.group for axis in family.axes} | set(more)
    for cell, config in axes.canonical_configs(family, sorted(swept & tracked)[:3]).items():
        assert whole.budget == config["budget"], cell


def test_labels_with_parameters_select_by_overrides() -> None:
    label = "grid(rows=20,c2=2)"
    axis = Axis("model", "model", ("grid", label), {label: ("model=grid", "model.rows=20", "model.c2=2")})
    family = Family("inference", 1.0, (), (axis, *FAMILY.axes[1:]), FAMILY.metrics)
    cell = (label, "gibbs", "numpy")
    config = axes.canonical_configs(family, [cell])[cell]
    assert (config["model"]["rows"], config["model"]["c2"]) == (20, 2)
    assert records.model_label(config["model"]) == label


def test_errors() -> None:
    with pytest.raises(UnknownNameError, match="no benchmark family is named 'inferense'; did you mean inference"):
        axes.family("inferense")
    broken = Family("inference", 1.0, ("budget=none_such",), FAMILY.axes, FAMILY.metrics)
    with pytest.raises(HistoryError, match=r"conf/axes/inference\.yaml lists \('uai14/Grids_12', .*none_such"):
        axes.canonical_configs(broken, FAMILY.cells[:1])


@pytest.mark.parametrize(
    ("given", "wanted", "said"),
    [
        (
            {"budget": {"seconds": 5, "samples": None}, "chains": 16, "extra": [1]},
            {"budget": {"seconds": 2.0, "samples": None}, "chains": 16, "extra": None},
            ["budget.seconds=5 (the series has 2.0)", "extra=[1] (the series has nothing)"],
        ),
        ({"a": 2}, {"a": 2.0}, []),
        ({"a": True}, {"a": 1}, ["a=true (the series has 1)"]),
    ],
)
def test_differences_name_the_settings(given: dict[str, Any], wanted: dict[str, Any], said: list[str]) -> None:
    assert journal.config_differences(given, wanted) == said
