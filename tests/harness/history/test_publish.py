"""asv's site is built from the history, and works without a network when its scripts lie beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import HistoryError
from spinbench.history import axes, journal, publish
from spinbench.history.recorder import record


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """What npm would install, each file with its own name as content."""
    folder = tmp_path / "cache" / "node_modules"
    for path in publish.FILES.values():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    return folder


def enter_commits(project: Any, slow_since: int, commits: int = 8) -> None:
    """A history whose sampling time doubles at a commit."""
    rng = np.random.default_rng(1)
    for number in range(commits):
        commit = project.commit(f"commit {number}")

        def value(metric: str, cell: Any, seed: int, number: int = number) -> dict[str, float]:
            factor = 2.0 if metric == "run_seconds" and number >= slow_since else 1.0
            return {"value": 0.1 * factor * float(np.exp(0.01 * rng.normal()))}

        records = [project.record(project.cells[0], commit, seed, value) for seed in range(3)]
        record(project.root, [project.sweep(f"sweep{number}", records)])


def test_site_is_offline_and_has_the_planted_regression(
    project: Any, packages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter_commits(project, slow_since=4)
    monkeypatch.setattr(publish, "cache_folder", lambda: packages.parent.parent / "none")
    (packages.parent.parent / "none").mkdir()
    os.symlink(packages.parent, packages.parent.parent / "none" / "npm")
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    assert cli.main(["publish", "--offline"]) == 0
    assert "-m http.server -d" in capsys.readouterr().out
    site = project.root / ".asv" / "html"
    text = (site / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link)\b[^>]*\b(?:src|href)=\"([^\"]+)\"", text)
    assert not [address for address in loaded if "//" in address]
    assert "integrity" not in text
    for path in publish.FILES.values():
        assert f"vendor/{path}" in loaded
        assert (site / "vendor" / path).read_text() == path
    found = json.loads((site / "regressions.json").read_text())["regressions"]
    assert {entry[0].partition("(")[0] for entry in found} == {"inference.track_run_seconds"}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of a server of the files in a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def real_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages as npm installs them; skips where it cannot."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here (Debian: apt-get install npm); asv's site was not seen in a browser")
    try:
        return publish.fetch(tmp_path_factory.getbasetemp() / "npm")
    except HistoryError as error:
        pytest.skip(f"asv's site was not seen in a browser: {error}")


def test_site_is_seen_in_chromium_with_its_selectors_and_the_planted_regression(
    project: Any, browser: Any, real_packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_commits(project, slow_since=4)
    monkeypatch.setattr(publish, "fetch", lambda cache: real_packages)
    index = publish.publish(project.root, offline=True)
    with served(index.parent) as address:
        browser.open(f"{address}/index.html?1#/regressions")
        browser.wait("document.querySelectorAll('#regressions-body tbody tr').length > 0")
        regressions = browser.evaluate("document.getElementById('regressions-body').innerText")
        assert "inference.track_run_seconds" in regressions
        assert "('boltzmann/neural15', 'gibbs', 'numpy')" in regressions
        assert re.search(r"\b(1\.9|2\.0)\d?x", regressions)
        browser.open(f"{address}/index.html?2#inference.track_run_seconds")
        browser.wait("document.querySelectorAll('#main-graph canvas').length > 0")
        buttons = (
            "Array.from(document.querySelectorAll('#graphdisplay-navigation .btn'), b => b.textContent.trim())"
            ".filter(text => text)"
        )
        labels = {label for axis in axes.family("inference").axes for label in axis.values}
        assert labels | {"commit", "testbox"} <= set(browser.evaluate(buttons))
        legend = "document.querySelector('#main-graph .legend')?.innerText ?? ''"
        browser.wait(f"({legend}).includes('method-gibbs')")
        browser.evaluate(
            "Array.from(document.querySelectorAll('#graphdisplay-navigation .btn'))"
            ".find(b => b.textContent.trim() === 'gibbs').click()"
        )
        browser.wait(f"!({legend}).includes('method-gibbs')")
        assert [url for url in browser.requests if not url.startswith((address, "data:"))] == []


def test_accuracy_that_stays_the_same_is_seen_in_chromium_and_not_under_the_frame(
    project: Any, browser: Any, real_packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cell that asv would not show first, since the first method was not measured."""
    commits = [project.commit(f"commit {number}") for number in range(2)]
    for commit in commits:
        record(project.root, [project.sweep(commit, [project.record(("grid", "dhmc", "numba"), commit)])])
    monkeypatch.setattr(publish, "fetch", lambda cache: real_packages)
    index = publish.publish(project.root, offline=True)
    with served(index.parent) as address:
        browser.open(f"{address}/index.html?3#inference.track_marginal_rmse")
        browser.wait("document.querySelectorAll('#main-graph canvas').length > 0")
        plot = "$('#main-graph').data('plot')"
        browser.wait(f"{plot}.getData().some(series => series.data.some(point => point[1] !== null))")
        drawn = (
            f"{plot}.getData().flatMap(series => series.data).filter(point => point[1] !== null)"
            f".map(([x, y]) => [y, {plot}.getAxes().yaxis.p2c(y) / {plot}.height()])"
        )
        points = browser.evaluate(drawn)
        assert [value for value, _ in points] == [0.125, 0.125]
        assert all(place == pytest.approx(0.5, abs=0.1) for _, place in points)
    described = json.loads((index.parent / "index.json").read_text())["benchmarks"]
    assert "kernels.track_gibbs_update" not in described, "a page without numbers"
    stored = json.loads((project.root / ".asv" / "results" / "benchmarks.json").read_text())
    assert "kernels.track_gibbs_update" in stored, "what `asv run` measures"


