"""The page and its files, from records made by hand; in a browser, where there is one, too."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import json
import re
import shlex
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from small_records import BOUNDED, HOSTILE, RECORDS, make, typed

from spinbench import cli
from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError
from spinbench.foundation.overrides import of_cell
from spinbench.measuring import measure
from spinbench.models import families
from spinbench.reporting import board_page, export, leaderboard, page, page_content, settings_plots
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
            if name.startswith("on")
            or (name in ("src", "href", "xlink:href") and re.match(r"\s*(https?:|//|javascript)", value or ""))
        ]


Written = Callable[..., page.ReportFiles]


@pytest.fixture
def write(tmp_path: Path) -> Written:
    """Writes the page of some records into a folder of its own."""
    numbers = iter(range(9))
    return lambda records, **how: page.write_report(typed(records), tmp_path / str(next(numbers)), **how)


@pytest.mark.parametrize("kind", ["report", "board"])
def test_nothing_runs_on_a_page_but_its_own_scripts(write: Written, tmp_path: Path, kind: str) -> None:
    path = write(RECORDS).page
    if kind == "board":
        path = board_page.write_board_page(typed(RECORDS), tmp_path / "board.html")
    text = path.read_text()
    policy = html.unescape(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0])
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert digests == set(directives["script-src"].split())
    assert (directives["default-src"], directives["form-action"]) == ("'none'", "'none'")


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_page_is_self_contained_and_has_the_files_beside_it(tmp_path: Path, write: Written) -> None:
    site = tmp_path / "site" / "index.html"
    site.parent.mkdir()
    site.touch()
    written = write(RECORDS, sources=[tmp_path / "my sweep"], site=site)
    text = written.page.read_text()
    assert not Reader(text).suspicious
    assert Reader(text).tags.count("script") == 4
    pieces = ("my sweep", "it broke", "no kernel", "a processor", "a" * 40, "../site/index.html", "0.0043 ± 0.0011")
    assert [piece for piece in pieces if piece not in text] == []
    pictures = {f"{name}.{kind}" for name in ("accuracy", "log_z") for kind in ("png", "svg")}
    tables = {"leaderboard.csv", "cells.csv", "trajectories.csv", "benchopt.csv"}
    assert pictures | tables <= {path.name for path in written.files}
    assert all(path.stat().st_size for path in written.files)
    lines = read_csv(written.page.with_name("cells.csv"))
    assert len(lines) == len(RECORDS)
    assert lines[0]["config.budget.samples"] == "100"
    assert json.loads(lines[0]["result.log_z_estimates.direct"]) == [1.0, 0.1]


def test_peak_memory_stands_in_the_table_where_it_is_known(write: Written) -> None:
    records = [make(seed=seed) for seed in range(2)]
    heading = re.compile(r"peak\W+(br\W+)?MiB")  # packed data of a page may spell "MiB"
    assert not heading.search(write(records).page.read_text())
    for record, mib in zip(records, (1000, 1250), strict=True):
        record["result"]["memory"] = {"before_bytes": 2**28, "peak_bytes": mib * 2**20}
    written = write(records).page
    assert heading.search(written.read_text())
    assert 'data-value="1125.0"' in written.read_text()
    assert [line["peak_mib"] for line in read_csv(written.with_name("leaderboard.csv"))] == ["1125.0"]


def test_levels_of_evidence_stand_in_the_table_where_they_are_known(write: Written) -> None:
    records = [make(seed=seed) for seed in range(2)]
    assert ">level<" not in write(records).page.read_text()
    for record, level in zip(records, ("exact", "converged"), strict=True):
        record["result"]["levels"] = {"marginals": level, "log_z": "exact"}
    written = write(records).page
    assert '<td data-value="converged, log Z exact">' in written.read_text()
    (line,) = read_csv(written.with_name("leaderboard.csv"))
    assert (line["marginals_level"], line["log_z_level"]) == ("converged", "exact")


def test_nothing_that_a_record_holds_becomes_markup(write: Written, tmp_path: Path) -> None:
    records = [
        make(HOSTILE, HOSTILE, model=HOSTILE, settings={HOSTILE: HOSTILE}),
        make("dhmc", HOSTILE, model=HOSTILE, status="failed", error=HOSTILE),
    ]
    reader = Reader(write(records, sources=[Path(HOSTILE.replace("/", ""))]).page.read_text())
    assert (reader.tags.count("img"), reader.tags.count("script"), reader.suspicious) == (0, 4, [])
    reader = Reader(board_page.write_board_page(typed(records), tmp_path / "board.html", HOSTILE).read_text())
    assert (reader.tags.count("img"), reader.tags.count("script"), reader.suspicious) == (0, 5, [])


def test_the_command_of_a_cell_makes_the_cell() -> None:
    config = {
        "model": {"name": "random_regular", **families.parameter_defaults("random_regular"), "n": 12},
        "method": {**searchpath.method_defaults("dhmc"), "step_size": 0.25, "diagonal": [1.0, 2.5]},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float32"},
        "budget": {"samples": None, "seconds": 0.5, "burn_in": 7},
        "chains": 3,
        "seed": 5,
    }
    composed = composition.plan(shlex.split(of_cell(config, [5]))[2:], multirun=False).config
    whole: Any = OmegaConf.to_container(OmegaConf.create({name: composed[name] for name in config}), resolve=True)
    assert measure.extract_cell(whole) == config


def test_what_all_rows_share_is_told_once(write: Written) -> None:
    text = write(RECORDS).page.read_text()
    assert "<span>budget: 100 samples</span>" in text
    assert "<span>chains: 2</span>" in text
    other = make("dhmc")
    other["config"]["chains"] = 64
    text = write([make(), other]).page.read_text()
    assert "<span>chains" not in text
    assert '<td class="name" data-value="64">64</td>' in text


def test_unwritable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpinbenchError, match=r"the report in .* cannot be written"):
        page.write_report(typed(RECORDS), tmp_path / "file" / "x")


def test_without_pyarrow_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    (tmp_path / "record-1.json").write_text(json.dumps(make()))
    assert cli.main(["report", str(tmp_path), "--tables", "--output", str(tmp_path / "out")]) == 0
    assert export.NO_PARQUET in capsys.readouterr().out
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv"}


def test_parquet_holds_columns_of_mixed_kinds(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    export.write_tables({"t": [{"a": 1, "b": "x"}, {"a": 2.5, "b": 3}, {"a": None, "c": True}]}, tmp_path)
    columns = pyarrow.read_table(tmp_path / "t.parquet").to_pydict()
    assert columns == {"a": [1.0, 2.5, None], "b": ["x", "3", None], "c": [None, None, True]}


def test_page_shows_the_bracket_and_what_it_contradicts(write: Written) -> None:
    wide, known = sorted(
        page_content.log_z_bounds(leaderboard.rows(typed(BOUNDED))), key=lambda line: line.model, reverse=True
    )
    assert (wide.bracket.lower, wide.bracket.lower_method, wide.bracket.width) == (8.5, "mf", 0.75)
    assert wide.contradictions == ("bp on numpy: 12 outside the bracket (1 of 2 seeds)",)
    assert (known.bracket.exact, known.bracket.width) == (1.0, None)
    assert known.contradictions == ("mf on numpy: 1.5 bound violated",)
    assert page_content.log_z_bounds(leaderboard.rows(typed(RECORDS))) == []
    text = write(BOUNDED).page.read_text()
    pieces = ("Bounds on log Z", "8.5", "9.25", *wide.contradictions, *known.contradictions)
    assert [piece for piece in pieces if piece not in text] == []
    assert text.count('class="status bad">ok, ') == 2
    assert "Bounds on log Z" not in write(RECORDS[-2:]).page.read_text()


def test_curves_that_are_not_drawn_are_named(write: Written) -> None:
    records = []
    for name in (names := [f"m{i:02}" for i in range(settings_plots.MAX_CURVES + 1)]):
        for step in (0.1, 0.2, 0.4):
            record = make(name, settings={"step": step})
            records.append({**record, "protocol": str(step), "result": {**record["result"], "trajectory": []}})
    written = write(records)
    text = written.page.read_text()
    assert "Over one setting" in text
    assert f"not drawn: {names[-1]} on numpy" in text
    assert written.page.with_name("over-model-step.pdf").stat().st_size


def test_panels_are_files_of_their_own_that_name_the_model_and_the_settings(write: Written) -> None:
    grid = "grid(rows=3)"
    records = [make(model=grid), make("dhmc", settings={"rows": 3}, model=grid), make(model=HOSTILE)]
    records += [make("dhmc", settings={"rows": 4}, model=grid, seed=seed) for seed in (0, 1)]
    for record, protocol in zip(records, "01233", strict=True):
        record["protocol"] = protocol
    written = write(records, panels=True)
    panels = {path.name: path for path in written.files if path.parent.name == "panels"}
    assert set(panels) == {path.name for path in (written.page.parent / "panels").iterdir()}
    assert len(panels) == 8, "two models, two errors, two kinds"
    text = panels["2-grid-rows-3-accuracy.svg"].read_text()
    for piece in (grid, "gibbs on numpy", "dhmc on numpy", "model.rows=4", "2 seeds"):
        assert f">{piece}</text>" in text
    assert 'href="panels/2-grid-rows-3-accuracy.pdf"' in written.page.read_text()


DOUBTED = {"status": "marginals not mixed, log Z unresolved"}
SLOW = {"seconds": {"run": 1.0, "compile": 8.0, "plan": 1.0}}
MANY = [make("exact", rmse=1e-16 * (1 + i), model=f"m{i:04}", kind="exact") for i in range(400)]
PAGES: dict[str, list[dict[str, Any]]] = {
    "example": RECORDS,
    "many": MANY,
    "folded": [make(method, model=f"m{i}") for i in range(8) for method in ("gibbs", "dhmc")],
    "bounded": BOUNDED,
    "slow": [make(), {**make("dhmc", rmse=0.05), "result": {**make("dhmc", rmse=0.05)["result"], **SLOW}}],
    "doubted": [{**one, "result": {**one["result"], **DOUBTED}} for one in RECORDS if one["status"] == "ok"],
    "tied": [make(model=f"m{i}", backend=name) for i in range(9) for name in ("numpy", "numba")],
    "seeds": [make(seed=2**53 + 1), make("bp", seed=2)],
    "hostile": [make(HOSTILE, model=HOSTILE), make("dhmc", model=HOSTILE, status="failed", error=HOSTILE)],
}

SHOWN = "Array.from(document.querySelectorAll('tr[data-number]')).filter(row => row.offsetParent !== null)"
METHODS = f"{SHOWN}.map(row => row.dataset.method).join(' ')"
PAIRS = f"{SHOWN}.map(row => row.dataset.method + '.' + row.dataset.backend).join(' ')"
REACHED = f"{SHOWN}.slice(1, 3).map(row => row.querySelector('td[data-reached]').textContent).join(' ')"
COUNT = f"{SHOWN}.length"
FIRST = "document.querySelector('tr[data-number]').dataset.model"
PANELS = "Array.from(document.querySelectorAll('.panel:not([hidden])'), p => p.dataset.model).join(' ')"
CURVES = (
    "new Set(Array.from(document.querySelectorAll('svg g[data-row]'))"
    ".filter(g => g.style.display !== 'none').map(g => g.dataset.row)).size"
)
CHARTS = "document.querySelectorAll('.charts svg').length"
HIDDEN = (
    "Array.from(new Set(Array.from(document.querySelectorAll('.panel[data-model=m7] g[data-row]'),"
    " g => g.style.display))).sort().join()"
)
BOUNDS = (
    "Array.from(document.querySelectorAll('#bounds ~ .scroll')[0].querySelectorAll('tbody tr'))"
    ".filter(row => row.offsetParent !== null).map(row => row.dataset.model).join(' ')"
)
AXES = (
    "Array.from(document.querySelectorAll('.charts svg[data-axes]')).filter(svg => svg.checkVisibility())"
    ".map(svg => JSON.parse(svg.dataset.axes)[5] > 5).join()"
)
HEADS = "Array.from(document.querySelectorAll('.choice b'), b => b.textContent).join(' ')"
SORTED_BY = "document.querySelector('th[aria-sort]').textContent.startsWith('RMSE')"
RMSE = "thead th:nth-child(7) button"
CLIPBOARD = "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }"
THIRD = "chooser.selectedIndex = 2; chooser.dispatchEvent(new Event('change'))"
COMMAND = (
    "spinbench sweep model=grid method=gibbs backend=numpy budget.samples=100 budget.seconds=null "
    "budget.burn_in=null chains=2 seed="
)
CELLS = "tr[data-method=gibbs] button[data-cells]"
TEXT = "document.querySelector('dialog pre').textContent"

STEPS: dict[str, tuple[str, list[tuple[tuple[str, ...], str, Any]]]] = {
    "a click sorts and a choice filters": (
        "example",
        [
            ((), f"{PAIRS}.startsWith('exact.numpy gibbs.numpy dhmc.numpy')", True),
            (("click", RMSE), METHODS, "exact gibbs gibbs dhmc bad"),
            (("click", RMSE), METHODS, "dhmc gibbs gibbs exact bad"),
            ((), SORTED_BY, True),
            (("choose", "method", "gibbs"), METHODS, "gibbs gibbs"),
            ((), "document.getElementById('count').textContent", "2 of 5 rows"),
            ((), CURVES, 2),
            (("choose", "model", "torus"), PAIRS, "gibbs.jax"),
            ((), PANELS, "torus"),
        ],
    ),
    "time to another error, and the records": (
        "example",
        [
            ((), REACHED, "0.160 –"),  # (0.004 / 0.01)²
            (("write", "#target", "10"), REACHED, "0.0100 0.250"),
            (("click", CELLS), "document.querySelector('dialog').open", True),
            ((), "document.querySelector('dialog select').options.length", 3),
            ((), f"JSON.parse({TEXT}).id", RECORDS[0]["id"]),
        ],
    ),
    "status and words filter": (
        "example",
        [
            (("choose", "status", "failed"), PAIRS, "bad.jax"),
            (("choose", "status", "failed", "ok"), COUNT, 5),
            (("choose", "method", "dhmc", "bad"), METHODS, "dhmc bad"),
            ((), HEADS, "all 2 all 2"),
            (("click", "#all"), COUNT, 5),
            (("write", "#text", "JAX tor"), PAIRS, "gibbs.jax"),
            ((), PANELS, "torus"),
        ],
    ),
    "the command of a row and of a cell is copied": (
        "example",
        [
            (("evaluate", CLIPBOARD), "window.copied", None),
            (("click", "tr[data-method=gibbs] button[data-copy]"), "window.copied", f"{COMMAND}0,1,2"),
            (("click", CELLS), "document.querySelector('dialog').open", True),
            (("evaluate", THIRD), "window.copied", f"{COMMAND}0,1,2"),
            (("click", "#copy"), "window.copied", f"{COMMAND}2"),
        ],
    ),
    "time may include compiling": ("slow", [((), AXES, "false,false"), (("click", "#whole"), AXES, "true,true")]),
    "seeds to the last digit": (
        "seeds",
        [
            (("click", CELLS), f"""{TEXT}.includes('"seed": "{2**53 + 1}"')""", True),
            ((), f"command([0]).endsWith(' seed={2**53 + 1}')", True),
        ],
    ),
    "many rows": (
        "many",
        [
            ((), FIRST, "m0000"),
            (("click", "thead th:nth-child(3) button"), FIRST, "m0000"),
            (("click", "thead th:nth-child(3) button"), FIRST, "m0399"),
            ((), COUNT, 250),
            (("click", ".more button"), COUNT, 400),
            (("choose", "model", "m0017"), COUNT, 1),
        ],
    ),
    "folded charts are drawn when they are unfolded": (
        "folded",
        [
            ((), CHARTS, 12),
            (("choose", "method", "gibbs"), CHARTS, 12),
            (("click", ".panel[data-model=m7] summary"), CHARTS, 14),
            ((), HIDDEN, ",none"),
            (("choose", "model", "m6"), CHARTS, 16),
        ],
    ),
    "bounds are sorted and filtered": (
        "bounded",
        [
            ((), BOUNDS, "known wide"),
            (("click", "#bounds ~ .scroll thead th:nth-child(2) button"), BOUNDS, "known wide"),
            (("click", "#bounds ~ .scroll thead th:nth-child(2) button"), BOUNDS, "wide known"),
            (("choose", "model", "known"), BOUNDS, "known"),
        ],
    ),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Address of one of `PAGES`, which is written when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def write(name: str) -> str:
        path = folder / name / page.PAGE
        return (path if path.exists() else page.write_report(typed(PAGES[name]), folder / name).page).as_uri()

    return write


@pytest.mark.parametrize("name", STEPS)
def test_each_step_changes_what_is_shown(browser: Any, written: Callable[[str], str], name: str) -> None:
    kind, steps = STEPS[name]
    browser.open(written(kind))
    for action, expression, expected in steps:
        if action:
            getattr(browser, action[0])(*action[1:])
        browser.wait(f"({expression}) === {json.dumps(expected) if expected is not None else 'undefined'}")
    assert browser.log == []


@pytest.mark.parametrize(
    ("name", "rows"), [("doubted", "tr[data-number]"), ("tied", "#across ~ .scroll tbody tr")], ids=["board", "across"]
)
def test_rows_are_low_on_a_narrow_screen(browser: Any, written: Callable[[str], str], name: str, rows: str) -> None:
    browser.open(written(name), width=400)
    assert max(browser.evaluate(f"Array.from(document.querySelectorAll('{rows}'), row => row.offsetHeight)")) < 60


def test_a_record_is_shown_whole(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("example"))
    browser.click(CELLS)
    measured = {"result": page_content.to_javascript_numbers(RECORDS[0]["result"], page_content.MEASURED_DIGITS)}
    assert json.loads(browser.evaluate(TEXT)) == {**RECORDS[0], **measured}


def test_the_checkpoint_under_the_pointer_is_told(browser: Any, written: Callable[[str], str]) -> None:
    """Where the third of three seeds was after 0.1 s, by the axes' own labels."""
    browser.open(written("example"))
    x, y = browser.evaluate(
        """(() => {
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
    )
    browser.point(x + 1, y + 1)
    told = browser.evaluate("document.getElementById('tip').innerText").splitlines()
    assert told == ["gibbs on numpy, seed 2", "RMSE 0.019", "0.1 s, 10 samples"]
    browser.point(3, 3)
    assert browser.evaluate("document.getElementById('tip').hidden") is True


def test_hostile_texts_are_shown_and_nothing_is_fetched(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("hostile"), dark=True)
    assert browser.evaluate("document.body.innerText").count(HOSTILE) >= 3
    assert browser.evaluate("document.querySelectorAll('body img').length") == 0
    assert [url for url in browser.requests if not url.startswith("data:")] == [written("hostile")]
    assert browser.log == []


@pytest.mark.parametrize(
    ("dark", "inks"),
    [(False, ["rgb(255, 255, 255)", "rgb(26, 27, 29)"]), (True, ["rgb(20, 23, 27)", "rgb(230, 232, 235)"])],
    ids=["light", "dark"],
)
def test_dark_and_light_are_those_of_the_reader(
    browser: Any, written: Callable[[str], str], dark: bool, inks: list[str]
) -> None:
    browser.open(written("example"), dark=dark)
    ink = "getComputedStyle(document.querySelector('.charts text')).fill"
    assert browser.evaluate(f"[getComputedStyle(document.body).backgroundColor, {ink}]") == inks


def test_labels_do_not_overlap(browser: Any, written: Callable[[str], str]) -> None:
    browser.open(written("example"))
    overlaps = browser.evaluate(
        """Array.from(document.querySelectorAll('.charts svg')).flatMap(svg => {
            const all = Array.from(svg.querySelectorAll('text'), t => [t.textContent, t.getBoundingClientRect()]);
            return all.flatMap(([a, p], i) => all.slice(i + 1).filter(([b, q]) =>
                p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom
            ).map(([b]) => [a, b]));
        })"""
    )
    assert overlaps == []
