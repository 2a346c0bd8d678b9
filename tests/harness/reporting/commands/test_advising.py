"""`spinbench advise`: what it prints, its exit status, and the command that runs the winner again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.measuring.records import read_records
from spinbench.reporting.commands import running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model = spinbench.FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    spinbench.save(model, tmp_path / "a triple.uai")
    return tmp_path / "a triple.uai"


def test_an_exact_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", str(path), "--budget", "20s"]) == 0
    shown = capsys.readouterr().out
    assert "resolved: the answer is exact" in shown
    assert f"log Z = {np.log(36):.8g} (exact)" in shown
    assert "spinbench.exact(model)" in shown


def test_a_folder_that_cannot_be_written_is_said_before_the_race(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["advise", str(path), "--records", str(path)]) == 2
    assert f"the folder {path} cannot be written" in capsys.readouterr().err


def test_a_race_is_a_table_and_alone_it_is_unresolved(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.chdir(path.parent)
    words = ["advise", str(path), "--budget", "6s", "--candidates", "gibbs.numpy,block_gibbs.numpy"]
    assert cli.main([*words, "--records", "kept"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("unresolved: ")
    assert "gibbs.numpy" in shown.split("\n")[0]
    assert "to try next: a budget of 24 s" in shown
    assert "block_gibbs takes pairwise models" in " ".join(shown.split())
    assert f"again: spinbench sweep model=file 'model.path='\"'\"'{path}" in shown
    assert "burn_in=" in shown
    assert "2 records: kept\nnot in asv's history: there is no history here" in shown
    kept = {record["axes"]["method"]: record for record in read_records(Path("kept"))}
    assert {method: record["status"] for method, record in kept.items()} == {"gibbs": "ok", "block_gibbs": "skipped"}
    assert "takes pairwise models" in kept["block_gibbs"]["error"]
    assert kept["gibbs"]["race"]["fate"] == "won"


def test_a_shipped_model_keeps_its_name(path: Path) -> None:
    assert running.open_model("uai14/CSP_12", None)[1] == {"model": "uai14/CSP_12"}
    model, source = running.open_model(str(path), None)
    assert (model.num_variables, source) == (3, {"model": "file", "model.path": str(path)})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.uai"], "nothing.uai"),
        (["uai14/CSP_12", "--budget", "soon"], "budget 'soon' is not understood"),
        (["uai14/CSP_12", "--target", "modes"], "marginals and log_z are allowed"),
        (["uai14/CSP_12", "--candidates", "gibs"], "did you mean gibbs"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