def test_commits_of_other_branches_have_no_empty_pages(project: Any, packages: Path) -> None:
    onto = [project.commit("on main")]
    project.git("checkout", "-q", "-b", "other")
    onto.append(project.commit("elsewhere"))
    for commit, cell in zip(onto, (("grid", "gibbs", "numpy"), ("grid", "dhmc", "numba")), strict=True):
        odd = project.record(cell, commit)
        odd["config"]["chains"] = 3
        record(project.root, [project.sweep(commit, [project.record(cell, commit), odd])])
    publish.publish(project.root)
    described = json.loads((project.root / ".asv" / "html" / "index.json").read_text())["benchmarks"]
    params = described["inference.track_marginal_rmse"]["params"]
    assert [values[0] for values in params] == ["'grid'", "'gibbs'", "'numpy'"]
    pages = {name for name in described if name.startswith("swept.")}
    drawn = {path.stem for path in (project.root / ".asv" / "html" / "graphs" / "summary").iterdir()}
    assert pages
    assert pages <= drawn


def test_the_first_cell_of_a_page_has_numbers() -> None:
    params = [["a", "b"], ["x", "y", "z"]]
    assert publish.first_measured(params, {("b", "x"): [1]}) == [["b", "a"], ["x", "y", "z"]]
    assert publish.first_measured(params, {("b", "x"): [1], ("a", "z"): [1, 2]}) == [["a", "b"], ["z", "x", "y"]]
    assert publish.first_measured(params, {("a", "x"): [1], ("b", "z"): [1, 2]}) == params
    gone, other = ("c", "x"), ("b",)  # a label that was removed, and a cell from before there was a second axis
    assert publish.first_measured(params, {gone: [1], other: [1]}) == params
    assert publish.first_measured(params, {gone: [1, 2], ("b", "x"): [1]}) == [["b", "a"], ["x", "y", "z"]]


def test_sites_are_built_from_any_folder_and_where_the_configuration_says(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What publishers that were killed left behind is removed; a second one waits for the first."""
    (project.root / ".asv").rename(project.root / "kept")
    config = project.root / "asv.conf.json"
    config.write_text(
        config.read_text()
        .replace(".asv/html", "site")
        .replace(".asv/results", "kept/results")
        .replace('"repo": "."', '"repo": "https://127.0.0.1/a.git"')
    )
    left = [project.root / "kept" / name for name in (publish.COPY, "publish-x1")]
    for folder in left:
        (folder / "results").mkdir(parents=True)
        (folder / "publish.json").touch()
    record(project.root, [project.sweep("sweep", [project.record(project.cells[0], project.commit("one"))])])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "json.py").write_text("raise OSError('this is no json')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert publish.publish(project.root) == project.root / "site" / "index.html"
    assert not any(folder.exists() for folder in left)
    monkeypatch.setattr(journal, "LOCK_SECONDS", 0.1)
    with (
        journal.locked(project.root / "kept", "publish.lock"),
        pytest.raises(HistoryError, match="`spinbench publish`"),
    ):
        publish.publish(project.root)


def test_asv_gets_the_newest_series_of_sweeps_and_the_rest_is_said(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits = [project.commit(f"commit {number}") for number in range(2)]
    for chains, commit in zip((3, 5), commits, strict=True):
        swept = project.record(project.cells[0], commit)
        swept["config"]["chains"] = chains
        record(project.root, [project.sweep(commit, [swept])])
    stored = (project.root / ".asv" / "results" / "benchmarks.json").read_text()
    metrics = stored.count('"name": "swept.')
    monkeypatch.setattr(publish, "MAX_SERIES", metrics)
    index = publish.publish(project.root)
    assert f"{metrics} of {2 * metrics} series of sweeps, those measured longest ago, are not on asv's site" in (
        capsys.readouterr().err
    )
    described = json.loads((index.parent / "index.json").read_text())["benchmarks"]
    labels = [one["params"][0] for name, one in described.items() if name.startswith("swept.")]
    assert len(labels) == metrics
    assert all(len(own) == 1 and "chains=5" in own[0] for own in labels)
    assert (project.root / ".asv" / "results" / "benchmarks.json").read_text() == stored


def test_sentences_where_there_is_nothing_to_publish(
    bare_project: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HistoryError, match=r"there is no asv\.conf\.json"):
        publish.publish(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryError, match="npm is not installed"):
        publish.fetch(tmp_path / "empty")


def test_npm_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm warn x' >&2\necho 'npm error code E404' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(HistoryError, match=r"npm cannot install jquery@3\.3\.1, .*: error code E404"):
        publish.fetch(tmp_path / "empty")


def test_packages_are_fetched_once(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert publish.fetch(packages.parent) == packages


def test_unknown_addresses_are_refused(packages: Path, tmp_path: Path) -> None:
    index = tmp_path / "index.html"
    index.write_text('<script src="https://cdn.example.org/unknown.js"></script>')
    with pytest.raises(HistoryError, match=r"unknown\.js, for which spinbench knows no npm package"):
        publish.vendor(index, packages)
