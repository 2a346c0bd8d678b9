"""asv's benchmarks: what conf/axes defines, what asv discovers, and one true `asv run` into a series with a sweep."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asv_runner.benchmarks.mark import SkipNotImplemented
from hydra import compose
from small_records import whole

from spinbench.errors import HistoryError, UnknownNameError
from spinbench.foundation import plugins
from spinbench.history import asv_plugin, axes, journal
from spinbench.history.axes import Axis, Family
from spinbench.history.gate import gate
from spinbench.history.recorder import record
from spinbench.history.series import SeriesIndex, identify
from spinbench.history.suite import cells
from spinbench.history.suite.cells import CellFailedError, benchmark_functions
from spinbench.inference.kernels import is_peer
from spinbench.measuring import measure, records
from spinbench.metrics import registry
from spinbench.models import FactorGraph, specs
from spinbench.sweeping import cellconfigs

FAMILY = axes.family("inference")
CELL = ("boltzmann/neural15", "exact", "numpy")


def answer(**changes: Any) -> dict[str, Any]:
    metrics = {"run_seconds": {"value": 0.123456789}, "seconds_per_ess": {"failed": "exact gives none"}}
    return {"status": "ok", "error": None, "metrics": metrics, **changes}


def test_asv_discovers_what_conf_axes_defines(discovered: Path) -> None:
    found = json.loads(discovered.read_text())
    kernels = {name for name in found if name.startswith("kernels.track_")}
    assert len(kernels) >= 5
    tracked = [(family, metric) for family in axes.families().values() for metric in family.metrics]
    assert set(found) - kernels == {family.benchmark_name(metric.name) for family, metric in tracked} | {"version"}
    for family, metric in tracked:
        one = found[family.benchmark_name(metric.name)]
        assert (one["type"], one["unit"], one["version"]) == ("track", metric.unit, metric.version)
        assert one["param_names"] == ["model", "method", "backend"]
        assert one["params"] == [[repr(value) for value in axis.values] for axis in family.axes]
        assert one["timeout"] == family.timeout


# Unit, version and axes of the series that recorded histories hold. A new name, unit or axis starts another series.
SERIES = {
    "inference.track_compile_seconds": ("seconds", "1", ["model", "method", "backend"]),
    "inference.track_log_z_error": ("nats", "1", ["model", "method", "backend"]),
    "inference.track_marginal_rmse": ("probability", "1", ["model", "method", "backend"]),
    "inference.track_run_seconds": ("seconds", "1", ["model", "method", "backend"]),
    "inference.track_seconds_per_ess": ("seconds", "1", ["model", "method", "backend"]),
    "inference.track_time_to_error": ("seconds", "1", ["model", "method", "backend"]),
    "kernels.track_block_gibbs_sample": ("s/sample", "1", ["form", "precision"]),
    "kernels.track_bp_message": ("s/message", "1", ["model"]),
    "kernels.track_dhmc_gradient": ("s/gradient", "1", ["form", "chains"]),
    "kernels.track_elimination": ("s", "1", ["model"]),
    "kernels.track_hard_sampler": ("s", "1", ["case"]),
    "kernels.track_gibbs_update": ("s/update", "1", ["case", "precision"]),
}


def test_series_go_on_under_their_names(discovered: Path) -> None:
    found = json.loads(discovered.read_text())
    known = {name: (found[name]["unit"], found[name]["version"], found[name]["param_names"]) for name in SERIES}
    assert known == SERIES


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configurations of the cells that are measured, each with the same answer, and shared by no process."""
    found: list[Any] = []
    monkeypatch.delenv(cells.SHARED_VARIABLE, raising=False)
    monkeypatch.setattr(measure, "measure_cell", lambda config: found.append(config) or answer())
    return found


def test_metrics_of_a_cell_share_one_measurement(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cells.SHARED_VARIABLE, str(tmp_path))
    functions = benchmark_functions("inference")
    assert functions["track_run_seconds"](*CELL) == 0.123457
    for name, why in (("seconds_per_ess", "exact gives none"), ("compile_seconds", "this run gave no compile_seconds")):
        with pytest.raises(SkipNotImplemented, match=why):
            functions[f"track_{name}"](*CELL)
    (config,) = asked
    assert [config[axis]["name"] for axis in ("model", "method", "backend")] == [*CELL]
    assert config["budget"]["seconds"] == 1
    functions["track_run_seconds"]("grid", "exact", "numpy")
    monkeypatch.delenv(cells.SHARED_VARIABLE)
    functions["track_run_seconds"](*CELL)
    assert len(asked) == 3


