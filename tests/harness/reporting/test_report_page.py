"""The page and its files, from records made by hand; in Chromium where there is one."""

from __future__ import annotations

import base64
import csv
import json
import re
import shlex
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from small_records import BOUNDED, HOSTILE, RECORDS, make, typed, whole

from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError
from spinbench.foundation.overrides import of_cell
from spinbench.measuring import measure
from spinbench.models import families
from spinbench.reporting import content, curves, export, figures, leaderboard, over_settings, page
from spinbench.sweeping import composition


class Reader(HTMLParser):
    """Collects elements, and what tries to run or to load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.suspicious: list[tuple[str, str | None]] = []
        self.packed = False
        self.feed(text)

    def handle_data(self, data: str) -> None:
        if self.packed:  # rows and charts become elements, too
            inner = Reader(zlib.decompress(base64.b64decode(data)).decode())
            self.tags += inner.tags
            self.suspicious += inner.suspicious

    def handle_endtag(self, tag: str) -> None:
        self.packed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.packed = ("type", "application/octet-stream") in attrs and ("id", "data") not in attrs
        if not self.packed:
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
    written = page.write(typed(RECORDS), tmp_path / "out", sources=[tmp_path / "my sweep"], site=site)
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
    assert pictures | {"leaderboard.csv", "cells.csv", "trajectories.csv", "benchopt.csv"} <= names
    assert all(path.stat().st_size for path in written.files)
    with (tmp_path / "out" / "cells.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(RECORDS)
    assert lines[0]["config.budget.samples"] == "100"
    assert json.loads(lines[0]["result.log_z_estimates.direct"]) == [1.0, 0.1]


def test_peak_memory_stands_in_the_table_where_it_is_known(tmp_path: Path) -> None:
    records = [make(seed=seed) for seed in range(2)]
    assert "MiB" not in page.write(typed(records), tmp_path / "none").page.read_text()
    for record, mib in zip(records, (1000, 1250), strict=True):
        record["result"]["memory"] = {"before_bytes": 2**28, "peak_bytes": mib * 2**20}
    text = page.write(typed(records), tmp_path / "known").page.read_text()
    assert "MiB" in text
    assert 'data-value="1125.0"' in text
    with (tmp_path / "known" / "leaderboard.csv").open() as file:
        assert [line["peak_mib"] for line in csv.DictReader(file)] == ["1125.0"]


def test_nothing_that_a_record_holds_becomes_markup(tmp_path: Path) -> None:
    records = [
        make(HOSTILE, HOSTILE, model=HOSTILE, settings={HOSTILE: HOSTILE}),
        make("dhmc", HOSTILE, model=HOSTILE, status="failed", error=HOSTILE),
    ]
    text = page.write(typed(records), tmp_path, sources=[Path(HOSTILE.replace("/", ""))]).page.read_text()
    reader = Reader(text)
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 3
    assert not reader.suspicious


def test_the_command_of_a_cell_makes_the_cell() -> None:
    config = {
        "model": {"name": "random_regular", **families.defaults("random_regular"), "n": 12},
        "method": {**searchpath.method_defaults("dhmc"), "step_size": 0.25, "diagonal": [1.0, 2.5]},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float32"},
        "budget": {"samples": None, "seconds": 0.5, "burn_in": 7},
        "chains": 3,
        "seed": 5,
    }
    composed = composition.plan(shlex.split(of_cell(config, [5]))[2:], multirun=False).config
    parts = OmegaConf.create({name: composed[name] for name in config})
    whole: Any = OmegaConf.to_container(parts, resolve=True)
    assert measure.cell_of(whole) == config


def test_what_all_rows_share_is_told_once(tmp_path: Path) -> None:
    text = page.write(typed(RECORDS), tmp_path / "a").page.read_text()
    assert "<span>budget: 100 samples</span>" in text
    assert "<span>chains: 2</span>" in text
    other = make("dhmc")
    other["config"]["chains"] = 64
    text = page.write(typed([make(), other]), tmp_path / "b").page.read_text()
    assert "<span>chains" not in text
    assert '<td class="name" data-value="64">64</td>' in text


def test_unwritable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpinbenchError, match=r"the report in .* cannot be written"):
        page.write(typed(RECORDS), tmp_path / "file" / "x")


def test_without_pyarrow_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    page.write(typed(RECORDS), tmp_path)
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
    found = curves.curve(typed([make(rmse=rmse, seed=seed) for seed, rmse in enumerate((0.01, 0.02, 0.04))]))
    assert found is not None
    assert found.seeds == 3
    expected = found.seconds**-0.5
    for values, scale in ((found.low, 0.01), (found.middle, 0.02), (found.high, 0.04)):
        assert values == pytest.approx(scale * expected)
    assert curves.curve(typed([make(kind="exact"), make(status="failed")])) is None


def test_curve_ends_where_fewer_than_half_of_the_seeds_go() -> None:
    records = [make(seed=seed) for seed in range(3)]
    records[0]["result"]["trajectory"][-1]["seconds"] = 1000.0
    found = curves.curve(typed(records))
    assert found is not None
    assert found.seconds[-1] == pytest.approx(1.0, rel=0.4)


def test_dips_are_no_corners_of_the_front() -> None:
    lucky = make()
    for point, error in zip(lucky["result"]["trajectory"], (0.6, 0.001, 0.3), strict=True):
        point["marginal_rmse"] = error
    found = curves.curve(typed([lucky]))
    assert found is not None
    assert [error for _, error in found.corners()] == [0.6, 0.3, 0.3]
    steady = make("dhmc", rmse=0.05)
    assert content.on_front(leaderboard.rows(typed([lucky, steady]))) == {1}


def test_log_z_that_crosses_the_truth_is_no_better_for_it() -> None:
    crossing = make()
    for point, error in zip(crossing["result"]["trajectory"], (0.8, 0.3, -0.001), strict=True):
        point |= {"log_z": 1.0 + error, "log_z_error": abs(error)}
    assert [error for _, error in curves.points(whole(crossing), "log_z_error")] == [0.8, 0.3, 0.3]


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
    (found,) = over_settings.find_heat_maps(
        leaderboard.rows(typed([*records, make("block_gibbs", settings={"c1": 1.0, "c2": 0.5})]))
    )
    assert (found.x, found.y, found.xs, found.ys) == ("model.c1", "model.c2", (1.0, 2.0), (0.5, 1.0, 3.0))
    assert found.columns == ("dhmc on numpy", "gibbs on numpy")
    for field in found.errors["RMSE of the marginals"]:
        assert field == pytest.approx(0.01 * (field * 0 + 1) * [[0.5, 1.0], [1.0, 2.0], [3.0, 6.0]])
    printed = {text.get_text() for panel in over_settings.draw_heat_map(found).axes for text in panel.texts}
    assert {"0.0100", "0.0600", "0.100"} <= printed
    assert over_settings.find_heat_maps(leaderboard.rows(typed(RECORDS))) == []
    diagonal = [make(model=f"grid({n})", settings={"rows": n, "cols": n}) for n in (10, 20, 40)]
    assert over_settings.find_heat_maps(leaderboard.rows(typed(diagonal))) == []


def test_page_shows_the_bracket_and_what_it_contradicts(tmp_path: Path) -> None:
    wide, known = sorted(content.bounds(leaderboard.rows(typed(BOUNDED))), key=lambda line: line.model, reverse=True)
    assert (wide.known.lower, wide.known.lower_method, wide.width) == (8.5, "mf", 0.75)
    assert wide.flagged == ("bp on numpy: 12 outside the bracket (1 of 2 seeds)",)
    assert (known.known.exact, known.width) == (1.0, None)
    assert known.flagged == ("mf on numpy: 1.5 bound violated",)
    assert content.bounds(leaderboard.rows(typed(RECORDS))) == []
    text = page.write(typed(BOUNDED), tmp_path / "a").page.read_text()
    for piece in ("Bounds on log Z", "8.5", "9.25", *wide.flagged, *known.flagged):
        assert piece in text
    assert text.count('class="status bad">ok, ') == 2
    assert "Bounds on log Z" not in page.write(typed(RECORDS), tmp_path / "b").page.read_text()


def test_many_models_take_several_pictures(tmp_path: Path) -> None:
    paths = figures.accuracy_over_time(typed([make(model=f"m{i}") for i in range(13)]), tmp_path / "p.png")
    assert [path.name for path in paths] == ["p.png", "p-2.png"]
    assert all(path.stat().st_size for path in paths)


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
    return page.write(typed(RECORDS), tmp_path_factory.mktemp("report")).page.as_uri()


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
        browser.choose("method", "gibbs")
        assert {method for method, _, _ in shown(browser)} == {"gibbs"}
        assert browser.evaluate("document.getElementById('count').textContent") == "2 of 5 rows"
        curves_left = (
            "new Set(Array.from(document.querySelectorAll('svg g[data-row]'))"
            ".filter(g => g.style.display !== 'none').map(g => g.dataset.row)).size"
        )
        assert browser.evaluate(curves_left) == 2
        browser.choose("model", "torus")
        assert [row[:2] for row in shown(browser)] == [["gibbs", "jax"]]
        assert browser.evaluate("document.querySelectorAll('.panel:not([hidden])').length") == 1
        assert browser.log == []

    def test_rows_are_low_on_a_narrow_screen(self, browser: Any, tmp_path: Path) -> None:
        verdicts = {"status": "marginals not mixed, log Z unresolved"}
        doubted = [{**one, "result": {**one["result"], **verdicts}} for one in RECORDS if one["status"] == "ok"]
        browser.open(page.write(typed(doubted), tmp_path).page.as_uri(), width=400)
        lines = "Array.from(document.querySelectorAll('tr[data-number]'), row => row.offsetHeight)"
        assert max(browser.evaluate(lines)) < 60
        tied = [make(model=f"m{i}", backend=name) for i in range(9) for name in ("numpy", "numba")]
        browser.open(page.write(typed(tied), tmp_path / "many").page.as_uri(), width=400)
        lines = "Array.from(document.querySelectorAll('#across ~ .scroll tbody tr'), row => row.offsetHeight)"
        assert max(browser.evaluate(lines)) < 60

    def test_time_to_another_error_and_the_records(self, browser: Any, example: str) -> None:
        browser.open(example)
        assert [row[2] for row in shown(browser)][1:3] == ["0.160", "–"]  # (0.004 / 0.01)²
        browser.write("#target", "10")
        assert [row[2] for row in shown(browser)][1:3] == ["0.0100", "0.250"]
        browser.click("tr[data-method=gibbs] button[data-cells]")
        assert browser.evaluate("document.querySelector('dialog').open") is True
        record = json.loads(browser.evaluate("document.querySelector('dialog pre').textContent"))
        assert record == {**RECORDS[0], "result": content.for_scripts(RECORDS[0]["result"], content.DIGITS)}
        assert browser.evaluate("document.querySelector('dialog select').options.length") == 3

    def test_status_and_words_filter(self, browser: Any, example: str) -> None:
        browser.open(example)
        browser.choose("status", "failed")
        assert [row[:2] for row in shown(browser)] == [["bad", "jax"]]
        browser.choose("status", "failed", "ok")
        assert len(shown(browser)) == 5
        browser.choose("method", "dhmc", "bad")
        assert {method for method, _, _ in shown(browser)} == {"dhmc", "bad"}
        heads = "Array.from(document.querySelectorAll('.choice b'), b => b.textContent)"
        assert browser.evaluate(heads) == ["all", "2", "all", "2"]
        browser.click("#all")
        assert len(shown(browser)) == 5
        browser.write("#text", "JAX tor")
        assert [row[:2] for row in shown(browser)] == [["gibbs", "jax"]]
        panels = "Array.from(document.querySelectorAll('.panel:not([hidden])'), p => p.dataset.model)"
        assert browser.evaluate(panels) == ["torus"]
        assert browser.log == []

    def test_the_command_of_a_row_and_of_a_cell_is_copied(self, browser: Any, example: str) -> None:
        browser.open(example)
        browser.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
        browser.click("tr[data-method=gibbs] button[data-copy]")
        expected = "spinbench sweep model=grid method=gibbs backend=numpy budget.samples=100 budget.seconds=null"
        assert browser.evaluate("window.copied") == f"{expected} budget.burn_in=null chains=2 seed=0,1,2"
        browser.click("tr[data-method=gibbs] button[data-cells]")
        browser.evaluate("chooser.selectedIndex = 2; chooser.dispatchEvent(new Event('change'))")
        browser.click("#copy")
        assert browser.evaluate("window.copied").endswith("chains=2 seed=2")
        assert browser.log == []

    def test_the_checkpoint_under_the_pointer_is_told(self, browser: Any, example: str) -> None:
        """Where the third of three seeds was after 0.1 s, by the axes' own labels."""
        browser.open(example)
        place = """(() => {
            const svg = document.querySelector('.panel[data-model=grid] svg[data-quantity=marginal_rmse]');
            svg.scrollIntoView({block: 'center'});
            const label = (text, axis) => {
                const found = [...svg.querySelectorAll(`g[id*=${axis}tick]`)].find(g => g.textContent.trim() === text);
                const box = found.querySelector('use').getBoundingClientRect();
                return axis === 'x' ? box.x + box.width / 2 : box.y + box.height / 2;
            };
            const [y1, y2] = [label('0.01', 'y'), label('0.1', 'y')];
            return [label('0.1', 'x'), y1 + (y2 - y1) * Math.log10(0.006 / 0.1 ** 0.5 / 0.01)];
        })()"""
        x, y = browser.evaluate(place)
        browser.point(x + 1, y + 1)
        told = browser.evaluate("document.getElementById('tip').innerText").splitlines()
        assert told == ["gibbs on numpy, seed 2", "RMSE 0.019", "0.1 s, 10 samples"]
        browser.point(3, 3)
        assert browser.evaluate("document.getElementById('tip').hidden") is True

    def test_time_may_include_compiling(self, browser: Any, tmp_path: Path) -> None:
        slow = make("dhmc", rmse=0.05)
        slow["result"]["seconds"] = {"run": 1.0, "compile": 8.0, "plan": 1.0}
        browser.open(page.write(typed([make(), slow]), tmp_path).page.as_uri())
        axes = (
            "Array.from(document.querySelectorAll('.charts svg[data-axes]')).filter(svg => svg.checkVisibility())"
            ".map(svg => JSON.parse(svg.dataset.axes)[5] > 5)"
        )
        assert browser.evaluate(axes) == [False, False]
        browser.click("#whole")
        assert browser.evaluate(axes) == [True, True]
        assert browser.log == []

    def test_hostile_texts_are_shown_and_nothing_is_fetched(self, browser: Any, tmp_path: Path) -> None:
        records = [make(HOSTILE, model=HOSTILE), make("dhmc", model=HOSTILE, status="failed", error=HOSTILE)]
        path = page.write(typed(records), tmp_path).page
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

    def test_seeds_are_told_to_the_last_digit(self, browser: Any, tmp_path: Path) -> None:
        seed = 2**53 + 1
        browser.open(page.write(typed([make(seed=seed), make("bp", seed=2)]), tmp_path).page.as_uri())
        browser.click("tr[data-method=gibbs] button[data-cells]")
        assert f'"seed": "{seed}"' in browser.evaluate("document.querySelector('dialog pre').textContent")
        assert browser.evaluate("command([0])").endswith(f" seed={seed}")

    def test_many_rows_are_sorted_and_filtered(self, browser: Any, tmp_path: Path) -> None:
        records = [make("exact", rmse=1e-16 * (1 + i), model=f"m{i:04}", kind="exact") for i in range(400)]
        browser.open(page.write(typed(records), tmp_path).page.as_uri())
        first = "document.querySelector('tr[data-number]').dataset.model"
        assert browser.evaluate(first) == "m0000"
        for _ in range(2):
            browser.click("thead th:nth-child(3) button")
        assert browser.evaluate(first) == "m0399"
        assert len(shown(browser)) == 250
        browser.click(".more button")
        assert len(shown(browser)) == 400
        browser.choose("model", "m0017")
        assert len(shown(browser)) == 1

    def test_folded_charts_are_drawn_when_they_are_unfolded(self, browser: Any, tmp_path: Path) -> None:
        records = [make(method, model=f"m{i}") for i in range(8) for method in ("gibbs", "dhmc")]
        browser.open(page.write(typed(records), tmp_path).page.as_uri())
        charts = "document.querySelectorAll('.charts svg').length"
        assert browser.evaluate(charts) == 12
        browser.choose("method", "gibbs")
        browser.click(".panel[data-model=m7] summary")
        browser.wait(f"{charts} === 14")
        hidden = "Array.from(document.querySelectorAll('.panel[data-model=m7] g[data-row]'), g => g.style.display)"
        assert sorted(set(browser.evaluate(hidden))) == ["", "none"]
        browser.choose("model", "m6")
        browser.wait(f"{charts} === 16")
        assert browser.log == []

    def test_bounds_are_sorted_and_filtered(self, browser: Any, tmp_path: Path) -> None:
        browser.open(page.write(typed(BOUNDED), tmp_path).page.as_uri())
        models = (
            "Array.from(document.querySelectorAll('#bounds ~ .scroll')[0].querySelectorAll('tbody tr'))"
            ".filter(row => row.offsetParent !== null).map(row => row.dataset.model)"
        )
        assert browser.evaluate(models) == ["known", "wide"]
        for _ in range(2):
            browser.click("#bounds ~ .scroll thead th:nth-child(2) button")
        assert browser.evaluate(models) == ["wide", "known"]
        browser.choose("model", "known")
        assert browser.evaluate(models) == ["known"]
        assert browser.log == []


def test_pictures_are_of_the_first_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [make(model=f"m{i}") for i in range(5)]
    assert "as files.</p>" not in page.write(typed(records), tmp_path / "all").page.read_text()
    monkeypatch.setattr(figures, "MODELS", 3)
    written = page.write(typed(records), tmp_path / "some", panels=True)
    text = written.page.read_text()
    assert text.count('<details class="panel" data-model=') == 3
    assert "the first 3 models" in text
    assert "2 others, too, as files.</p>" in text
    assert {file.name.split("-")[1] for file in written.files if file.parent.name == "panels"} == {
        f"m{i}" for i in range(5)
    }
    monkeypatch.setattr(figures, "MODELS", 5)
    assert "as files.</p>" not in page.write(typed(records), tmp_path / "exactly").page.read_text()
