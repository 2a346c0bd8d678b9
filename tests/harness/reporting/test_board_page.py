"""The page of a board: what it holds, its statistics against the profile's, files of its reader's, and a browser."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import math
import random
import re
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from small_records import HOSTILE, make, typed

from spinbench import cli
from spinbench.measuring import record_types, records
from spinbench.measuring.records import RecordError
from spinbench.reporting import board_page, export, page
from spinbench.reporting.profiles import boards

TEMPLATES = Path(page.__file__).parent / "templates"
SOLVERS = (("gibbs", "numba"), ("bp", "numba"), ("bp", "libdai"), ("pt", "numba"), ("wmb", "numpy"))
VERDICTS = ("ok", "ok", "ok", "marginals not mixed", "log Z unresolved", "marginals too short, log Z unresolved")
LEVELS = ("converged", "doubtful")


def cell(model: int, solver: tuple[str, str], seconds: float, seed: int, rng: random.Random) -> dict[str, Any]:
    """A record of a random outcome and random errors."""
    status = rng.choices(("ok", "failed", "skipped"), (8, 1, 1))[0]
    content = make(*solver, model=f"m{model}", seed=seed, status=status, error=None if status == "ok" else "it broke")
    content |= {"class": f"class {model % 3}", "started_at": 1_700_000_000 + rng.randrange(1000)}
    content["config"]["model"] = {"name": f"m{model}"}
    content["config"]["budget"] = {"seconds": seconds, "samples": None, "burn_in": None, "cpu": True}
    if status == "ok":
        names = ("marginal_rmse", "log_z_error", "hellinger")
        content["metrics"] = {name: {"value": float(f"{10 ** rng.uniform(-5, 0):.3g}")} for name in names}
        content["features"] = {"variables": 10 * model, "factors": 3, "states": 2 + model % 2, "order": 2}
        content["features"]["zeros"] = 0.25 * (model % 4 == 0)
        content["result"] |= {"status": rng.choice(VERDICTS), "levels": {"marginals": rng.choice(LEVELS)}}
        content["result"] |= {"load": {"cpu_seconds": round(rng.uniform(0, 9), 2)}}
    return content


def board_contents(models: int, solvers: Sequence[tuple[str, str]] = SOLVERS) -> list[dict[str, Any]]:
    """Records of a board on which a tenth of the cells was not run."""
    rng = random.Random(models)
    cells = [
        cell(m, solver, seconds, seed, rng)
        for m in range(models)
        for solver in solvers
        for seconds in (1, 10)
        for seed in range(3)
    ]
    exact = make("exact", model="m1", kind="exact")
    exact["result"]["diagnostics"] = {"width": 7.0}
    return [*rng.sample(cells, len(cells) * 9 // 10), exact]


CONTENTS = board_contents(30)
RECORDS = typed(CONTENTS)


def run_script(expression: str, **constants: Any) -> Any:
    """The value of an expression about the page's scripts without the page, under node; infinities are null."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here: the page's statistics were not compared with the profile's")
    scripts = [(TEMPLATES / name).read_text() for name in ("board_statistics.js", "board_upload.js")]
    lines = [f"const {name} = {json.dumps(value)};" for name, value in constants.items()]
    program = "\n".join([*scripts, *lines, f"console.log(JSON.stringify({expression}));"])
    output = subprocess.run([node, "-"], input=program, capture_output=True, text=True, check=True, timeout=60).stdout
    return json.loads(output)


FILTERS = "Object.fromEntries(Object.entries(filters).map(([k, v]) => [k, Array.isArray(v) ? new Set(v) : v]))"


