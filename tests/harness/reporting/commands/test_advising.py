"""`spinbench advise`: what it prints, its exit status, and the command that runs the winner again."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import spinbench
from spinbench import cli
from spinbench.inference.advising.advice import Entry
from spinbench.inference.advising.race import Race
from spinbench.measuring.records import read_records
from spinbench.reporting.commands import advising, model_io


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model = spinbench.FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    spinbench.save(model, tmp_path / "a triple.uai")
    return tmp_path / "a triple.uai"


def test_an_exact_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", str(path), "--budget", "20s"]) == 0
    shown = capsys.readouterr().out
    pieces = ("resolved: the answer is exact", f"log Z = {np.log(36):.8g} (exact)", "spinbench.exact(model)")
    assert [piece for piece in pieces if piece not in shown] == []


def test_a_race_is_a_table_and_alone_it_is_unresolved(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.chdir(path.parent)
    words = ["advise", str(path), "--budget", "2s", "--cpu", "--candidates", "gibbs.numpy,block_gibbs.numpy"]
    assert cli.main([*words, "--records", "kept"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("unresolved: ")
    assert "gibbs.numpy" in shown.split("\n")[0]
    pieces = (
        "to try next: a budget of 8 s",
        "block_gibbs takes pairwise models",
        f"again: spinbench sweep model=file 'model.path='\"'\"'{path}",
        "burn_in=",
        "2 records: kept not in asv's history: there is no history here",
    )
    assert [piece for piece in pieces if piece not in " ".join(shown.split())] == []
    kept = {record.axes.method: record for record in read_records(Path("kept"))}
    assert {method: record.status for method, record in kept.items()} == {"gibbs": "ok", "block_gibbs": "skipped"}
    assert "takes pairwise models" in str(kept["block_gibbs"].error)
    assert kept["gibbs"]["race"]["fate"] == "won"


def test_budgets_of_the_cpu_are_said_and_recorded(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.chdir(path.parent)
    words = ["advise", str(path), "--budget", "1s", "--cpu", "--candidates", "gibbs.numpy"]
    assert cli.main([*words, "--records", "kept"]) == 1
    assert " of 1 s of the CPU" in capsys.readouterr().out
    (record,) = read_records(Path("kept"))
    assert record["config"]["budget"]["cpu"] is True
    assert cli.main(["run", str(path), "--method", "gibbs", "--backend", "numpy", "--budget", "0.1s", "--cpu"]) < 2
    assert cli.main(["bracket", str(path), "--budget", "2s", "--cpu"]) == 0
    assert "exact" in capsys.readouterr().out
    assert cli.main(["run", str(path), "--budget", "100", "--cpu"]) == 2
    assert "budget '100 cpu' is not understood" in capsys.readouterr().err


def test_an_interruption_leaves_the_best_answer_so_far(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Race, now: str) -> None:
        if self.views():
            raise KeyboardInterrupt

    monkeypatch.setattr(Race, "_tell", interrupt)
    assert cli.main(["advise", str(path), "--budget", "1min", "--candidates", "gibbs.numpy,pt.numpy"]) == 130
    shown = " ".join(capsys.readouterr().out.split())
    assert "; interrupted (" in shown
    assert "in Python: spinbench.run(model, " in shown


def test_what_happens_is_told_with_the_best_answer_so_far(path: Path) -> None:
    told: list[str] = []
    spinbench.advise(
        spinbench.load(path),
        "2 s cpu",
        "log_z",
        ["gibbs.numpy", "pt.numpy"],
        watch=lambda entrants, now: told.append(now),
    )
    assert re.search(r"; best so far: log Z = 3\.\d+ ± [\d.e-]+ \((gibbs|pt)\.numpy", told[-1])


def test_a_shipped_model_keeps_its_name(path: Path) -> None:
    assert model_io.open_model("uai14/CSP_12", None)[1] == {"model": "uai14/CSP_12"}
    model, source = model_io.open_model(str(path), None)
    assert (model.num_variables, source) == (3, {"model": "file", "model.path": str(path)})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.uai"], "nothing.uai"),
        (["uai14/CSP_12", "--budget", "soon"], "budget 'soon' is not understood"),
        (["uai14/CSP_12", "--target", "modes"], "marginals and log_z are allowed"),
        (["uai14/CSP_12", "--candidates", "gibs"], "did you mean gibbs"),
        (["uai14/CSP_12", "--records", __file__], f"the folder {__file__} cannot be written"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


LATE = "the budget was over before its turn"


def entry(name: str, runs: int, seconds: float, status: str, error: float | None, fate: str) -> Entry:
    return Entry(name, "", runs, seconds, 0, status, error, error, fate, "", "", {}, 0, None, None, False)


RACE = [
    entry("wmb.numba", 1, 2.94, "marginals too short, log Z unresolved", 3.7e30, "fell behind"),
    entry("blocks(size=4096).numba", 2, 2.78, "ok", 0.122, "won"),
    entry("pt.numba", 0, 1.2, "", None, "not ready after 1.2 s"),
    entry("smc.numba", 0, 0.0, "", None, LATE),
    entry("swendsen_wang.numba", 0, 0.0, "", None, LATE),
]


def test_numbers_and_names_stay_whole_in_80_columns_and_who_had_no_turn_is_named_once() -> None:
    output = io.StringIO()
    Console(file=output, width=80).print(advising._race_table(RACE))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    words = [" ".join(line.split()) for line in lines]
    assert "blocks(size=4096).numba 2 2.78 0.122 0.122 won" in words
    for beginning in ("wmb.numba 1 2.94 3.7e+30 3.7e+30 ", "pt.numba 0 1.20 "):
        assert any(line.startswith(beginning) for line in words)
    assert "smc" not in output.getvalue()
    assert advising._describe_idle_candidates(RACE) == [f"smc.numba, swendsen_wang.numba: {LATE}"]
