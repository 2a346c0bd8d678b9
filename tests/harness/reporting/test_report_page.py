"""The page and its files, from records made by hand; in Chromium where there is one."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spinbench.errors import SpinbenchError
from spinbench.reporting import content, curves, export, figures, heatmaps, leaderboard, page

HOSTILE = "<img src=x onerror=alert(1)>&\"'</script><script>alert(2)</script>$x^"


def make(
    method: str = "gibbs",
    backend: str = "numpy",
    rmse: float = 0.01,
    *,
    model: str = "grid",
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    status: str = "ok",
    error: str | None = None,
    kind: str = "estimate",
    log_z: float | None = None,
    exact: float | None = 1.0,
) -> dict[str, Any]:
    key = f"{abs(hash((method, backend, model, str(settings), seed))):016x}"[:16]
    trajectory = [
        {
            "seconds": t,
            "samples": int(100 * t),
            "marginal_rmse": rmse / t**0.5,
            "log_z": 1.0 + 0.1 / t,
            "log_z_error": None if exact is None else 0.1 / t,
        }
        for t in (0.01, 0.1, 1.0)
    ]
    return {
        "schema": 1,
        "id": key,
        "key": key,
        "family": "inference",
        "axes": {"model": model, "method": method, "backend": backend},
        "config": {
            "model": {"name": "grid", **(settings or {})},
            "method": {"name": method},
            "backend": {"name": backend},
            "budget": {"samples": 100, "seconds": None, "burn_in": None},
            "chains": 2,
            "seed": seed,
        },
        "protocol": "0",
        "git": {"commit": "a" * 40, "dirty": False, "diff": None},
        "status": status,
        "error": error,
        "traceback": None,
        "metrics": {"marginal_rmse": {"value": rmse, "standard_error": rmse / 10}, "log_z_error": {"value": 0.1}}
        if status == "ok"
        else {},
        "result": None
        if status != "ok"
        else {
            "tier": "generic",
            "status": "ok",
            "r_hat_max": 1.0,
            "compilation": "none",
            "log_z": log_z,
            "log_z_se": 0.1 if kind == "estimate" else None,
            "log_z_kind": kind,
            "log_z_estimates": {"direct": [1.0, 0.1]},
            "seconds": {"run": 1.0, "compile": 0.0},
            "trajectory": trajectory,
        },
        "reference": {"log_z": exact} if status == "ok" else None,
        "environment": {"python": "3.11", "hostname": "box", "cpu": "a processor", "versions": {"numpy": "2"}},
        "started_at": 1_700_000_000,
        "duration": 1.0,
    }


RECORDS = [
    *(make(rmse=0.002 * (1 + seed), seed=seed) for seed in range(3)),
    make("dhmc", rmse=0.05),
    make("gibbs", "jax", 0.001, model="torus"),
    make("exact", rmse=1e-16, kind="exact"),
    make("bad", "jax", status="failed", error="it broke"),
    make("exact", "jax", status="skipped", error="no kernel"),
]


class Reader(HTMLParser):
    """Collects elements, and what tries to run or to load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.suspicious: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.suspicious += [
            (name, value)
            for name, value in attrs
            if (name.startswith("on") and name != "onsubmit")
            or (name in ("src", "href", "xlink:href") and re.match(r"\s*(https?:|//|javascript)", value or ""))
        ]