def summarise(contents: Sequence[Any], **filters: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A board's data, and what the script makes of it."""
    data = board_page.build_board_data(typed(contents))
    filters = {"quantity": 0, "budget": 0, "accuracy": 0.01, **filters}
    return data, run_script(f"summarise(data, {FILTERS})", data=data, filters=filters)


def test_each_cell_of_the_table_is_that_of_its_record() -> None:
    data = board_page.build_board_data(RECORDS)
    columns, texts = data["cells"], data["texts"]
    kept = [one for one in records.latest_per_cell(RECORDS) if one.axes.method != "exact"]
    assert {len(column) for column in columns.values()} == {len(kept)}
    for i, record in enumerate(kept):
        model, solver = data["models"][columns["model"][i]], data["solvers"][columns["solver"][i]]
        assert (model["label"], model["class"]) == (record.axes.model, record.model_class)
        assert (solver["method"], solver["backend"]) == (record.axes.method, record.axes.backend)
        assert solver["library"] == (record.axes.backend == "libdai")
        assert (
            data["budgets"][columns["budget"][i]]
            == {"label": f"{record.config['budget']['seconds']} CPU s"} | (record.config["budget"])
        )
        assert (columns["seed"][i], texts["status"][columns["status"][i]]) == (record.config["seed"], record.status)
        verdict = record.result.status if record.status == "ok" else record.error
        assert texts["verdict"][columns["verdict"][i]] == verdict
        for quantity in data["quantities"]:
            assert columns[quantity["metric"]][i] == record.metric(quantity["metric"]).value
        if record.status == "ok":
            assert columns["cpu_seconds"][i] == record.result.load.cpu_seconds  # type: ignore[union-attr]
            assert texts["marginals_level"][columns["marginals_level"][i]] == record.result.levels["marginals"]  # type: ignore[index]
    features = {model["label"]: {**model, "label": ""} for model in data["models"]}
    expected = {"label": "", "class": "class 1", "variables": 10, "states": 3, "order": 2, "zeros": 0, "width": 7}
    assert features["m1"] == expected
    assert features["m4"]["zeros"] == 0.25


@pytest.mark.parametrize("quantity", range(3))
@pytest.mark.parametrize("budget", range(2))
@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ({}, lambda record: True),
        ({"class": ["class 0", "class 2"]}, lambda record: record.model_class != "class 1"),
        ({"states": ["binary"]}, lambda record: int(record.axes.model[1:]) % 2 == 0),
        ({"zeros": ["no"]}, lambda record: int(record.axes.model[1:]) % 4 != 0),
        ({"least": 20, "most": 250}, lambda record: 2 <= int(record.axes.model[1:]) <= 25),
        ({"solvers": ["spinbench"]}, lambda record: record.axes.backend != "libdai"),
    ],
    ids=["all", "class", "states", "zeros", "variables", "solvers"],
)
def test_the_script_agrees_with_the_profile(filters: dict[str, Any], passes: Any, budget: int, quantity: int) -> None:
    """Of the records that pass: values, ratios, mean ranks and counts; intervals within the noise of two bootstraps."""
    data, summary = summarise(CONTENTS, budget=budget, quantity=quantity, **filters)
    seconds = (1, 10)[budget]
    kept = [one for one in RECORDS if one.config["budget"].get("seconds") == seconds and passes(one)]
    cells: dict[tuple[str, str], list[record_types.Record]] = {}
    for record, solver in zip(kept, boards.solver_names(kept), strict=True):
        cells.setdefault((solver, record.axes.model), []).append(record)
    classes = {model["label"]: model["class"] for model in data["models"]}
    board = boards.build_board([cells], classes, board_page.QUANTITIES[quantity], "")
    assert board is not None
    assert [data["models"][i]["label"] for i in summary["models"]] == list(board.models)
    rows = {data["solvers"][row["solver"]]["label"]: row for row in summary["rows"]}
    assert set(rows) == set(board.solvers)
    assert [row["rank"] for row in summary["rows"]] == sorted(row["rank"] for row in rows.values())
    for s, solver in enumerate(board.solvers):
        row, values = rows[solver], board.values[:, s]
        assert [math.inf if value is None else value for value in row["values"]] == pytest.approx(values.tolist())
        assert row["rank"] == pytest.approx(board.ranks.mean[s])
        # Ends of a 95 % interval of 2,000 resamples have standard errors of 0.06 standard deviations, or 0.015 widths.
        noise = 0.1 * (board.ranks.high[s] - board.ranks.low[s])
        assert row["low"] == pytest.approx(board.ranks.low[s], abs=noise)
        assert row["high"] == pytest.approx(board.ranks.high[s], abs=noise)
        assert {name: n for name, n in row["counts"].items() if n} == {n: k for n, k in board.counts[s].items() if k}
        ratios = board.ratios[:, s][values < math.inf]
        assert row["solved"] == len(ratios)
        assert row["ratio"] == (
            pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios))) if len(ratios) else None
        )
        assert row["within"] == pytest.approx((values <= 0.01).mean())
        answered = {
            model for (name, model), group in cells.items() if name == solver and any(r.status == "ok" for r in group)
        }
        assert row["run"] == len(answered & set(board.models))


