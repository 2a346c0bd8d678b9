"""The page and its files, from records made by hand."""

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
from spinbench.reporting import export, leaderboard, page, page_content, settings_plots
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


def test_nothing_runs_on_a_page_but_its_own_scripts(write: Written) -> None:
    text = write(RECORDS).page.read_text()
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


def test_nothing_that_a_record_holds_becomes_markup(write: Written) -> None:
    records = [
        make(HOSTILE, HOSTILE, model=HOSTILE, settings={HOSTILE: HOSTILE}),
        make("dhmc", HOSTILE, model=HOSTILE, status="failed", error=HOSTILE),
    ]
    reader = Reader(write(records, sources=[Path(HOSTILE.replace("/", ""))]).page.read_text())
    assert (reader.tags.count("img"), reader.tags.count("script"), reader.suspicious) == (0, 4, [])


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
