"""`spinbench run`: the answer of one method on one model, its exit status, its files, and methods from files."""

from __future__ import annotations

import csv
from pathlib import Path

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    factors = [((0, 1), rng.uniform(1, 3, size=(2, 3))), ((1, 2), rng.uniform(1, 3, size=(3, 2)))]
    spinbench.save(spinbench.FactorGraph.from_tables((2, 3, 2), factors, name="chain"), tmp_path / "chain.uai")
    return tmp_path / "chain.uai"


def run(*words: object) -> int:
    return cli.main(["run", *map(str, words)])


def test_an_answer_is_printed_with_its_verdict(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    words = (path, "--backend", "numpy", "--budget", 400, "--chains", 8, "--set", "scan=random")
    assert run(*words) == 0
    shown = capsys.readouterr().out
    result = spinbench.run(spinbench.load(path), "gibbs", "numpy", 400, chains=8, scan="random")
    assert shown.startswith("chain: ok\n")
    assert f"log Z = {result.log_z:.8g} ± {result.log_z_se:.2g} (estimate)" in shown
    assert "400 samples x 8 chains" in shown
    assert abs(result.log_z - exact.log_z) < 6 * result.log_z_se
    lines = [line.split() for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert [line[:2] for line in lines] == [[str(v), str(k)] for v, size in enumerate((2, 3, 2)) for k in range(size)]


def test_what_is_doubted_is_an_exit_status(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "--backend", "numpy", "--budget", 4, "--chains", 1) == 1
    assert capsys.readouterr().out.startswith("chain: marginals ")


def test_a_tolerance_that_is_not_reached_is_an_exit_status(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (path, "--backend", "numpy", "--budget", 2000)
    assert run(*words, "--until", "log_z_se<0.1") == 0
    assert "log_z_se<0.1 was reached: " in capsys.readouterr().out
    assert run(*words, "--until", "se<1e-6") == 1
    assert "se<1e-06 was not reached: " in capsys.readouterr().out


def test_answers_are_written_as_the_suffix_says(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    outputs = [tmp_path / name for name in ("chain.uai.MAR", "chain.uai.PR", "chain.csv")]
    assert run(path, "--method", "exact", *(word for output in outputs for word in ("--output", output))) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("written: ")]
    head, *numbers = outputs[0].read_text().split()
    assert head == "MAR"
    assert numbers[0] == "3"
    rest = [float(number) for number in numbers[1:]]
    assert rest == [x for p in exact.marginals for x in (float(len(p)), *p.tolist())]
    assert outputs[1].read_text().split()[0] == "PR"
    assert float(outputs[1].read_text().split()[1]) * np.log(10) == pytest.approx(exact.log_z, rel=1e-15)
    with outputs[2].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["marginal"]) for row in rows] == np.concatenate(exact.marginals).tolist()


@pytest.mark.parametrize(("method", "said"), [("gibbs", "of 8 annealings ended in"), ("exact", "(exact)")])
def test_the_heaviest_state_is_printed_and_written(
    path: Path, tmp_path: Path, method: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (path, "--target", "map", "--backend", "numpy", "--budget", 100, "--chains", 8, "--method", method)
    best = spinbench.exact(spinbench.load(path), cache=False)
    assert run(*words) == 0
    shown = capsys.readouterr().out
    assert f"heaviest state: log weight {best.best_log_weight:.8g}" in shown
    assert said in shown
    assert f"states {' '.join(map(str, best.best_state))}" in shown
    assert run(*words, "--output", tmp_path / "chain.MPE") == 0
    assert (tmp_path / "chain.MPE").read_text() == f"MPE\n3 {' '.join(map(str, best.best_state))}\n"


def test_observed_variables_are_among_the_answers(path: Path, tmp_path: Path) -> None:
    (tmp_path / "chain.evid").write_text("1 1 2\n")
    assert run(path, "--evidence", tmp_path / "chain.evid", "--method", "exact", "--output", tmp_path / "a.MAR") == 0
    numbers = [float(number) for number in (tmp_path / "a.MAR").read_text().split()[1:]]
    exact = spinbench.exact(spinbench.load(path, evidence={1: 2}), cache=False)
    assert numbers[:4] == [3.0, 2.0, *exact.marginals[0].tolist()]
    assert numbers[4:8] == [3.0, 0.0, 0.0, 1.0]


def test_binary_marginals_have_both_states(tmp_path: Path) -> None:
    model = spinbench.PairwiseModel.from_spins(np.array([0.3, 0.0]), np.array([[0, 1]]), np.array([0.5]), name="pair")
    exact = spinbench.exact(model, cache=False)
    exact.save(tmp_path / "pair.MAR")
    p = exact.marginals
    assert np.fromstring((tmp_path / "pair.MAR").read_text().split("\n")[1], sep=" ") == pytest.approx(
        [2, 2, 1 - p[0], p[0], 2, 1 - p[1], p[1]], abs=1e-15
    )


@pytest.mark.parametrize("name", ["my_method.py", "numpy.py"])
def test_a_method_from_a_file(path: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(METHOD)
    assert run(path, "--method", tmp_path / name, "--backend", "numpy", "--budget", 400, "--set", "scan=raster") == 0
    assert "by mine on numpy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--output", "x.txt"], "--output x.txt was given; .MAR, .PR, .MPE, .csv are the suffixes that are allowed"),
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
        (
            ["--method", "mf", "--output", "no/folder.csv", "--backend", "numpy"],
            "there is no such folder",
        ),
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
    assert run(path, "--backend", "numpy", "--budget", 10, *words) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = 1", "defines none; one method is needed"),
        (PLAIN, "Plain was given, which is no dataclass"),
        (f"{METHOD}\nclass Other(Mine):\n    name = 'other'\n", "defines Mine, Other; one method is needed"),
    ],
)
def test_a_file_that_is_no_method(
    path: Path, tmp_path: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong_method.py").write_text(text)
    assert run(path, "--method", tmp_path / "wrong_method.py", "--backend", "numpy") == cli.USER_ERROR
    assert sentence in capsys.readouterr().err