# An expression's beginning: files of the reader are read and added.
ADD = (
    "(() => { const rows = files.flatMap(([name, text]) => readRows(name, text, data.quantities));"
    " const sentences = addResults(data, rows);"
)


def own_files(contents: Sequence[dict[str, Any]], kind: str, folder: Path) -> list[tuple[str, str]]:
    """Names and texts of the files in which these records lie in a sweep's folder, or of their table."""
    if kind == "csv":
        return [("cells.csv", export.write_csv(export.table_rows(typed(contents)), folder / "cells.csv").read_text())]
    return [(f"{i}.json", json.dumps(content)) for i, content in enumerate(contents)]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_results_of_the_reader_are_further_solvers_with_the_same_numbers(kind: str, tmp_path: Path) -> None:
    """Copies of a solver's records, of which an older one with another error does not count."""
    board = [{**one, "axes": {**one["axes"], "model": f'={one["axes"]["model"]}, "new"'}} for one in CONTENTS]
    copies = copy.deepcopy([one for one in board if one["axes"]["method"] == "gibbs"])
    older = copy.deepcopy(next(one for one in copies if one["status"] == "ok"))
    older["metrics"] = {name: {"value": 0.9} for name in older["metrics"]}
    older["started_at"] -= 10_000
    files = own_files([older, *copies, make("exact", kind="exact")], kind, tmp_path)
    data = board_page.build_board_data(typed(board))
    filters = {"quantity": 0, "budget": 1, "accuracy": 0.01}
    summary = f"return [sentences, data.solvers.at(-1), summarise(data, {FILTERS})]; }})()"
    sentences, solver, found = run_script(ADD + summary, data=data, files=files, filters=filters)
    assert sentences == [f"{len(copies)} cells of 1 solver are added"]
    assert solver == {"label": "own: gibbs.numba", "own": True}
    original, own = (
        next(row for row in found["rows"] if row["solver"] == s)
        for s in ([one["label"] for one in data["solvers"]].index("gibbs.numba"), len(data["solvers"]))
    )
    assert {**own, "solver": 0, "cells": 0} == {**original, "solver": 0, "cells": 0}


def test_results_of_the_reader_are_told_apart_by_their_settings_and_left_out_with_a_sentence() -> None:
    results = [make("gibbs", model="m1", seed=0) for _ in range(4)]
    for result, chains, seconds in zip(results, (1, 8, 8, 8), (10, 10, 10, 5), strict=True):
        result["config"] = {
            **result["config"],
            "chains": chains,
            "budget": CONTENTS[0]["config"]["budget"] | {"seconds": seconds},
        }
    results[2]["axes"] = {**results[2]["axes"], "model": "elsewhere"}
    data = board_page.build_board_data(RECORDS)
    sentences, labels = run_script(
        ADD + "return [sentences, data.solvers.filter(({ own }) => own).map(({ label }) => label)]; })()",
        data=data,
        files=[("records.json", json.dumps(results))],
    )
    assert labels == ["own: gibbs.numpy chains=1", "own: gibbs.numpy chains=8"]
    assert sentences == [
        "2 cells of 2 solvers are added",
        "the board has no model elsewhere",
        "the board has no budget of 1 cell",
    ]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", "a.json is neither a record in JSON nor a table cells.csv"),
        ("a.json", "null", "a.json is neither a record in JSON nor a table cells.csv"),
        ("a.json", "[" * 100_000, "a.json is neither a record in JSON nor a table cells.csv"),
        ("a.json", "[]", "a.json holds no records"),
        ("a.csv", "", "a.csv holds no records"),
        ("a.csv", "axes.model,status\n", "a.csv holds no records"),
        ("a.json", "5", "a.json is no record of spinbench: axes.model is missing"),
        ("a.csv", "x,y\n1,2", "a.csv is no record of spinbench: axes.model is missing"),
        ("a.json", json.dumps(make() | {"axes": {"model": "m", "method": "a"}}), "axes.backend is missing"),
        ("a.json", json.dumps(make(rmse=-1.0)), "metrics.marginal_rmse.value is -1"),
        ("a.json", json.dumps(make()).replace("0.01,", '"<b>",'), "metrics.marginal_rmse.value is <b>"),
    ],
    ids=[
        "torn",
        "null",
        "deep",
        "empty",
        "no-table",
        "no-rows",
        "number",
        "other-table",
        "no-backend",
        "negative",
        "text",
    ],
)
def test_a_bad_file_gets_a_sentence(name: str, text: str, sentence: str) -> None:
    read = "(() => { try { return readRows(name, text, data.quantities); } catch (error) { return error.message; } })()"
    assert sentence in run_script(read, data=board_page.build_board_data(RECORDS), name=name, text=text)