def test_page_is_self_contained_and_has_the_files_beside_it(tmp_path: Path) -> None:
    site = tmp_path / "site" / "index.html"
    site.parent.mkdir()
    site.touch()
    written = page.write(RECORDS, tmp_path / "out", sources=[tmp_path / "my sweep"], site=site)
    text = written.page.read_text()
    assert not Reader(text).suspicious
    assert Reader(text).tags.count("script") == 3
    for piece in (
        "my sweep",
        "it broke",
        "no kernel",
        "a processor",
        "a" * 40,
        "../site/index.html",
        "0.0043 ± 0.0011",
    ):
        assert piece in text
    names = {path.name for path in written.files}
    pictures = {f"{name}.{kind}" for name in ("accuracy", "log_z") for kind in ("png", "svg")}
    assert pictures | {"leaderboard.csv", "cells.csv", "trajectories.csv"} <= names
    assert all(path.stat().st_size for path in written.files)
    with (tmp_path / "out" / "cells.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(RECORDS)
    assert lines[0]["config.budget.samples"] == "100"
    assert json.loads(lines[0]["result.log_z_estimates.direct"]) == [1.0, 0.1]


def test_peak_memory_stands_in_the_table_where_it_is_known(tmp_path: Path) -> None:
    records = [make(seed=seed) for seed in range(2)]
    assert "MiB" not in page.write(records, tmp_path / "none").page.read_text()
    for record, mib in zip(records, (1000, 1250), strict=True):
        record["result"]["memory"] = {"before_bytes": 2**28, "peak_bytes": mib * 2**20}
    text = page.write(records, tmp_path / "known").page.read_text()
    assert "MiB" in text
    assert 'data-value="1125.0"' in text
    with (tmp_path / "known" / "leaderboard.csv").open() as file:
        assert [line["peak_mib"] for line in csv.DictReader(file)] == ["1125.0"]


def test_nothing_that_a_record_holds_becomes_markup(tmp_path: Path) -> None:
    records = [
        make(HOSTILE, HOSTILE, model=HOSTILE, settings={HOSTILE: HOSTILE}),
        make("dhmc", HOSTILE, model=HOSTILE, status="failed", error=HOSTILE),
    ]
    text = page.write(records, tmp_path, sources=[Path(HOSTILE.replace("/", ""))]).page.read_text()
    reader = Reader(text)
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 3
    assert not reader.suspicious


def test_unwritable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpinbenchError, match=r"the report in .* cannot be written"):
        page.write(RECORDS, tmp_path / "file" / "x")


def test_without_pyarrow_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    written = page.write(RECORDS, tmp_path)
    assert written.notes == (export.NO_PARQUET,)
    assert not list(tmp_path.glob("*.parquet"))


