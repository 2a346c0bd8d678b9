"""The page of a board: what it holds, its statistics against the profile's, files of its reader's, and a browser."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_records import HOSTILE, make, typed

from spinbench import cli
from spinbench.measuring.record_parts import Load
from spinbench.measuring.record_types import Record
from spinbench.measuring.records import RecordError, latest_per_cell
from spinbench.reporting import board_page, export, page
from spinbench.reporting.profiles import boards

TEMPLATES = Path(page.__file__).parent / "templates"
SOLVERS = (("gibbs", "numba"), ("bp", "numba"), ("bp", "libdai"), ("pt", "numba"), ("wmb", "numpy"))
VERDICTS = ("ok", "ok", "ok", "marginals not mixed", "log Z unresolved", "marginals too short, log Z unresolved")
LEVELS = ("converged", "doubtful")
METRICS = ("marginal_rmse", "log_z_error", "hellinger")
NONE = dict.fromkeys(("ok", "doubted", "failed", "refused", "not run"), 0)


def cell(model: int, solver: tuple[str, str], seconds: float, seed: int, rng: random.Random) -> dict[str, Any]:
    """A record of a random outcome and random errors."""
    status = rng.choices(("ok", "failed", "skipped"), (8, 1, 1))[0]
    content = make(*solver, model=f"m{model}", seed=seed, status=status, error=None if status == "ok" else "it broke")
    content |= {"class": f"class {model % 3}", "started_at": 1_700_000_000 + rng.randrange(1000)}
    content["config"]["model"] = {"name": f"m{model}"}
    content["config"]["budget"] = {"seconds": seconds, "samples": None, "burn_in": None, "cpu": True}
    if status == "ok":
        content["metrics"] = {name: {"value": float(f"{10 ** rng.uniform(-5, 0):.3g}")} for name in METRICS}
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


def cell_line(record: Record) -> list[Any]:
    """What the table must hold of a record."""
    result, axes = record.result_or_none, record.axes
    verdict, level, seconds = record.error, "", None
    if result is not None:
        levels, load = result.levels or {}, result.load or Load()
        verdict, level, seconds = result.status, levels["marginals"], load.cpu_seconds
    model = [axes.model, record.model_class]
    solver = [axes.method, axes.backend, axes.backend == "libdai", record.config["budget"]["seconds"]]
    numbers = [record.config["seed"], seconds, *(record.metric(name).value for name in METRICS)]
    return [*model, *solver, record.status, verdict, level, *numbers]


def test_each_cell_of_the_table_is_that_of_its_record() -> None:
    data = board_page.build_board_data(RECORDS)
    entities = {"model": data["models"], "solver": data["solvers"], "budget": data["budgets"], **data["texts"]}
    columns = {name: [entities[name][i] for i in data["cells"][name]] for name in entities} | {
        name: data["cells"][name] for name in ("seed", "cpu_seconds", *METRICS)
    }
    parts = {"model": ("label", "class"), "solver": ("method", "backend", "library"), "budget": ("seconds",)}
    del columns["log_z_level"]
    lines = zip(
        *(
            [entry[part] for entry in column] if part else column
            for name, column in columns.items()
            for part in parts.get(name, ("",))
        ),
        strict=True,
    )
    compared = [record for record in latest_per_cell(RECORDS) if record.axes.method != "exact"]
    assert list(map(list, lines)) == list(map(cell_line, compared))
    models = {model.pop("label"): model for model in data["models"]}
    assert models["m1"] == {"class": "class 1", "variables": 10, "states": 3, "order": 2, "zeros": 0, "width": 7}
    assert [models["m4"]["zeros"], data["budgets"][1]["label"]] == [0.25, "10 CPU s"]


@pytest.mark.parametrize("quantity", range(3))
@pytest.mark.parametrize("budget", range(2))
@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ({}, lambda model, backend: True),
        ({"class": ["class 0", "class 2"]}, lambda model, backend: model % 3 != 1),
        ({"states": ["binary"]}, lambda model, backend: model % 2 == 0),
        ({"zeros": ["no"]}, lambda model, backend: model % 4 != 0),
        ({"minVariables": 20, "maxVariables": 250}, lambda model, backend: 2 <= model <= 25),
        ({"solvers": ["spinbench"]}, lambda model, backend: backend != "libdai"),
    ],
    ids=["all", "class", "states", "zeros", "variables", "solvers"],
)
def test_the_script_agrees_with_the_profile(filters: dict[str, Any], passes: Any, budget: int, quantity: int) -> None:
    """Of the records that pass: values, ratios, mean ranks and counts; intervals within the noise of two bootstraps."""
    data, summary = summarise(CONTENTS, budget=budget, quantity=quantity, **filters)
    passing = [one for one in RECORDS if one.config["budget"]["seconds"] == (1, 10)[budget]]
    passing = [one for one in passing if passes(int(one.axes.model[1:]), one.axes.backend)]
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record, solver in zip(passing, boards.solver_names(passing), strict=True):
        cells[solver, record.axes.model].append(record)
    classes = {model["label"]: model["class"] for model in data["models"]}
    board = boards.build_board([cells], classes, board_page.QUANTITIES[quantity], "")
    assert board is not None
    assert [data["models"][i]["label"] for i in summary["models"]] == list(board.models)
    ranks = [row["rank"] for row in summary["rows"]]
    assert ranks == pytest.approx(board.ranks.mean.tolist())
    rows = {data["solvers"][row["solver"]]["label"]: row for row in summary["rows"]}
    assert set(rows) == set(board.solvers)
    ordered = [rows[solver] for solver in board.solvers]
    values = np.array([row["values"] for row in ordered], dtype=float).T
    np.testing.assert_allclose(np.where(np.isnan(values), np.inf, values), board.values)
    # Ends of a 95 % interval of 2,000 resamples have standard errors of 0.06 standard deviations, or 0.015 widths.
    noise = 0.1 * (board.ranks.high - board.ranks.low)
    for name, ends in (("low", board.ranks.low), ("high", board.ranks.high)):
        assert (abs([row[name] for row in ordered] - ends) <= noise).all()
    assert [Counter(row["counts"]) for row in ordered] == [Counter({**NONE, **count}) for count in board.counts]
    vouched = np.isfinite(board.values)
    assert [row["solved"] for row in ordered] == vouched.sum(axis=0).tolist()
    log_ratios = np.log(np.where(vouched, board.ratios, 1)).sum(axis=0) / vouched.sum(axis=0)
    np.testing.assert_allclose([row["ratio"] for row in ordered], np.exp(log_ratios))
    np.testing.assert_allclose([row["within"] for row in ordered], (board.values <= 0.01).mean(axis=0))
    answered = {key for key, group in cells.items() if any(record.status == "ok" for record in group)}
    assert [row["run"] for row in ordered] == [sum((s, m) in answered for m in board.models) for s in board.solvers]


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
    for result in copies:  # digits that the board has not make no difference
        result["metrics"] = {name: {"value": 1.00003 * metric["value"]} for name, metric in result["metrics"].items()}
    older = copy.deepcopy(next(one for one in copies if one["status"] == "ok"))
    older["metrics"] = {name: {"value": 0.9} for name in older["metrics"]}
    older["started_at"] -= 10_000
    files = own_files([older, *copies, make("exact", kind="exact")], kind, tmp_path)
    data = board_page.build_board_data(typed(board))
    filters = {"quantity": 0, "budget": 1, "accuracy": 0.01}
    summary = f"return [sentences, data.solvers.at(-1), summarise(data, {FILTERS})]; }})()"
    sentences, solver, found = run_script(ADD + summary, data=data, files=files, filters=filters)
    assert sentences == [f"{len(copies)} cells of 1 solver are added"]
    assert solver == {"label": "own: gibbs.numba", "uploaded": True}
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
        ADD + "return [sentences, data.solvers.filter(({ uploaded }) => uploaded).map(({ label }) => label)]; })()",
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
NAMES = "[...document.querySelectorAll('#solvers tbody button')].map(b => b.innerText).join()"
BY_NAME = "wmb.numpy,pt.numba,gibbs.numba,bp.numba,bp.libdai"
UPLOADS = [
    ("records.json", json.dumps([content for content in CONTENTS if content["axes"]["backend"] == "libdai"])),
    ("bad.json", HOSTILE),
]
UPLOAD = f"""(() => {{
    const files = new DataTransfer(), field = document.getElementById('uploads');
    for (const [name, text] of {json.dumps(UPLOADS)}) files.items.add(new File([text], name));
    field.files = files.files;
    field.dispatchEvent(new Event('change'));
}})()"""
HEADING = "document.querySelector('#solvers th')"
LAST_RIVAL = "document.querySelector('#rivals tbody tr:nth-child(5) button')"
# Of each: what is done, an expression, and its value afterwards.
STEPS: dict[str, list[tuple[tuple[str, ...], str, object]]] = {
    "filters": [
        (
            (),
            "document.getElementById('summary').innerText",
            "30 of 30 models, 5 of 5 solvers, by RMSE of the marginals after 1 CPU s",
        ),
        (("click", ".choice[data-axis=solvers] summary"), ROWS, 5),
        (("click", ".choice[data-axis=solvers] input[value=libraries]"), NAMES, "bp.libdai"),
        (("click", "#all"), ROWS, 5),
    ],
    "cards": [
        ((), "document.getElementById('card').hidden", True),
        (("click", "#models tbody tr:nth-child(3) button"), "document.activeElement.innerText", "m15"),
        ((), "document.querySelectorAll('#rivals tbody tr').length", 5),
        ((), "document.getElementById('facts').innerText.includes('variables: 150')", True),
        (("click", "#rivals tbody tr:nth-child(5) button"), "document.activeElement.id", "solver"),
        ((), f"{LAST_RIVAL}.innerText === document.getElementById('solver').innerText", True),
        ((), f"{LAST_RIVAL}.ariaCurrent", "true"),
    ],
    "uploads": [
        (("evaluate", UPLOAD), ROWS, 6),
        ((), f"{NAMES}.includes('own: bp.libdai')", True),
        (
            (),
            "document.getElementById('messages').textContent",
            "164 cells of 1 solver are added. bad.json is neither a record in JSON nor a table cells.csv",
        ),
        ((), "document.querySelectorAll('#solvers svg[role=img][aria-label]').length", 6),
    ],
    "keyboard": [
        (("evaluate", f"{HEADING}.querySelector('button').focus()"), f"{HEADING}.ariaSort", None),
        (("press", "Enter"), f"{HEADING}.ariaSort", "ascending"),
        (("press", "Enter"), f"{HEADING}.ariaSort", "descending"),
        ((), NAMES, BY_NAME),
        (("evaluate", "document.querySelector('.choice[data-axis=zeros] summary').focus()"), NAMES, BY_NAME),
        (("press", "Enter"), "document.querySelector('.choice[data-axis=zeros]').open", True),
        (
            ("click", ".choice[data-axis=zeros] input[value=yes]"),
            "document.getElementById('summary').innerText.slice(0, 14)",
            "8 of 30 models",
        ),
        ((), NAMES, BY_NAME),
        ((), "[...document.querySelectorAll('select, input')].filter(field => !field.labels.length).length", 0),
    ],
}


@pytest.fixture(scope="module")
def board_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the page of `RECORDS`."""
    return board_page.write_board_page(RECORDS, tmp_path_factory.mktemp("board") / "board.html").as_uri()


@pytest.mark.parametrize("name", STEPS)
def test_each_step_changes_what_is_shown(browser: Any, board_url: str, name: str) -> None:
    browser.open(board_url)
    browser.wait(f"{ROWS} === 5")
    for action, expression, value in STEPS[name]:
        if action:
            getattr(browser, action[0])(*action[1:])
        browser.wait(f"({expression}) === {json.dumps(value)}")
    assert (browser.log, browser.requests) == ([], [board_url])


def test_the_page_fits_a_narrow_screen_and_hostile_texts_are_shown(browser: Any, tmp_path: Path) -> None:
    browser.open(hostile_page(tmp_path).as_uri(), width=400, dark=True)
    browser.wait(f"{ROWS} === 1")
    browser.click("#models tbody button")
    browser.wait("document.getElementById('card').hidden === false")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    assert browser.evaluate("document.body.innerText").count(HOSTILE) >= 3
    assert browser.evaluate("document.querySelectorAll('body img').length") == 0
    assert browser.log == []