def test_a_page_of_34000_cells_has_less_than_5_megabytes(tmp_path: Path) -> None:
    """142 models, 40 solvers, two budgets, three seeds; every refusal has a reason of its own."""
    contents = board_contents(142, [(f"method{i}", "numba") for i in range(45)])
    for i, content in enumerate(contents):
        if content["status"] != "ok":
            content["error"] = (
                f"variable {i} has {i % 7} states; methods on the Forney form need binary variables, so use bp"
            )
    assert len(contents) > 34_000
    path = board_page.write_board_page(typed(contents), tmp_path / "board.html")
    assert path.stat().st_size < 5e6


def hostile_page(folder: Path) -> Path:
    """The page of a board on which all texts are hostile."""
    contents = [
        make(HOSTILE, HOSTILE, model=HOSTILE) | {"class": HOSTILE},
        make("bp", model="=1+1", status="failed", error=HOSTILE) | {"class": "=1+1"},
    ]
    contents[0]["result"] |= {"status": HOSTILE, "levels": {"marginals": HOSTILE}}
    return board_page.write_board_page(typed(contents), folder / "board.html", HOSTILE)


def test_nothing_runs_on_the_page_but_its_own_scripts_and_texts_stay_texts(tmp_path: Path) -> None:
    text = hostile_page(tmp_path).read_text()
    policy = html.unescape(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0])
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert len(digests) == 4
    assert digests == set(re.findall(r"'sha256-[^']*'", policy))
    assert (text.count("<script"), text.count("<img"), text.count("alert(2)")) == (5, 0, text.count("&lt;img src=x"))
    assert not re.search(r"(src|href)=\"|https?://(?!www.w3.org/2000/svg)", text)
    packed = re.findall(r'id="data">([^<]*)</script>', text)[0]
    data = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert {model["label"] for model in data["models"]} == {HOSTILE, "=1+1"}


def test_the_command_writes_the_page_of_some_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for i, content in enumerate(CONTENTS):
        file = tmp_path / f"sweep{i % 2}" / "records" / f"record-{i}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    assert cli.main(["profile", "sweep0", "sweep1", "--html", "out/board.html"]) == 0
    assert "page: out/board.html" in capsys.readouterr().out
    assert "<h1>sweep0, sweep1</h1>" in (tmp_path / "out" / "board.html").read_text()
    (tmp_path / "file").touch()
    assert cli.main(["profile", "sweep0", "--html", "file/board.html"]) == 2
    with pytest.raises(RecordError, match="of 1 records none is of a method other than exact"):
        board_page.write_board_page(typed([make("exact")]), tmp_path / "none.html")


ROWS = "document.querySelectorAll('#solvers tbody tr').length"
FIRST = "document.querySelector('#solvers tbody button').innerText"
UPLOAD = """(() => {
    const files = new DataTransfer();
    for (const [name, text] of %s) files.items.add(new File([text], name));
    const field = document.getElementById('own');
    field.files = files.files;
    field.dispatchEvent(new Event('change'));
})()"""


