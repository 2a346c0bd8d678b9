"""Panels as files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_records import HOSTILE, make, typed

from spinbench import cli
from spinbench.reporting import page


def test_files_name_the_model_and_the_settings(tmp_path: Path) -> None:
    records = [
        make(model="grid(rows=3)"),
        make("dhmc", settings={"rows": 3}, model="grid(rows=3)"),
        make(model=HOSTILE),
    ]
    records += [make("dhmc", settings={"rows": 4}, model="grid(rows=3)", seed=seed) for seed in (0, 1)]
    for record, protocol in zip(records, "01233", strict=True):
        record["protocol"] = protocol
    written = page.write(typed(records), tmp_path, panels=True)
    names = sorted(path.name for path in (tmp_path / "panels").iterdir())
    assert len(names) == 8, "two models, two errors, two kinds"
    assert "2-grid-rows-3-accuracy.pdf" in names
    assert {path for path in written.files if path.parent.name == "panels"} == set((tmp_path / "panels").iterdir())
    text = (tmp_path / "panels" / "2-grid-rows-3-accuracy.svg").read_text()
    for piece in ("grid(rows=3)", "gibbs on numpy", "dhmc on numpy", "model.rows=4", "2 seeds"):
        assert f">{piece}</text>" in text
    assert 'href="panels/2-grid-rows-3-accuracy.pdf"' in written.page.read_text()


def test_panels_belong_to_a_report_of_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--panels", "--compare", "a", "b"]) == 2
    assert "--panels belongs to the report of sweeps" in capsys.readouterr().err
