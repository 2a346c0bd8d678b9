"""asv's site is built from the history, and works without a network when its scripts lie beside it."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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


def enter(project: Any, *records: dict[str, Any]) -> None:
    record(project.root, [project.sweep(records[0]["id"], records)])


def enter_commits(project: Any, slow_since: int = 4, commits: int = 8) -> None:
    """A history whose sampling time doubles at a commit."""
    rng = np.random.default_rng(1)
    for number in range(commits):
        commit = project.commit(f"commit {number}")

        def value(metric: str, cell: Any, seed: int, number: int = number) -> dict[str, float]:
            factor = 2.0 if metric == "run_seconds" and number >= slow_since else 1.0
            return {"value": 0.1 * factor * float(np.exp(0.01 * rng.normal()))}

        enter(project, *(project.record(project.cells[0], commit, seed, value) for seed in range(3)))


def described(index: Path) -> dict[str, Any]:
    """What a page says of its benchmarks."""
    return json.loads((index.parent / "index.json").read_text())["benchmarks"]  # type: ignore[no-any-return]


def test_site_is_offline_and_has_the_planted_regression(
    project: Any, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter_commits(project)
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "npm").symlink_to(packages.parent)
    monkeypatch.setattr(publish, "cache_folder", lambda: tmp_path / "none")
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    monkeypatch.setenv("PATH", str(Path(shutil.which("git") or "").parent))
    assert cli.main(["publish", "--offline"]) == 0
    assert "-m http.server -d" in capsys.readouterr().out
    site = project.root / ".asv" / "html"
    text = (site / "index.html").read_text()
    loaded = re.findall(r"<(?:script|link)\b[^>]*\b(?:src|href)=\"([^\"]+)\"", text)
    assert not [address for address in loaded if "//" in address]
    assert "integrity" not in text
    assert {f"vendor/{path}" for path in publish.FILES.values()} <= {*loaded}
    assert {path: (site / "vendor" / path).read_text() for path in publish.FILES.values()} == {
        path: path for path in publish.FILES.values()
    }
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


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages as npm installs them; asked for once, as without a network it tries for 30 s. Skips then."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here (Debian: apt-get install npm); asv's site was not seen in a browser")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publish, "NPM_SECONDS", 30.0)
            return publish.fetch_npm_packages(tmp_path_factory.getbasetemp() / "npm")
    except HistoryError as error:
        pytest.skip(f"asv's site was not seen in a browser: {error}")


@pytest.fixture
def opened(
    project: Any, browser: Any, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], Path]]:
    """Opens a page of the project's site in Chromium."""
    monkeypatch.setattr(publish, "fetch_npm_packages", lambda cache: installed)
    with ExitStack() as stack:
        served_at: list[str] = []

        def open_page(page: str, loaded: str) -> Path:
            index = publish.publish(project.root, offline=True)
            served_at[:] = served_at or [stack.enter_context(served(index.parent))]
            browser.open(f"{served_at[0]}/index.html{page}")
            browser.wait(loaded)
            return index

        yield open_page
        assert [url for url in browser.requests if not url.startswith((*served_at, "data:"))] == []


CANVAS = "document.querySelectorAll('#main-graph canvas').length > 0"


def test_site_is_seen_in_chromium_with_its_selectors_and_the_planted_regression(
    project: Any, browser: Any, opened: Any
) -> None:
    enter_commits(project)
    opened("?1#/regressions", "document.querySelectorAll('#regressions-body tbody tr').length > 0")
    regressions = browser.evaluate("document.getElementById('regressions-body').innerText")
    for shown in (r"inference\.track_run_seconds", r"\('boltzmann/neural15', 'gibbs', 'numpy'\)", r"\b(1\.9|2\.0)\d?x"):
        assert re.search(shown, regressions)
    opened("?2#inference.track_run_seconds", CANVAS)
    button = "Array.from(document.querySelectorAll('#graphdisplay-navigation .btn'))"
    labels = {label for axis in axes.family("inference").axes for label in axis.values}
    assert labels | {"commit", "testbox"} <= set(browser.evaluate(f"{button}.map(b => b.textContent.trim())"))
    legend = "document.querySelector('#main-graph .legend')?.innerText ?? ''"
    browser.wait(f"({legend}).includes('method-gibbs')")
    browser.evaluate(f"{button}.find(b => b.textContent.trim() === 'gibbs').click()")
    browser.wait(f"!({legend}).includes('method-gibbs')")


def test_accuracy_that_stays_the_same_is_seen_in_chromium_and_not_under_the_frame(
    project: Any, browser: Any, opened: Any
) -> None:
    """Of a cell that asv would not show first, since the first method was not measured."""
    for number in range(2):
        enter(project, project.record(("grid", "dhmc", "numba"), project.commit(f"commit {number}")))
    index = opened("?3#inference.track_marginal_rmse", CANVAS)
    plot = "$('#main-graph').data('plot')"
    browser.wait(f"{plot}.getData().some(series => series.data.some(point => point[1] !== null))")
    points = browser.evaluate(
        f"{plot}.getData().flatMap(series => series.data).filter(point => point[1] !== null)"
        f".map(([x, y]) => [y, {plot}.getAxes().yaxis.p2c(y) / {plot}.height()])"
    )
    assert points == [[0.125, pytest.approx(0.5, abs=0.1)]] * 2
    assert "kernels.track_gibbs_update" not in described(index), "a page without numbers"
    stored = json.loads((project.root / ".asv" / "results" / "benchmarks.json").read_text())
    assert "kernels.track_gibbs_update" in stored, "what `asv run` measures"