@pytest.fixture(scope="module")
def board_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the page of `RECORDS`."""
    return board_page.write_board_page(RECORDS, tmp_path_factory.mktemp("board") / "board.html").as_uri()


def test_filters_clicks_and_files_change_what_is_shown(browser: Any, board_url: str) -> None:
    browser.open(board_url)
    browser.wait(f"{ROWS} === 5")
    first = browser.evaluate(FIRST)
    summary = "document.getElementById('summary').innerText"
    assert browser.evaluate(summary) == "30 of 30 models, 5 of 5 solvers, by RMSE of the marginals after 1 CPU s"
    browser.click(".choice[data-axis=solvers] summary")
    browser.click(".choice[data-axis=solvers] input[value=libraries]")
    browser.wait(f"{ROWS} === 1 && {FIRST} === 'bp.libdai'")
    browser.click("#all")
    browser.wait(f"{ROWS} === 5 && {FIRST} === '{first}'")
    assert browser.evaluate("document.getElementById('card').hidden") is True
    browser.click("#models tbody tr:nth-child(3) button")
    label = browser.evaluate("document.querySelector('#models tbody tr:nth-child(3) button').innerText")
    browser.wait(f"document.activeElement.innerText === '{label}' && document.activeElement.id === 'model'")
    assert browser.evaluate("document.querySelectorAll('#rivals tbody tr').length") == 5
    browser.click("#rivals tbody tr:nth-child(5) button")
    last = browser.evaluate("document.querySelector('#rivals tbody tr:nth-child(5) button').innerText")
    browser.wait(f"document.getElementById('solver').innerText === '{last}'")
    own = [one for one in CONTENTS if one["axes"]["backend"] == "libdai"]
    files = [("records.json", json.dumps(own)), ("bad.json", HOSTILE)]
    browser.evaluate(UPLOAD % json.dumps(files))
    browser.wait(f"{ROWS} === 6")
    browser.wait("[...document.querySelectorAll('#solvers button')].some(b => b.innerText === 'own: bp.libdai')")
    said = browser.evaluate("document.getElementById('messages').textContent")
    assert said == f"{len(own)} cells of 1 solver are added. bad.json is neither a record in JSON nor a table cells.csv"
    assert browser.evaluate("document.querySelectorAll('#solvers svg[role=img][aria-label]').length") == 6
    assert browser.log == []
    assert browser.requests == [board_url]


def test_headings_sort_by_keyboard_and_a_filter_keeps_the_order(browser: Any, board_url: str) -> None:
    browser.open(board_url)
    browser.wait(f"{ROWS} === 5")
    names = "[...document.querySelectorAll('#solvers tbody button')].map(b => b.innerText).join()"
    browser.evaluate("document.querySelector('#solvers thead button').focus()")
    for order in ("ascending", "descending"):
        browser.press("Enter")
        browser.wait(f"document.querySelector('#solvers th').getAttribute('aria-sort') === '{order}'")
    assert browser.evaluate(names) == "wmb.numpy,pt.numba,gibbs.numba,bp.numba,bp.libdai"
    browser.click(".choice[data-axis=zeros] summary")
    browser.click(".choice[data-axis=zeros] input[value=yes]")
    browser.wait("document.getElementById('summary').innerText.startsWith('8 of 30 models')")
    assert browser.evaluate(names) == "wmb.numpy,pt.numba,gibbs.numba,bp.numba,bp.libdai"
    unlabelled = "[...document.querySelectorAll('select, input')].filter(e => !e.labels.length).length"
    assert browser.evaluate(unlabelled) == 0


def test_the_page_fits_a_narrow_screen_and_hostile_texts_are_shown(browser: Any, tmp_path: Path) -> None:
    browser.open(hostile_page(tmp_path).as_uri(), width=400, dark=True)
    browser.wait(f"{ROWS} === 1")
    browser.click("#models tbody button")
    browser.wait("document.getElementById('card').hidden === false")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    assert browser.evaluate("document.body.innerText").count(HOSTILE) >= 3
    assert browser.evaluate("document.querySelectorAll('body img').length") == 0
    assert browser.log == []
