"""Records whose parts are missing, of another type or from anywhere are named, or shown; and benchopt's columns."""

from __future__ import annotations

import copy
import io
import json
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from small_records import BOUNDED, RECORDS, make, typed, whole

from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.foundation import remarks
from spinbench.measuring import records
from spinbench.measuring import records as stored
from spinbench.measuring.measure import measure_cell
from spinbench.papers.gauging import points
from spinbench.reporting import board_page, curves, export, leaderboard, page_content, replay, summary
from spinbench.reporting.profiles import rendering
from spinbench.reporting.profiles.profile import profile
from spinbench.reporting.wide_console import WideConsole

GOOD = make(seed=1)
VICTIMS = (make(seed=0, log_z=1.0), make(status="failed", error="it broke"))
ABSENT = object()
OTHERS = (ABSENT, None, "x", -1, [1], {"a": 1}, True)
Place = tuple[Any, ...]


def paths(part: Any, above: Place = ()) -> Iterator[Place]:
    entries = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for name, inner in entries:
        yield (*above, name)
        yield from paths(inner, (*above, name))


def damaged(record: dict[str, Any], path: Place, by: Any) -> dict[str, Any]:
    """A copy with something else in place of a part, unless that is gone with another one."""
    whole = copy.deepcopy(record)
    part: Any = whole
    for name in path[:-1]:
        if not (name in part if isinstance(part, dict) else isinstance(part, list) and name < len(part)):
            return whole
        part = part[name]
    if isinstance(part, list) and not (isinstance(path[-1], int) and path[-1] < len(part)):
        return whole
    if isinstance(part, dict | list) and by is not ABSENT:
        part[path[-1]] = by
    elif isinstance(part, dict):
        part.pop(path[-1], None)
    return whole


def shown(folder: Path, record: dict[str, Any]) -> bool:
    """Whether a record is shown beside a good one; otherwise it is refused by name."""
    for name, content_ in (("good", GOOD), ("bad", record)):
        (folder / f"record-{name}.json").write_text(json.dumps(content_))
    found = records.latest_per_cell(records.read_records(folder))
    assert GOOD in [record.content for record in found]
    rows = leaderboard.rows(found)
    export.report_tables(found, rows)
    page_content.script_data(found, rows)
    page_content.group_failures(found)
    profile(found)
    board_page.build_board_data(found)
    for one in found:
        replay.render_record(one)
        curves.error_points(one, "log_z_error")
    return len(found) > 1


def measured() -> dict[str, Any]:
    """A record as a sweep writes it, of more parts than one that is made by hand; its first bound says nothing."""
    cell = {
        "model": {"name": "grid", "rows": 2, "cols": 2},
        "method": {"name": "wmb"},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": 64, "seconds": None, "burn_in": None},
        "chains": 2,
        "seed": 0,
    }
    record = json.loads(json.dumps(measure_cell(cell, git={"commit": "b" * 40, "dirty": False, "diff": None})))
    silent = {"value": None, "side": "lower", "grade": "certified", "delta": 0.0, "by": "wmb"}
    record["result"]["bounds"].insert(0, silent)
    return dict(record)


@pytest.mark.parametrize(
    ("victim", "parts"),
    [
        (lambda: VICTIMS[0], VICTIMS[0]),
        (lambda: VICTIMS[1], VICTIMS[1]),
        (measured, ("result", "metrics", "reference")),
    ],
    ids=("ok", "failed", "measured"),
)
def test_each_part_of_a_record_may_be_missing_or_none(
    tmp_path: Path, victim: Callable[[], dict[str, Any]], parts: Any
) -> None:
    record = victim()
    assert shown(tmp_path, record)
    places = [path for path in paths(record) if path[0] in parts]
    assert {shown(tmp_path, damaged(record, path, by)) for path in places for by in (ABSENT, None)} == {True, False}


@given(
    victim=st.sampled_from(VICTIMS),
    harm=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(OTHERS)), min_size=1, max_size=3),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_may_be_of_any_type(tmp_path: Path, victim: dict[str, Any], harm: list[tuple[int, Any]]) -> None:
    places = list(paths(victim))
    record = victim
    for number, by in harm:
        record = damaged(record, places[number % len(places)], by)
    shown(tmp_path, record)


