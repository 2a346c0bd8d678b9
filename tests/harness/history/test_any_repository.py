"""The history is that of the repository that one stands in: spinbench's, a plugin's, or a folder of versions."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from asv import util

import spinbench
from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.foundation import git
from spinbench.history import axes
from spinbench.history.asv_plugin import HereEnvironment
from spinbench.history.recorder import History, record
from spinbench.history.suite.cells import benchmark_functions
from spinbench.measuring import environment, measure

DOCUMENTED = Path(__file__).parents[3] / "docs" / "how-to" / "workflows" / "track-regressions.yml"
QUICK = ("sweep", "method=exact", "backend=numpy", "model=boltzmann/neural15", "sweep_dir=out")


@pytest.fixture(autouse=True)
def nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No history but where one stands; the user's home and git's settings are out of sight."""
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    known = {"SPINBENCH_MACHINE": "testbox", "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    for name, value in {**known, "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plugin(bare_project: Any) -> Any:
    """The repository of a plugin, without spinbench's suite, whose commits are tracked."""
    for name in ("asv.conf.json", ".gitignore"):
        (bare_project.root / name).unlink()
    (bare_project.root / "harness").rename(bare_project.root.parent / "harness")
    (bare_project.root / ".gitignore").write_text("build/")
    assert cli.main(["init", str(bare_project.root)]) == 0
    return bare_project


def test_commits_of_a_plugin_open_and_shut_the_gate(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plugin.root / "benchmarks")
    assert environment.history_root() == plugin.root
    commits = [plugin.commit(title) for title in ("first", "second", "third")]
    lost = {"status": "failed", "error": "killed", "metrics": {}}
    for number, commit in enumerate(commits):
        changes = lost if number == 2 else {}
        found = [plugin.record(cell, commit, seed, **changes) for cell in plugin.cells for seed in (0, 1)]
        assert record(plugin.root, [plugin.sweep(f"sweep{number}", found)]).new == 6
    assert cli.main(["gate", "--base", commits[0], "--head", commits[1]]) == 0
    assert cli.main(["gate"]) == 1
    entry = History.open(plugin.root).journal.read_entries(commits[0])[0]
    assert entry["series"]["parts"][1:] == ["numpy", ""]  # here conf/axes has no cells
    assert "swept.grid.track_run_seconds" in plugin.asv("show", commits[0])
    plugin.asv("publish", "--no-pull")


def test_what_is_measured_while_the_tree_changes_stays_out(
    plugin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was imported after an edit is not what the sweep's commit has; it is measured again when it is resumed."""
    monkeypatch.chdir(plugin.root)
    plugin.commit("first")
    usual = measure.measure_cell

    def edited_meanwhile(*arguments: Any, **options: Any) -> Any:
        (plugin.root / "log").write_text("edited")
        return usual(*arguments, **options)

    with monkeypatch.context() as during:
        during.setattr(measure, "measure_cell", edited_meanwhile)
        assert cli.main([*QUICK, "seed=0"]) == 0
    assert "they were measured with uncommitted changes in the tree, or while it changed" in capsys.readouterr().out
    plugin.git("checkout", "-q", "log")
    assert cli.main(["sweep", "--resume", "out"]) == 0
    assert "1 new and 0 known records stand in asv's history" in capsys.readouterr().out


def test_what_init_writes_into_a_repository(plugin: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workflow = plugin.root / ".github" / "workflows" / "track-regressions.yml"
    assert workflow.read_text() == DOCUMENTED.read_text()
    assert (plugin.root / ".gitignore").read_text().split() == [
        "build/",
        ".asv/",
        "multirun/",
        "__pycache__/",
        "*.egg-info/",
    ]
    assert json.loads((plugin.root / "asv.conf.json").read_text())["branches"] == ["main"]
    for folder, why in (("", "asv.conf.json exists"), ("inner", f"lies in the git repository {plugin.root}")):
        assert cli.main(["init", str(plugin.root / folder)]) == 2
        assert why in capsys.readouterr().err


PROJECT = """
[project]
name = "mine"
version = "1"
[project.entry-points."spinbench.methods"]
exact = "mine:Exact"
"""


def test_asv_finds_the_cells_of_a_plugin_which_sweeps_enter_too(
    plugin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("asv.conf.json", ".github/workflows/track-regressions.yml"):
        (plugin.root / name).unlink()
    (plugin.root / "pyproject.toml").write_text(PROJECT)
    assert cli.main(["init", str(plugin.root)]) == 0
    monkeypatch.chdir(plugin.root)
    assert list(axes.families()) == ["cells", "gate", "inference"]
    family = axes.family("cells")
    assert (family.cells, family.metrics) == ([("grid", "exact", "numpy")], axes.family("gate").metrics)
    assert [track.params for track in benchmark_functions("cells").values()] == [
        [["grid"], ["exact"], ["numpy"]]
    ] * len(family.metrics)
    (cells,) = re.findall("CELLS: (.*)", (plugin.root / ".github/workflows/track-regressions.yml").read_text())
    commit = plugin.commit("first")
    assert cli.main(["sweep", *cells.split(), "model.rows=3", "sweep_dir=small"]) == 0
    assert cli.main(["sweep", *cells.split(), "sweep_dir=out"]) == 0
    capsys.readouterr()
    small, entry = History.open(plugin.root).journal.read_entries(commit)
    assert (small.series is None, entry.family, entry.series) == (False, "cells", None)
    assert "cells.track_log_z_error" in plugin.asv("show", commit)


def test_a_suite_that_defines_no_benchmarks_is_named(tmp_path: Path) -> None:
    suite = tmp_path / "benchmarks"
    suite.mkdir()
    for name in ("asv.conf.json", "benchmarks/cells.py", "benchmarks/data.yaml"):
        (tmp_path / name).write_text("")
    assert "cells" not in axes.families()
    (suite / "cells.yaml").write_text("axes: [model]")
    axes.own_families.cache_clear()
    with pytest.raises(HistoryError, match=r"cells\.yaml defines no benchmarks"):
        axes.families()


def test_another_build_of_a_version_is_another_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an installed wheel, of which no git tells the state."""
    monkeypatch.setattr(environment, "source_checkout", lambda: None)
    states = []
    for name, text in (("one", "x = 1"), ("other", "x = 2"), ("third", "x = 1")):
        package = tmp_path / name / "spinbench"
        package.mkdir(parents=True)
        (package / "kernel.py").write_text(text)
        monkeypatch.setattr(environment, "PACKAGE", package)
        states.append(environment.spinbench_state())
    assert states[0] == states[2] != states[1]
    assert states[0].startswith(f"{spinbench.__version__} ")


def test_a_folder_of_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", "kept"]) == 0
    assert cli.main([*QUICK, "seed=0,1"]) == 0
    assert "not in asv's history: there is no history here" in capsys.readouterr().out
    monkeypatch.chdir("kept")
    assert cli.main([*QUICK, "seed=0"]) == 0
    assert "1 new and 0 known records stand in asv's history of testbox" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", "kept")
    assert cli.main([*QUICK[:-1], "seed=1", "sweep_dir=other"]) == 0
    history = History.open(tmp_path / "kept")
    (commit,) = history.commits()
    assert len(history.journal.read_entries(commit)) == 2
    assert history.checkout.subject(commit) == f"spinbench {environment.spinbench_state()}"
    state = environment.code_state()
    assert (state["commit"], state["dirty"], state["spinbench"]) == (commit, False, environment.spinbench_state())
    assert not git.note_versions(tmp_path / "kept", {"spinbench": environment.spinbench_state()})
    assert git.note_versions(tmp_path / "kept", {"spinbench": "9.9", "plugin": "1.0"})
    assert history.checkout.subject("HEAD") == "spinbench 9.9, plugin 1.0"
    assert history.checkout.ancestors("HEAD")[1] == commit


def test_code_of_another_checkout_of_the_project_stays_out(
    plugin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a second worktree or clone, where the first one is what is installed, commits are not those of what runs."""
    monkeypatch.chdir(plugin.root)
    (plugin.root / "pyproject.toml").write_text('[project]\nname = "my-plugin"\n')
    installed = plugin.root.parent / "site" / "my_plugin-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(installed.parent))

    def swept(folder: Path, out: str) -> str:
        (installed / "direct_url.json").write_text(
            json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}}), encoding="utf-8"
        )
        assert cli.main([*QUICK[:-1], f"sweep_dir={out}"]) == 0
        return capsys.readouterr().out

    commit = plugin.commit("first")
    other = plugin.root.parent / "the other (one)"
    told = swept(other, "one")
    assert f"1 of 1 records stay out of the history: they ran the code of {other}, not that of" in told
    with pytest.raises(util.UserError, match=re.escape(f"the code of {other}, not that of this checkout")):
        HereEnvironment(None, "same", {}, {})
    assert "1 new and 0 known records stand in asv's history" in swept(plugin.root, "two")
    assert len(History.open(plugin.root).journal.read_entries(commit)) == 1