def test_commits_of_other_branches_have_no_empty_pages(project: Any) -> None:
    commits = [project.commit("on main")]
    project.git("checkout", "-q", "-b", "other")
    commits.append(project.commit("elsewhere"))
    for commit, cell in zip(commits, (("grid", "gibbs", "numpy"), ("grid", "dhmc", "numba")), strict=True):
        odd = project.record(cell, commit)
        odd["config"]["chains"] = 3
        enter(project, project.record(cell, commit), odd)
    index = publish.publish(project.root)
    params = described(index)["inference.track_marginal_rmse"]["params"]
    assert [values[0] for values in params] == ["'grid'", "'gibbs'", "'numpy'"]
    pages = {name for name in described(index) if name.startswith("swept.")}
    assert set() < pages <= {path.stem for path in (index.parent / "graphs" / "summary").iterdir()}


@pytest.mark.parametrize(
    ("points", "first"),
    [
        ({("b", "x"): [1]}, [["b", "a"], ["x", "y", "z"]]),
        ({("b", "x"): [1], ("a", "z"): [1, 2]}, [["a", "b"], ["z", "x", "y"]]),
        ({("a", "x"): [1], ("b", "z"): [1, 2]}, [["a", "b"], ["x", "y", "z"]]),
        # a label that was removed, and a cell from before there was a second axis
        ({("c", "x"): [1], ("b",): [1]}, [["a", "b"], ["x", "y", "z"]]),
        ({("c", "x"): [1, 2], ("b", "x"): [1]}, [["b", "a"], ["x", "y", "z"]]),
    ],
)
def test_the_first_cell_of_a_page_has_numbers(points: dict[Any, list[int]], first: list[list[str]]) -> None:
    assert publish.move_measured_labels_first([["a", "b"], ["x", "y", "z"]], points) == first


def test_sites_are_built_from_any_folder_and_where_the_configuration_says(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("asv", "json", "spinbench", "joblib"):  # which nobody asked to run
        (project.root / f"{module}.py").write_text("raise SystemExit('a module of the checkout ran')")
    """What publishers that were killed left behind is removed; a second one waits for the first."""
    (project.root / ".asv").rename(project.root / "kept")
    config = project.root / "asv.conf.json"
    text = config.read_text().replace(".asv/html", "site").replace(".asv/results", "kept/results")
    config.write_text(text.replace('"repo": "."', '"repo": "https://127.0.0.1/a.git"'))
    left = [project.root / "kept" / name for name in (publish.COPY, "publish-x1")]
    for folder in left:
        (folder / "results").mkdir(parents=True)
        (folder / "publish.json").touch()
    enter(project, project.record(project.cells[0], project.commit("one")))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "json.py").write_text("raise OSError('this is no json')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert publish.publish(project.root) == project.root / "site" / "index.html"
    assert not any(folder.exists() for folder in left)
    monkeypatch.setattr(journal, "LOCK_SECONDS", 0.1)
    with (
        journal.lock_history(project.root / "kept", "publish.lock"),
        pytest.raises(HistoryError, match="`spinbench publish`"),
    ):
        publish.publish(project.root)


def test_asv_gets_the_newest_series_of_sweeps_and_the_rest_is_said(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for chains in (3, 5):
        swept = project.record(project.cells[0], project.commit(f"chains={chains}"))
        swept["config"]["chains"] = chains
        enter(project, swept)
    file = project.root / ".asv" / "results" / "benchmarks.json"
    stored = file.read_text()
    metrics = stored.count('"name": "swept.')
    monkeypatch.setattr(publish, "MAX_SERIES", metrics)
    index = publish.publish(project.root)
    assert f"{metrics} of {2 * metrics} series of sweeps, those measured longest ago, are not on asv's site" in (
        capsys.readouterr().err
    )
    labels = [one["params"][0] for name, one in described(index).items() if name.startswith("swept.")]
    assert len(labels) == metrics
    assert all(len(own) == 1 and "chains=5" in own[0] for own in labels)
    assert file.read_text() == stored


NPM = "#!/bin/sh\necho 'npm warn x' >&2\necho 'npm error code E404' >&2\nexit 1\n"


@pytest.mark.parametrize(
    ("npm", "sentence"),
    [("", "npm is not installed"), (NPM, r"npm cannot install jquery@3\.3\.1, .*: error code E404")],
    ids=["missing", "failing"],
)
def test_npm_that_fails_says_why(npm: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    if npm:
        (tmp_path / "bin" / "npm").write_text(npm)
        (tmp_path / "bin" / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(HistoryError, match=sentence):
        publish.fetch_npm_packages(tmp_path / "empty")


def test_what_cannot_be_published_is_refused(packages: Path, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"there is no asv\.conf\.json"):
        publish.publish(tmp_path)
    index = tmp_path / "index.html"
    index.write_text('<script src="https://cdn.example.org/unknown.js"></script>')
    with pytest.raises(HistoryError, match=r"unknown\.js, for which spinbench knows no npm package"):
        publish.vendor_scripts(index, packages)