def test_the_report_names_a_good_record_without_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remarks.remark.cache_clear()
    for name, record in (("good", GOOD), ("bad", damaged(VICTIMS[0], ("result",), ABSENT))):
        (tmp_path / f"record-{name}.json").write_text(json.dumps(record))
    assert cli.main(["report", str(tmp_path), "--tables"]) == 0
    told = capsys.readouterr().err
    assert "record-bad.json is not a record: result is missing or malformed" in told
    assert "record-good" not in told
    with pytest.raises(SpinbenchError, match=r"record-bad\.json is not a record: result"):
        records.read_record(tmp_path / "record-bad.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("started_at", 1e18),
        ("started_at", -1.0),
        ("metrics marginal_rmse value", 1e299),
        ("metrics marginal_rmse standard_error", -1.0),
        ("environment gpus", 7),
        ("result trajectory 0 samples", 10**299),
        ("versions", [1]),
        ("config +hydra.job.env_set", {"PYTHONPATH": "/evil"}),
        ("config experiment", "tour"),
        ("config model hydra.x", 1),
        ("config model name", "../../evil"),
        ("config method name", "/evil"),
        ("config model path", "${oc.env:SECRET}"),
        ("config method extra", [{"a": "${x}"}]),
    ],
)
def test_what_no_sweep_writes_is_no_record(tmp_path: Path, path: str, value: Any) -> None:
    """Commands are made of records, squares and dates of their numbers."""
    place = tuple(int(name) if name.isdigit() else name for name in path.split())
    assert not shown(tmp_path, damaged(make(seed=0), place, value))


def test_settings_of_plugins_may_have_any_keys_within(tmp_path: Path) -> None:
    assert shown(tmp_path, damaged(make(seed=0), ("config", "method", "of-mine"), {"0.5": [1, {"a b": "c d"}]}))


def test_files_that_changed_under_their_names_make_rows_of_their_own() -> None:
    files = ["cd" * 32, "ab" * 32, "ab" * 32]
    found = leaderboard.rows(typed({**make(seed=seed), "files": {"path": one}} for seed, one in enumerate(files)))
    assert sorted((row.replicates, row.variant[:14]) for row in found) == [(1, "files.path=cdc"), (2, "files.path=aba")]


