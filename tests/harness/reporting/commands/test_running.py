"""`spinbench run`: the answer of one method on one model, its exit status, its files, and methods from files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench import cli

METHOD = '''
from __future__ import annotations

from dataclasses import dataclass

from spinbench.methods.gibbs.gibbs import Gibbs


@dataclass(frozen=True)
class Mine(Gibbs):
    """Gibbs sampling under another name."""

    name = "mine"
'''

PLAIN = '''
from spinbench.api import Method


class Plain(Method):
    """Nothing that runs."""

    name = summary = "plain"
'''


FILES = {
    "divides.py": "1 / 0",
    "empty.py": "x = 1",
    "plain.py": PLAIN,
    "two.py": f"{METHOD}\nclass Other(Mine):\n    name = 'other'\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    factors = [((0, 1), rng.uniform(1, 3, size=(2, 3))), ((1, 2), rng.uniform(1, 3, size=(3, 2)))]
    spinbench.save(spinbench.FactorGraph.from_tables((2, 3, 2), factors, name="chain"), tmp_path / "chain.uai")
    return tmp_path / "chain.uai"


def run(*words: object) -> int:
    return cli.main(["run", *map(str, words)])


QUICK = ("--backend", "numpy", "--budget", 2000)


def test_an_answer_is_printed_with_its_verdict(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    assert run(path, "--backend", "numpy", "--budget", 400, "--chains", 8, "--set", "scan=random") == 0
    shown = capsys.readouterr().out
    result = spinbench.run(spinbench.load(path), "gibbs", "numpy", 400, chains=8, scan="random")
    assert shown.startswith("chain: ok\n")
    assert f"log Z = {result.log_z:.8g} ± {result.log_z_se:.2g} (estimate)" in shown
    assert "400 samples x 8 chains" in shown
    assert abs(result.log_z - exact.log_z) < 6 * result.log_z_se
    lines = [line.split() for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert [line[:2] for line in lines] == [[str(v), str(k)] for v, size in enumerate((2, 3, 2)) for k in range(size)]


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--backend", "numpy", "--budget", 4, "--chains", 1), 1, "chain: marginals "),
        ((*QUICK, "--until", "log_z_se<0.1"), 0, "log_z_se<0.1 was reached: "),
        ((*QUICK, "--until", "se<1e-6"), 1, "se<1e-06 was not reached: "),
    ],
    ids=["what is doubted", "a tolerance that is reached", "one that is not"],
)
def test_verdicts_and_tolerances_are_an_exit_status(
    path: Path, words: tuple[object, ...], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(path, *words) == status
    assert sentence in capsys.readouterr().out


def test_evidence_beside_a_model_is_named_where_it_is_not_read(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beside = path.with_name("chain.uai.evid")
    beside.write_text("1 0 1")
    assert run(path, *QUICK) == run(path, *QUICK, "--evidence", beside) == 0
    assert capsys.readouterr().err.count(f"{beside} is there and is not read") == 1


def numbers_of(path: Path) -> list[float]:
    """Of a .MAR file, behind its heading."""
    head, *numbers = path.read_text().split()
    assert head == "MAR"
    return [float(number) for number in numbers]


def flat(marginals: Any) -> list[float]:
    """As a .MAR file has them."""
    return [float(len(marginals)), *(x for p in marginals for x in (float(len(p)), *p))]


def test_answers_are_written_as_the_suffix_says(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    mar, pr, table = (tmp_path / name for name in ("chain.uai.MAR", "chain.uai.PR", "chain.csv"))
    assert run(path, "--method", "exact", "--output", mar, "--output", pr, "--output", table) == 0
    assert capsys.readouterr().out.count("\nwritten: ") == 3
    assert numbers_of(mar) == flat([p.tolist() for p in exact.marginals])
    word, value = pr.read_text().split()
    assert (word, float(value) * np.log(10)) == ("PR", pytest.approx(exact.log_z, rel=1e-15))
    with table.open(newline="") as file:
        written = [float(row["marginal"]) for row in csv.DictReader(file)]
    assert written == np.concatenate(exact.marginals).tolist()
    (tmp_path / "chain.evid").write_text("1 1 2\n")
    assert run(path, "--evidence", tmp_path / "chain.evid", "--method", "exact", "--output", mar) == 0
    exact = spinbench.exact(spinbench.load(path, evidence={1: 2}), cache=False)
    assert numbers_of(mar)[:8] == [3.0, 2.0, *exact.marginals[0].tolist(), 3.0, 0.0, 0.0, 1.0], "what is observed, too"


def test_binary_marginals_have_both_states(tmp_path: Path) -> None:
    model = spinbench.PairwiseModel.from_spins(np.array([0.3, 0.0]), np.array([[0, 1]]), np.array([0.5]), name="pair")
    exact = spinbench.exact(model, cache=False)
    exact.save(tmp_path / "pair.MAR")
    assert numbers_of(tmp_path / "pair.MAR") == pytest.approx(flat([[1 - p, p] for p in exact.marginals]), abs=1e-15)


@pytest.mark.parametrize(("method", "said"), [("gibbs", "of 8 annealings ended in"), ("exact", "(exact)")])
def test_the_heaviest_state_is_printed_and_written(
    path: Path, tmp_path: Path, method: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (path, "--target", "map", "--backend", "numpy", "--budget", 100, "--chains", 8, "--method", method)
    best = spinbench.exact(spinbench.load(path), cache=False)
    state = " ".join(map(str, best.best_state))
    assert run(*words) == run(*words, "--output", tmp_path / "chain.MPE") == 0
    shown = capsys.readouterr().out
    pieces = (f"heaviest state: log weight {best.best_log_weight:.8g}", said, f"states {state}")
    assert [piece for piece in pieces if piece not in shown] == []
    assert (tmp_path / "chain.MPE").read_text() == f"MPE\n3 {state}\n"


@pytest.mark.parametrize("name", ["my_method.py", "numpy.py"])
def test_a_method_from_a_file(path: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(METHOD)
    assert run(path, "--method", tmp_path / name, "--backend", "numpy", "--budget", 400, "--set", "scan=raster") == 0
    assert "by mine on numpy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--output", "x.txt"], "--output x.txt was given; the suffix has to be .MAR or .PR or .MPE or .csv"),
        (["--set", "scan"], "--set scan was given; NAME=VALUE is needed"),
        (["--set", "scan=raster", "--set", "scan=random"], "--set scan=random was given, and scan before; once"),
        (["--set", "scan=snake"], "snake"),
        (["--method", "gibs"], "gibs"),
        (["--backend", "nump"], "nump"),
        (["--budget", "soon"], "budget 'soon' is not understood"),
        (["--chains", "0"], "chains=0 was given"),
        (["--until", "soon"], "until='soon' was given; 'se<0.01' or 'log_z_se<0.1', say, is needed"),
        (["--precision", "float16"], "float16"),
        (["--method", "nowhere.py"], "method 'nowhere.py' was given; there is no such file"),
        (["--method", "mf", "--output", "no/folder.csv"], "there is no such folder"),
        (["--method", "divides.py"], "ZeroDivisionError: division by zero"),
        (["--method", "empty.py"], "defines none; one method is needed"),
        (["--method", "plain.py"], "Plain was given, which is no dataclass"),
        (["--method", "two.py"], "defines Mine, Other; one method is needed"),
    ],
)
def test_mistakes_are_one_sentence(
    path: Path,
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert run(path, "--backend", "numpy", "--budget", 10, *words) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