def test_a_past_build_is_asked_for_todays_cells(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asv names a cell by its place; a build of the past may have other cells, and lack methods and pairs."""
    here = dataclasses.asdict(FAMILY)
    model, method, backend = here["axes"]
    labels = ["gone", *method["values"], "nuts"]
    method = {**method, "values": labels, "select": {"exact": ["method=exact", "chains=3"]}}
    today = {**here, "name": "tomorrow", "axes": (model, method, backend)}
    (tmp_path / "families.json").write_text(json.dumps({"tomorrow": today}))
    monkeypatch.setenv(cells.FAMILIES_VARIABLE, str(tmp_path / "families.json"))
    track = benchmark_functions("tomorrow")["track_run_seconds"]
    assert track.params[1] == labels
    assert track("grid", "exact", "numpy") == 0.123457
    assert [(config["method"]["name"], config["chains"]) for config in asked] == [("exact", 3)]
    for cell, why in (("grid", "gone", "numpy"), "gone"), (("grid", "nuts", "numba"), "there is no kernel nuts.numba"):
        with pytest.raises(SkipNotImplemented, match=why):
            track(*cell)
    assert len(asked) == 1


def test_other_defaults_than_those_of_the_series_are_not_measured(
    project: Any, asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asv has no versions of cells: another default would go on under the same name."""
    commit = project.commit("first")
    swept = ("uai14/Grids_12", "gibbs", "numpy")
    others = [copy.deepcopy(project.record(cell, commit)) for cell in (("grid", "gibbs", "numpy"), swept)]
    others[0]["config"]["method"]["scan"] = "random"  # by an older build, say; a model's file is known by its hash
    others[1]["files"] = {"path": "f" * 64}
    series_index = SeriesIndex(project.root / ".asv" / "journal")
    for one in others:
        series_index.add(identify(whole(one)), ["run_seconds"], FAMILY.column(tuple(one["axes"].values())))
    told = asv_plugin.write_families(tmp_path, project.root / ".asv")
    monkeypatch.setenv(cells.FAMILIES_VARIABLE, str(told))
    track = benchmark_functions("inference")["track_run_seconds"]
    with pytest.raises(SkipNotImplemented, match=r'method.scan="chromatic" \(the series has "random"\)'):
        track("grid", "gibbs", "numpy")
    assert track(*swept) == track("grid", "gibbs", "numba") == 0.123457


@pytest.mark.parametrize(
    ("samples", "returned"), [([1.0, 2.0], {"samples": [1.0, 2.0], "number": 1}), ([1.5], 1.5)], ids=["two", "one"]
)
def test_what_benchmarks_return(samples: list[float], returned: object) -> None:
    assert cells.value_for_asv(answer(metrics={"run_seconds": {"samples": samples}}), "run_seconds") == returned


def test_what_benchmarks_raise(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SkipNotImplemented, match="jax is not installed"):
        cells.value_for_asv(answer(status="skipped", error="jax is not installed", metrics={}), "run_seconds")
    assert capsys.readouterr().out == "jax is not installed\n"  # what --show-stderr shows
    with pytest.raises(CellFailedError, match="killed"):
        cells.value_for_asv(answer(status="failed", error="killed"), "run_seconds")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder with a short name: that of a socket, through which asv asks what it forks from, is of 107 characters."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        yield Path(folder)


def test_sweeps_and_asv_run_feed_one_series(
    project: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, temporary: Path
) -> None:
    """A recorded sweep, then a true `asv run` of the next commit; asv compares and publishes both."""
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(temporary))
    first, second = project.commit("first"), project.commit("second")
    record(project.root, [project.sweep("first", [project.record(CELL, first)])])
    alone = ("grid", "exact", "numpy")  # a column that asv itself begins
    first_begun, own_begun = (re.escape(str(cell)) for cell in (CELL, alone))
    pattern = rf"track_((run_seconds|marginal_rmse|seconds_per_ess).*{first_begun}|run_seconds.*{own_begun})"
    project.asv("run", "-E", "here", "--quick", "--set-commit-hash", second, "--bench", pattern)
    assert 0 < project.value(second, "run_seconds", CELL) < 2
    assert project.value(second, "marginal_rmse", CELL) == pytest.approx(0, abs=1e-9)
    assert project.value(second, "seconds_per_ess", CELL) == "not run"

    assert not list(temporary.glob("*asv-*"))
    machine = json.loads((project.root / ".asv" / "results" / "testbox" / "machine.json").read_text())
    assert (machine["machine"], machine["os"]) == ("testbox", os.uname().sysname)  # asv's own would hold the kernel

    project.asv("publish", "--no-pull")
    graphs = list((project.root / ".asv" / "html" / "graphs").rglob("inference.track_run_seconds.json"))
    (graph,) = (path for path in graphs if "summary" not in path.parts)  # two would be two series
    points = json.loads(graph.read_text())
    site = json.loads((project.root / ".asv" / "html" / "index.json").read_text())
    params = site["benchmarks"]["inference.track_run_seconds"]["params"]
    place = list(itertools.product(*params)).index(tuple(map(repr, CELL)))
    assert [values[place] for _, values in points] == [0.125, project.value(second, "run_seconds", CELL)]

    report = gate(project.root)
    shown = {one.metric.name for one in report.judgement.findings if one.ratio is not None}
    assert shown == {"run_seconds", "marginal_rmse"}
    assert report.exit_status == 0
    # Recording a sweep of the second commit keeps what `asv run` stored beside it.
    other = ("grid", "gibbs", "numpy")
    record(project.root, [project.sweep("second", [project.record(other, second)])])
    assert 0 < project.value(second, "run_seconds", CELL) < 2
    assert project.value(second, "run_seconds", other) == 0.125
    # a sweep by other defaults does not go on in the column that asv began
    changed = copy.deepcopy(project.record(alone, second))
    changed["config"]["chains"] = 3
    monkeypatch.setattr(axes, "canonical_configs", lambda _, cells: dict.fromkeys(cells, changed["config"]))
    record(project.root, [project.sweep("changed", [changed])])
    assert project.value(second, "run_seconds", alone) != 0.125


def test_the_family_is_what_records_hold() -> None:
    assert [axis.name for axis in FAMILY.axes] == ["model", "method", "backend"]
    tracked = [name for name, metric in registry.usable_metrics().items() if "inference" in metric.families]
    assert tuple(metric.name for metric in FAMILY.metrics) == (*records.METRICS, *tracked)
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