@pytest.mark.parametrize("words", [("report", "."), ("show", "a")])
def test_an_ascii_terminal_gets_plain_text(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "multirun" / "[/nope]" / "records"
    folder.mkdir(parents=True)
    for key, path in (("a", "[/nope].uai"), ("b", "[red]\x1b[2Jmine.uai")):
        record = make(model=path, status="failed", error="± [/bold] \x1b]0;owned\x07")
        record["config"]["model"] = {"name": "file", "path": path}
        (folder / f"record-{key}.json").write_text(json.dumps({**record, "id": key, "key": key}))
    done = subprocess.run(
        [sys.executable, "-m", "spinbench", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert b"[/nope].uai" in done.stdout
    assert not {0x1B, 0x07} & set(done.stdout)
    assert max(done.stdout) < 128


SEEDS = [make(method, rmse=0.0123 * (1 + n), seed=s) for n, method in enumerate(("gibbs", "pt", "bp")) for s in (0, 1)]


def printed(console: type[Console], parts: list[RenderableType], width: int) -> str:
    file = io.StringIO()
    output = console(file=file, width=width, highlight=False, markup=False, color_system=None)
    for part in parts:
        output.print(part)
    assert output.width == width, "and the next one is folded as before"
    return file.getvalue()


def board(width: int) -> list[RenderableType]:
    return [*summary.leaderboard_tables(leaderboard.rows(typed([*RECORDS, *BOUNDED])), width)]


PARTS: dict[str, Callable[[int], list[RenderableType]]] = {
    "leaderboard": board,
    "record": lambda width: replay.render_record(whole(RECORDS[0])),
    "profile": lambda width: list(rendering.render_profile(profile(typed(SEEDS)))),
    "group": lambda width: [Group(Text("above"), *board(width))],
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("width", [20, 40, 57, 79])
def test_numbers_are_whole(name: str, width: int) -> None:
    parts = [part for part in PARTS[name](width) if isinstance(part, Table | Group)]
    numbers = re.compile(r"\d[\d.]*(?:e[-+]?\d+)?")
    known = {number for number in numbers.findall(printed(Console, parts, 10_000)) if "." in number}
    assert known
    assert known <= set(numbers.findall(printed(WideConsole, parts, width)))


def test_texts_are_folded_and_what_has_room_is_left_alone() -> None:
    table = Table("name", "value")
    table.add_row("x" * 50, "0.12345678901234567")
    lines = printed(WideConsole, [table], 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert any("0.12345678901234567" in line for line in lines)
    assert printed(WideConsole, board(200), 200) == printed(Console, board(200), 200)


EXPERIMENTS = Path(__file__).parents[3] / "docs" / "experiments"
# By which `benchopt merge` knows a line.
IDENTITY = ("dataset_name", "objective_name", "solver_name", "idx_rep", "stop_val")


def test_a_line_is_a_checkpoint_and_the_last_has_the_metrics_of_the_run() -> None:
    records = [make(seed=seed) for seed in range(2)] + [make(status="failed")]
    lines = export.benchopt_table(typed(records))
    assert len(lines) == sum(len(record["result"]["trajectory"]) for record in records[:2])
    assert len({tuple(line[name] for name in IDENTITY) for line in lines}) == len(lines)
    first = records[0]["result"]["trajectory"]
    own = [line for line in lines if line["idx_rep"] == 0]
    assert [line["time"] for line in own] == [point["seconds"] for point in first]
    assert [line["objective_value"] for line in own] == [point["marginal_rmse"] for point in first]
    assert "status" not in own[0]
    assert own[-1]["status"] == "ok"
    assert own[-1]["p_solver_backend"] == records[0]["config"]["backend"]["name"]
    assert own[0]["solver_name"].startswith(f"{records[0]['config']['method']['name']}[backend=")


def test_benchopt_reads_and_draws_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    results = pytest.importorskip("benchopt.results", reason="benchopt is not installed: pip install benchopt")
    from benchopt.plotting.default_plots import ObjectiveCurvePlot

    export.write_tables({"benchopt": export.benchopt_table(typed([make(seed=seed) for seed in range(2)]))}, tmp_path)
    found = results.read_results(tmp_path / "benchopt.parquet")
    assert not found.duplicated(list(IDENTITY)).any()
    line = found.iloc[0]
    where = line["dataset_name"], line["objective_name"]
    (curve,) = ObjectiveCurvePlot().plot(found, *where, "objective_value", "Time")
    assert len(curve["x"]) == found["stop_val"].nunique()


def means(path: Path) -> dict[tuple[str, int, float], float]:
    """Of |log Z - answer| / |log Z| over models, by method, factors and β."""
    import pyarrow.parquet

    errors: dict[tuple[str, int, float], list[float]] = defaultdict(list)
    for line in pyarrow.parquet.read_table(path).to_pylist():
        if line["status"] is not None:
            exact = line["objective_exact_log_z"]
            name = points.NAMES[line["solver_name"].partition("[")[0]]
            place = name, line["p_dataset_nodes"], line["p_dataset_beta"]
            errors[place].append(abs(line["objective_log_z"] - exact) / abs(exact))
    assert {len(values) for values in errors.values()} == {20}
    return {place: statistics.fmean(values) for place, values in errors.items()}


def tabled(figure: int) -> dict[tuple[str, int, float], str]:
    """The same of the page, as written."""
    text = (EXPERIMENTS / "gauge-figures.md").read_text(encoding="utf-8")
    part = text.split(f"### Figure {figure}\n")[1].split("### Figure")[0]
    found: dict[tuple[str, int, float], str] = {}
    across: list[float] = []
    nodes = 0
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("**complete graph, "):
            nodes = int(line.split()[2])
        elif cells[0] == "β":
            across = [float(cell) for cell in cells[1:]]
        elif cells[0] in points.NAMES.values():
            found |= {
                (cells[0], nodes, beta): cell.split(" ± ")[0] for beta, cell in zip(across, cells[1:], strict=True)
            }
    return found


@pytest.mark.parametrize("figure", [1, 2])
def test_raw_numbers_that_ship_are_those_of_the_page(figure: int) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    found: Any = means(EXPERIMENTS / f"gauge-fig{figure}.parquet")
    told = tabled(figure)
    assert found.keys() == told.keys()
    assert len(told) == 7 * 3 * 4
    assert {place: f"{value:.3g}" for place, value in found.items()} == told


def test_raw_numbers_of_table_1_are_those_that_the_page_tells_of_them() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")
    squares: dict[str, list[float]] = defaultdict(list)
    for line in pyarrow.read_table(EXPERIMENTS / "table1.parquet").to_pylist():
        if line["status"] is not None:
            squares[line["solver_name"]].append(line["objective_marginal_rmse"] ** 2)
    assert [len(values) for values in squares.values()] == [75] * 5
    told = (EXPERIMENTS / "table1.md").read_text(encoding="utf-8").rpartition("Its marginal RMSE")[2].replace("\n", " ")
    for values in squares.values():
        assert f"{statistics.fmean(values) ** 0.5:.4f}"[1:] + " ±" in told


def test_tables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stored, "read_records", lambda folder: typed([make(seed=0), make(seed=1)]))
    assert cli.main(["report", "--tables", "sweep", "--output", str(tmp_path / "out")]) == 0
    assert "benchopt.csv" in capsys.readouterr().out
    stems = {path.stem for path in (tmp_path / "out").iterdir()}
    assert stems == {"leaderboard", "cells", "trajectories", "benchopt"}