def test_parquet_holds_columns_of_mixed_kinds(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = [{"a": 1, "b": "x"}, {"a": 2.5, "b": 3}, {"a": None, "c": True}]
    export.write({"t": table}, tmp_path)
    read = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert [line["a"] for line in read] == [1.0, 2.5, None]
    assert [line["b"] for line in read] == ["x", "3", None]
    assert read[2]["c"] is True


def test_curve_of_seeds_is_the_median_in_its_band() -> None:
    found = curves.curve([make(rmse=rmse, seed=seed) for seed, rmse in enumerate((0.01, 0.02, 0.04))])
    assert found is not None
    assert found.seeds == 3
    expected = found.seconds**-0.5
    for values, scale in ((found.low, 0.01), (found.middle, 0.02), (found.high, 0.04)):
        assert values == pytest.approx(scale * expected)
    assert curves.curve([make(kind="exact"), make(status="failed")]) is None


def test_curve_ends_where_fewer_than_half_of_the_seeds_go() -> None:
    records = [make(seed=seed) for seed in range(3)]
    records[0]["result"]["trajectory"][-1]["seconds"] = 1000.0
    found = curves.curve(records)
    assert found is not None
    assert found.seconds[-1] == pytest.approx(1.0, rel=0.4)


def test_dips_are_no_corners_of_the_front() -> None:
    lucky = make()
    for point, error in zip(lucky["result"]["trajectory"], (0.6, 0.001, 0.3), strict=True):
        point["marginal_rmse"] = error
    found = curves.curve([lucky])
    assert found is not None
    assert [error for _, error in found.corners()] == [0.6, 0.3, 0.3]
    steady = make("dhmc", rmse=0.05)
    assert content.on_front(leaderboard.rows([lucky, steady])) == {1}


def test_log_z_that_crosses_the_truth_is_no_better_for_it() -> None:
    crossing = make()
    for point, error in zip(crossing["result"]["trajectory"], (0.8, 0.3, -0.001), strict=True):
        point |= {"log_z": 1.0 + error, "log_z_error": abs(error)}
    assert [error for _, error in curves.points(crossing, "log_z_error")] == [0.8, 0.3, 0.3]


def test_front_has_the_points_that_nothing_beats() -> None:
    assert curves.front([(2.0, 0.5), (1.0, 0.9), (3.0, 0.6), (4.0, 0.1), (1.0, 0.95)]) == [1, 0, 3]
    assert curves.front([]) == []


def test_heat_maps_are_over_settings_that_vary_together() -> None:
    records = [
        make(
            method,
            rmse=0.01 * c1 * c2,
            model=f"grid({c1},{c2})",
            settings={"c1": c1, "c2": c2, "seed": 10 * c1 + c2},  # a graph of its own for each pair
        )
        for method in ("gibbs", "dhmc")
        for c1 in (1.0, 2.0)
        for c2 in (0.5, 1.0, 3.0)
    ]
    (found,) = heatmaps.find(leaderboard.rows([*records, make("block_gibbs", settings={"c1": 1.0, "c2": 0.5})]))
    assert (found.x, found.y, found.xs, found.ys) == ("model.c1", "model.c2", (1.0, 2.0), (0.5, 1.0, 3.0))
    assert found.columns == ("dhmc on numpy", "gibbs on numpy")
    for field in found.errors["RMSE of the marginals"]:
        assert field == pytest.approx(0.01 * (field * 0 + 1) * [[0.5, 1.0], [1.0, 2.0], [3.0, 6.0]])
    printed = {text.get_text() for panel in heatmaps.picture(found).axes for text in panel.texts}
    assert {"0.0100", "0.0600", "0.100"} <= printed
    assert heatmaps.find(leaderboard.rows(RECORDS)) == []
    diagonal = [make(model=f"grid({n})", settings={"rows": n, "cols": n}) for n in (10, 20, 40)]
    assert heatmaps.find(leaderboard.rows(diagonal)) == []


BOUNDED = [
    make("mf", kind="lower", log_z=8.5, model="wide", exact=None),
    make("weak", kind="lower", log_z=8.0, model="wide", exact=None),
    make("trw", kind="upper", log_z=9.25, model="wide", exact=None),
    make("gibbs", log_z=9.0, model="wide", exact=None),
    *(make("bp", log_z=log_z, seed=seed, model="wide", exact=None) for seed, log_z in enumerate((9.1, 12.0))),
    make("mf", kind="lower", log_z=1.5, model="known"),
    make("gibbs", log_z=30.0, model="known"),
]


def test_page_shows_the_bracket_and_what_it_contradicts(tmp_path: Path) -> None:
    wide, known = sorted(content.bounds(leaderboard.rows(BOUNDED)), key=lambda line: line.model, reverse=True)
    assert (wide.known.lower, wide.known.lower_method, wide.width) == (8.5, "mf", 0.75)
    assert wide.flagged == ("bp on numpy: 12 outside the bracket (1 of 2 seeds)",)
    assert (known.known.exact, known.width) == (1.0, None)
    assert known.flagged == ("mf on numpy: 1.5 bound violated",)
    assert content.bounds(leaderboard.rows(RECORDS)) == []
    text = page.write(BOUNDED, tmp_path / "a").page.read_text()
    for piece in ("Bounds on log Z", "8.5", "9.25", *wide.flagged, *known.flagged):
        assert piece in text
    assert text.count('class="bad">ok, ') == 2
    assert "Bounds on log Z" not in page.write(RECORDS, tmp_path / "b").page.read_text()


def test_many_models_take_several_pictures(tmp_path: Path) -> None:
    paths = figures.accuracy_over_time([make(model=f"m{i}") for i in range(13)], tmp_path / "p.png")
    assert [path.name for path in paths] == ["p.png", "p-2.png"]
    assert all(path.stat().st_size for path in paths)


def test_methods_beyond_the_colours_have_other_markers() -> None:
    board = leaderboard.rows([make(f"method{i:02}") for i in range(14)])
    looks = figures.Looks.of(board)
    assert len({(looks.colours[row.method], looks.fills[row.method]) for row in board}) == 14


def shown(browser: Any) -> list[list[str]]:
    """Method and error of the leaderboard's visible rows, from top to bottom."""
    rows: list[list[str]] = browser.evaluate(
        "Array.from(document.querySelectorAll('tr[data-number]')).filter(row => row.offsetParent !== null)"
        ".map(row => [row.dataset.method, row.dataset.backend, row.querySelector('td[data-reached]').textContent])"
    )
    return rows


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page of `RECORDS`."""
    return page.write(RECORDS, tmp_path_factory.mktemp("report")).page.as_uri()


class TestInChromium:
    def test_a_click_sorts_and_a_choice_filters(self, browser: Any, example: str) -> None:
        browser.open(example)
        names = [[method, backend] for method, backend, _ in shown(browser)]
        assert names[:3] == [["exact", "numpy"], ["gibbs", "numpy"], ["dhmc", "numpy"]]
        heading = "thead th:nth-child({}) button"
        column = browser.evaluate(
            "1 + Array.from(document.querySelectorAll('thead th')).findIndex(e => e.textContent.startsWith('RMSE'))"
        )
        browser.click(heading.format(column))
        first = [method for method, _, _ in shown(browser)]
        assert first == ["exact", "gibbs", "gibbs", "dhmc", "bad"]
        browser.click(heading.format(column))
        assert [method for method, _, _ in shown(browser)] == ["dhmc", "gibbs", "gibbs", "exact", "bad"]
        assert browser.evaluate("document.querySelector('th[aria-sort]').cellIndex") == column - 1
        browser.choose("select[data-axis=method]", "gibbs")
        assert {method for method, _, _ in shown(browser)} == {"gibbs"}
        assert browser.evaluate("document.getElementById('count').textContent") == "2 of 5 rows"
        curves_left = (
            "new Set(Array.from(document.querySelectorAll('svg g[data-row]'))"
            ".filter(g => g.style.display !== 'none').map(g => g.dataset.row)).size"
        )
        assert browser.evaluate(curves_left) == 2
        browser.choose("select[data-axis=model]", "torus")
        assert [row[:2] for row in shown(browser)] == [["gibbs", "jax"]]
        assert browser.evaluate("document.querySelectorAll('.panel:not([hidden])').length") == 1
        assert browser.log == []

    def test_time_to_another_error_and_the_records(self, browser: Any, example: str) -> None:
        browser.open(example)
        assert [row[2] for row in shown(browser)][1:3] == ["0.160", "–"]  # (0.004 / 0.01)²
        browser.evaluate(
            "(() => { const e = document.getElementById('target'); e.value = 10;"
            " e.dispatchEvent(new Event('input')); })()"
        )
        assert [row[2] for row in shown(browser)][1:3] == ["0.0100", "0.250"]
        browser.click("tr[data-method=gibbs] button[data-cells]")
        assert browser.evaluate("document.querySelector('dialog').open") is True
        record = json.loads(browser.evaluate("document.querySelector('dialog pre').textContent"))
        assert record == RECORDS[0]
        assert browser.evaluate("document.querySelector('dialog select').options.length") == 3

    def test_hostile_texts_are_shown_and_nothing_is_fetched(self, browser: Any, tmp_path: Path) -> None:
        records = [make(HOSTILE, model=HOSTILE), make("dhmc", model=HOSTILE, status="failed", error=HOSTILE)]
        path = page.write(records, tmp_path).page
        browser.open(path.as_uri(), dark=True)
        assert browser.evaluate("document.body.innerText").count(HOSTILE) >= 3
        assert browser.evaluate("document.querySelectorAll('body img').length") == 0
        assert [url for url in browser.requests if not url.startswith("data:")] == [path.as_uri()]
        assert browser.log == []

    def test_dark_and_light_are_those_of_the_reader(self, browser: Any, example: str) -> None:
        inks = []
        for dark in (False, True):
            browser.open(example, dark=dark)
            inks.append(
                browser.evaluate(
                    "[getComputedStyle(document.body).backgroundColor,"
                    " getComputedStyle(document.querySelector('.charts text')).fill]"
                )
            )
        assert inks == [["rgb(255, 255, 255)", "rgb(26, 27, 29)"], ["rgb(20, 23, 27)", "rgb(230, 232, 235)"]]

    def test_labels_do_not_overlap(self, browser: Any, example: str) -> None:
        browser.open(example)
        overlaps = browser.evaluate(
            """Array.from(document.querySelectorAll('.charts svg')).flatMap(svg => {
                const all = Array.from(svg.querySelectorAll('text'), t => [t.textContent, t.getBoundingClientRect()]);
                return all.flatMap(([a, p], i) => all.slice(i + 1).filter(([b, q]) =>
                    p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom
                ).map(([b]) => [a, b]));
            })"""
        )
        assert overlaps == []

    def test_many_rows_are_sorted_and_filtered(self, browser: Any, tmp_path: Path) -> None:
        records = [make("exact", rmse=1e-16 * (1 + i), model=f"m{i:04}", kind="exact") for i in range(400)]
        browser.open(page.write(records, tmp_path).page.as_uri())
        first = "document.querySelector('tr[data-number]').dataset.model"
        assert browser.evaluate(first) == "m0000"
        for _ in range(2):
            browser.click("thead th:nth-child(3) button")
        assert browser.evaluate(first) == "m0399"
        assert len(shown(browser)) == 250
        browser.click(".more button")
        assert len(shown(browser)) == 400
        browser.choose("select[data-axis=model]", "m0017")
        assert len(shown(browser)) == 1

    def test_folded_charts_are_drawn_when_they_are_unfolded(self, browser: Any, tmp_path: Path) -> None:
        records = [make(method, model=f"m{i}") for i in range(8) for method in ("gibbs", "dhmc")]
        browser.open(page.write(records, tmp_path).page.as_uri())
        charts = "document.querySelectorAll('.charts svg').length"
        assert browser.evaluate(charts) == 12
        browser.choose("select[data-axis=method]", "gibbs")
        browser.click(".panel[data-model=m7] summary")
        browser.wait(f"{charts} === 14")
        hidden = "Array.from(document.querySelectorAll('.panel[data-model=m7] g[data-row]'), g => g.style.display)"
        assert sorted(set(browser.evaluate(hidden))) == ["", "none"]
        browser.choose("select[data-axis=model]", "m6")
        browser.wait(f"{charts} === 16")
        assert browser.log == []

    def test_bounds_are_sorted_and_filtered(self, browser: Any, tmp_path: Path) -> None:
        browser.open(page.write(BOUNDED, tmp_path).page.as_uri())
        models = (
            "Array.from(document.querySelectorAll('#bounds ~ .scroll')[0].querySelectorAll('tbody tr'))"
            ".filter(row => row.offsetParent !== null).map(row => row.dataset.model)"
        )
        assert browser.evaluate(models) == ["known", "wide"]
        for _ in range(2):
            browser.click("#bounds ~ .scroll thead th:nth-child(2) button")
        assert browser.evaluate(models) == ["wide", "known"]
        browser.choose("select[data-axis=model]", "known")
        assert browser.evaluate(models) == ["known"]
        assert browser.log == []
