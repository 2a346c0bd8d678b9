"""`spinbench exact FOLDER` where links lead nowhere, as git-annex leaves them for files that were not fetched."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import spinbench
from spinbench import cli
from spinbench.models import generators


@pytest.mark.parametrize("suffix", [".evid", ".evid.gz"])
def test_broken_links_cost_their_models_a_sentence(tmp_path: Path, suffix: str) -> None:
    """A model whose evidence is missing is not answered without it."""
    for name in ("a.uai", "b.uai"):
        spinbench.save(generators.grid(2, 2, seed=1), tmp_path / name)
    (tmp_path / f"b.uai{suffix}").symlink_to("nowhere")
    (tmp_path / "c.uai").symlink_to("nowhere")
    (tmp_path / "d.uai").symlink_to("d.uai")
    assert cli.main(["exact", str(tmp_path), "--output", str(tmp_path / "answers.csv")]) == 1
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert {name: row["status"] for name, row in rows.items()} == {
        "a.uai": "answered",
        "b.uai": "failed",
        "c.uai": "failed",
        "d.uai": "failed",
    }
    assert all(rows[name]["message"] for name in ("b.uai", "c.uai", "d.uai"))
