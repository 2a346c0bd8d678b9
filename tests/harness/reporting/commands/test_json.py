"""`--json` and `--quiet`: one document, with the names that the page has, and the same exit status."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_blocks import names_of_answers, names_off_the_page

import spinbench
from spinbench.cli import main
from spinbench.models import generators
from spinbench.reporting.commands.json_answers import NAMES

MODEL = "boltzmann/neural15"


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What a command prints, after checking that it is one line of strict JSON with the exit status in it."""
    status = main([*words, "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    content: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
    assert (content["version"], content["command"], content["exit_status"]) == (1, words[0], status)
    return content


def test_run_prints_what_python_returns(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "run", MODEL, "--budget", "400", "--backend", "numpy", "--seed", "3")["answer"]
    result = spinbench.run(spinbench.load(MODEL), "gibbs", "numpy", 400, seed=3)
    assert (answer["log_z"], answer["log_z_se"]) == (result.log_z, result.log_z_se)
    assert answer["evidence"]["log_z"]["level"] == result.evidence["log_z"].level
    columns = {name: values.tolist() for name, values in result.columns().items()}
    np.testing.assert_equal(answer["marginals"], columns)


def test_what_there_is_none_of_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zeros.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 0 0 1\n")
    answer = document(capsys, "run", str(tmp_path / "zeros.uai"), "--method", "bp", "--backend", "numpy")["answer"]
    assert answer["log_z"] == pytest.approx(math.log(2.0))
    assert answer["log_z_se"] is None


def test_names_of_other_alphabets_are_whole_in_ascii(tmp_path: Path) -> None:
    (tmp_path / "größe.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2\n1 3\n")
    words = ["-X", "utf8=0", "-m", "spinbench", "exact", str(tmp_path / "größe.uai"), "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, *words], capture_output=True, check=True, env=environment)
    assert json.loads(done.stdout.decode("ascii"))["answer"]["model"] == "größe"


def test_a_heaviest_state(capsys: pytest.CaptureFixture[str]) -> None:
    answer = document(capsys, "run", MODEL, "--method", "exact", "--backend", "numpy", "--target", "map")["answer"]
    result = spinbench.run(spinbench.load(MODEL), "exact", "numpy", target="map")
    assert (answer["best_state"], answer["best_log_weight"]) == (list(result.best_state), result.best_log_weight)
    assert answer["marginals"] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["exact", MODEL], "answer"),
        (["advise", MODEL, "--budget", "5s", "--target", "log_z"], "advice"),
        (["bracket", MODEL, "--budget", "5s"], "interval"),
        (["mixing", MODEL, "--budget", "2s"], "mixing"),
        (["list"], "list"),
    ],
)
def test_each_name_is_on_the_page(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = document(capsys, *words)
    assert part in content
    assert names_off_the_page(content) == set()


def test_the_page_explains_what_documents_hold() -> None:
    for part in NAMES:
        names = [name.removeprefix(f"{part}.") for name in names_of_answers() if name.startswith(f"{part}.")]
        assert list(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in names)) == NAMES[part].split()


def test_the_list_has_what_runs_here(capsys: pytest.CaptureFixture[str]) -> None:
    content = document(capsys, "list")["list"]
    tiers = {(pair["method"], pair["backend"]): pair["tier"] for pair in content["pairs"]}
    assert (tiers["gibbs", "numba"], tiers["exact", "numpy"]) == ("native", "native")
    assert all((pair["reason"] == "") == (pair["tier"] in ("native", "generic")) for pair in content["pairs"])
    assert MODEL in content["shipped"]
    assert set(content["written"]) < set(content["read"])
    assert content["broken"] == {}


def test_an_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "ones.npz", states=np.ones((4, 50, 15), dtype=np.int8))
    audit = document(capsys, "audit", str(tmp_path / "ones.npz"), MODEL)["audit"]
    assert not audit["passes"]
    assert any(check["fails"] for check in audit["checks"])


def test_a_refusal_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spinbench.save(generators.sherrington_kirkpatrick(100), tmp_path / "wide.npz")
    content = document(capsys, "exact", str(tmp_path / "wide.npz"))
    assert content["exit_status"] == 1
    assert "GiB is allowed" in content["message"]
    assert "answer" not in content


def test_quiet_prints_nothing_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", MODEL, "--budget", "400", "--backend", "numpy", "--output", str(tmp_path / "a.csv"), "--quiet"]
    assert main(words) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "a.csv").exists()
