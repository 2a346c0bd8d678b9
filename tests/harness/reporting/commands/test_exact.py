"""`spinbench exact`: one model, a folder of them, and a table that a second call goes on with."""

from __future__ import annotations

import csv
import errno
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.models import generators
from spinbench.models.networks import bayesian_network
from spinbench.reporting.commands import exact_solving
from spinbench.reporting.commands.exact_solving import Question, Settings, Solved
from spinbench.reporting.commands.exact_table import COLUMNS, AnswerTable, cell

SETTINGS = Settings("auto", 1.0, 60.0, marginals=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good model, one with evidence, a broken one, one that is too wide, and one with evidence that cannot be."""
    models = tmp_path / "models"
    models.mkdir()
    rng = np.random.default_rng(5)
    factors = [((0, 1), rng.uniform(1, 3, size=(2, 3))), ((1, 2), rng.uniform(1, 3, size=(3, 2)))]
    chain = spinbench.FactorGraph.from_tables((2, 3, 2), factors)
    for name in ("a.uai", "b.uai"):
        spinbench.save(chain, models / name)
    (models / "b.uai.evid").write_text("1 1 2\n")
    (models / "c.uai").write_text("MARKOV\n2\n2 two\n")
    spinbench.save(generators.sherrington_kirkpatrick(100, seed=1), models / "d.npz")
    spinbench.save(spinbench.FactorGraph.from_tables((2, 2), [((0, 1), [[1.0, 1.0], [0.0, 0.0]])]), models / "e.uai")
    (models / "e.uai.evid").write_text("1 0 1\n")
    (models / "notes.txt").write_text("no model")
    return models


def exact(*words: object) -> int:
    return cli.main(["exact", *map(str, words)])


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_one_model_is_answered_with_how_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = spinbench.exact(spinbench.load(folder / "a.uai"), cache=False)
    assert exact(folder / "a.uai") == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"a: log Z = {answer.log_z:.10f} (exact)\nby enumeration of width 3, ")
    lines = [line.split() for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert [line[:2] for line in lines] == [[str(v), str(k)] for v, size in enumerate((2, 3, 2)) for k in range(size)]
    assert exact(folder / "a.uai", "--budget", "60s") == 0
    assert "from the cache, once found in " in capsys.readouterr().out
    assert exact(folder / "a.uai", "--no-marginals", "--solver", "bucket_tree") == 0
    shown = capsys.readouterr().out
    assert f"log Z = {answer.log_z:.10f} (exact)\nby bucket_tree of width " in shown
    assert "marginal" not in shown


def test_one_model_is_written_to_files(folder: Path, tmp_path: Path) -> None:
    words = [word for suffix in ("csv", "PR", "MAR") for word in ("--output", tmp_path / f"one.{suffix}")]
    assert exact(folder / "b.uai", "--evidence", folder / "b.uai.evid", *words) == 0
    answer = spinbench.exact(spinbench.load(folder / "b.uai", evidence=folder / "b.uai.evid"), cache=False)
    assert float((tmp_path / "one.PR").read_text().split()[1]) == answer.log_z / math.log(10)
    assert read_mar(tmp_path / "one.MAR") == [p.tolist() for p in answer.marginals]
    assert len(rows_of(tmp_path / "one.csv")) == 7


def read_mar(path: Path) -> list[list[float]]:
    word, count, *numbers = path.read_text().split()
    assert word == "MAR"
    found: list[list[float]] = []
    while numbers:
        size = int(numbers[0])
        found.append([float(number) for number in numbers[1 : size + 1]])
        numbers = numbers[size + 1 :]
    assert len(found) == int(count)
    return found


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["{}/d.npz"], 1, "GiB is allowed (max_gib) and 600 s (budget)"),
        (["{}/d.npz", "--budget", "10ms"], 1, "there was no answer within 0.01 s"),
        (["{}/c.uai"], 2, "c.uai, line 3, token 'two': a number is needed"),
        (["{}/e.uai", "--evidence", "{}/e.uai.evid"], 2, "Z = 0"),
        (["{}/a.uai", "--budget", "10"], 2, "takes a budget in seconds, and 10 samples was given"),
        (["{}/a.uai", "--max-gib", "0"], 2, "max_gib=0.0 was given"),
        (["{}/a.uai", "--solver", "torus"], 2, "the exact method 'torus' needs"),
        (["{}/a.uai", "--solver", "tortoise"], 2, "there is no exact method 'tortoise'"),
        (["{}/a.uai", "--output", "a.MPE"], 2, ".MAR, .PR, .csv are the suffixes"),
        (["{}/a.uai", "--jobs", "2"], 2, "belong to a folder"),
        (["{}", "--jobs", "0"], 2, "--jobs 0 was given"),
        (["{}", "--evidence", "a.evid"], 2, "--evidence belongs to one model"),
        (["{}", "--output", "a.PR"], 2, ".csv are the suffixes"),
        (["{}", "--output", "{}/c.uai.csv", "--output", "b.csv"], 2, "--output was given 2 times"),
        (["nowhere"], 2, "no file or shipped model is named 'nowhere'"),
        (["{}/.."], 2, "holds no models; files that end in "),
    ],
)
def test_what_is_refused_is_one_sentence(
    folder: Path, words: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exact(*(word.format(folder) for word in words)) == status
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("spinbench: ")
    assert error.count("\n") == 1


def test_a_folder_is_answered_file_by_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, results = tmp_path / "answers.csv", tmp_path / "results"
    words = (folder, "--budget", "60s", "--max-gib", 1, "--output", table, "--uai-results", results, "--jobs", 2)
    assert exact(*words) == 1
    shown = capsys.readouterr().out
    assert "[5/5] " in shown
    assert "2 of 5 answered, 1 refused, 2 failed" in shown
    rows = {row["model"]: row for row in rows_of(table)}
    assert {name: row["status"] for name, row in rows.items()} == {
        "a.uai": "answered",
        "b.uai": "answered",
        "c.uai": "failed",
        "d.npz": "refused",
        "e.uai": "failed",
    }
    assert rows["c.uai"]["message"] == "c.uai, line 3, token 'two': a number is needed"
    assert rows["d.npz"]["message"].endswith("GiB is allowed (max_gib) and 60 s (budget)")
    assert "Z = 0" in rows["e.uai"]["message"]
    for name in ("a.uai", "b.uai"):
        evidence = folder / f"{name}.evid"
        model = spinbench.load(folder / name, evidence=evidence if evidence.exists() else None)
        answer = spinbench.exact(model, cache=False)
        assert float(rows[name]["log_z"]) == answer.log_z
        assert float((results / f"{name}.PR").read_text().split()[1]) == float(rows[name]["log10_z"])
        assert read_mar(results / f"{name}.MAR") == [p.tolist() for p in answer.marginals]
        assert (rows[name]["marginals"], rows[name]["solver"]) == ("all", "enumeration")
    assert len(list(results.iterdir())) == 4

    assert exact(*words) == 1
    shown = capsys.readouterr().out
    assert "2 of 5 answered before\n1 refused before, with no less time and memory" in shown
    assert "[2/2] " in shown
    assert [row["model"] for row in rows_of(table)].count("c.uai") == 1
    (results / "a.uai.PR").unlink()
    spinbench.save(spinbench.FactorGraph.from_tables((2,), [((0,), [1.0, 2.0])]), folder / "c.uai")
    assert exact(*words, "--max-gib", "2") == 1
    shown = capsys.readouterr().out
    assert "1 of 5 answered before\n[" in shown
    assert "3 of 5 answered, 1 refused, 1 failed" in shown
    assert (results / "a.uai.PR").exists()
    assert {row["max_gib"] for row in rows_of(table) if row["model"] == "d.npz"} == {"2.0"}


def test_marginals_out_of_reach_are_said_and_make_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, table, results = tmp_path / "models", tmp_path / "answers.csv", tmp_path / "results"
    models.mkdir()
    spinbench.save(bayesian_network(layers=4, width=40, parents=3, observed=0, seed=1), models / "net.npz")
    words = (models, "--max-gib", 2**-17, "--output", table, "--uai-results", results)
    assert exact(*words) == 0
    assert ", some marginals out of reach" in capsys.readouterr().out
    assert [row["marginals"] for row in rows_of(table)] == ["some"]
    assert [path.name for path in results.iterdir()] == ["net.npz.PR"]
    assert exact(*words) == 0
    assert "1 of 1 answered before" in capsys.readouterr().out
    assert exact(*words, "--max-gib", 1) == 0
    assert [row["marginals"] for row in rows_of(table)] == ["all"]
    assert (results / "net.npz.MAR").exists()


def test_what_took_too_long_is_tried_again_with_more_time(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (folder, "--output", tmp_path / "answers.csv", "--budget")
    assert exact(*words, "1ms") == 1
    shown = capsys.readouterr().out
    assert re.search(r"a\.uai: timeout after \d+\.\d s: there was no answer within 0\.001 s", shown)
    assert exact(*words, "0.5ms") == 1
    assert capsys.readouterr().out.startswith("5 timeout before, with no less time and memory; a larger --budget or ")
    assert exact(*words, "1min") == 1
    assert "2 of 5 answered, 1 refused, 2 failed" in capsys.readouterr().out
    assert len(rows_of(tmp_path / "answers.csv")) == 5


def test_a_run_that_is_killed_keeps_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, table = tmp_path / "models", tmp_path / "answers.csv"
    models.mkdir()
    for k in range(20):
        spinbench.save(generators.grid(3, 3, seed=k), models / f"{k:02}.npz")
    words = [sys.executable, "-m", "spinbench", "exact", str(models), "--output", str(table)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("[ 1/20] 00.npz: log Z = ")
        process.send_signal(signal.SIGKILL)
    kept = rows_of(table)
    assert 1 <= len(kept) < 20
    with table.open("a") as file:
        file.write("19.npz,,answered,3.0,1.3")  # as if it had been killed within a line
    assert exact(models, "--output", table) == 0
    assert capsys.readouterr().out.startswith(f"{len(kept)} of 20 answered before\n")
    rows = rows_of(table)
    assert rows[: len(kept)] == kept
    assert [row["model"] for row in rows] == [f"{k:02}.npz" for k in range(20)]
    assert {row["status"] for row in rows} == {"answered"}


def test_an_interruption_ends_at_once_and_keeps_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = AnswerTable.append

    def interrupt_at_the_second(table: AnswerTable, row: dict[str, str]) -> None:
        if row["model"] != "a.uai":
            raise KeyboardInterrupt
        write(table, row)

    monkeypatch.setattr(AnswerTable, "append", interrupt_at_the_second)
    assert exact(folder, "--output", tmp_path / "answers.csv") == 130
    assert [row["model"] for row in rows_of(tmp_path / "answers.csv")] == ["a.uai"]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL, perhaps by the system for want of memory"),
        (lambda: os._exit(3), "its process ended with exit status 3"),
        (lambda: np.empty(2**57), "out of memory"),
        (lambda: {}["key"], "KeyError: 'key'"),
    ],
)
def test_a_process_that_dies_costs_its_own_model(
    work: Callable[[], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve(question: Question) -> Iterator[Solved]:
        work()
        yield from ()

    monkeypatch.setattr(exact_solving, "_solve", solve)
    questions = {"one": Question("one", None, SETTINGS)}
    (outcome,) = (outcome for _, _, outcome in exact_solving.solve_side_by_side(questions, 1) if outcome is not None)
    assert outcome.status == "failed"
    assert message in outcome.message


@pytest.mark.parametrize("name", ["=cmd()", "a\nb", "\x1b[31mred", "-x", 'ü,"q"', "'=1", "\udcff"])
def test_strange_names_break_neither_terminal_nor_table(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models, table = tmp_path / "models", tmp_path / "answers.csv"
    models.mkdir()
    spinbench.save(generators.grid(2, 2, seed=1), tmp_path / "plain.npz")
    try:
        (models / f"{name}.npz").write_bytes((tmp_path / "plain.npz").read_bytes())
    except OSError as error:
        if error.errno in (errno.EILSEQ, errno.EINVAL):
            pytest.skip("no file can have this name here")
        raise
    assert exact(models, "--output", table) == 0
    assert exact(models, "--output", table) == 0
    shown = capsys.readouterr().out
    assert "1 of 1 answered before" in shown
    assert "\x1b" not in shown
    (row,) = rows_of(table)
    assert row["model"] == cell(f"{name}.npz")
    assert row["model"].isprintable()
    assert not row["model"].startswith(("=", "+", "-", "@"))
    assert table.read_text().count("\n") == 2


def test_different_names_are_different_cells() -> None:
    names = ["a\nb", "a\\nb", "=a", "'=a", "''=a", "\\'=a", "a\\", "a\\\\"]
    assert len({cell(name) for name in names}) == len(names)


def test_a_table_of_others_stays_as_it_is(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"model,answer\na,42", b"\xff\xfe", ",".join(COLUMNS).encode()[:-3] + b"x"):
        (tmp_path / "other.csv").write_bytes(content)
        assert exact(folder, "--output", tmp_path / "other.csv") == 2
        assert "this is no table of exact answers; name another file" in capsys.readouterr().err
        assert (tmp_path / "other.csv").read_bytes() == content


def test_two_runs_do_not_share_a_table(folder: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "spinbench", "exact", str(folder), "--output", str(tmp_path / "answers.csv")]
    with AnswerTable(tmp_path / "answers.csv"):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "another run writes to this file" in done.stderr


def test_an_answer_stays_where_a_later_try_has_none(tmp_path: Path) -> None:
    row = {**dict.fromkeys(COLUMNS, ""), "model": "a", "status": "answered", "log_z": "1.5"}
    for _ in range(2):
        with AnswerTable(tmp_path / "answers.csv") as table:
            table.append(row)
            table.append({**row, "status": "timeout", "log_z": ""})
        assert rows_of(tmp_path / "answers.csv") == [row]


def test_a_full_disk_is_one_sentence_and_leaves_whole_rows(
    small_disk: Callable[[str], Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = small_disk("64k")
    table = disk / "answers.csv"
    AnswerTable(table)
    header = table.read_bytes()
    table.write_bytes(before := header + b"\n" * (4096 - len(header) - 20))  # on whose page half a row has room
    with pytest.raises(OSError, match="No space"):
        (disk / "fill").write_bytes(bytes(2**20))
    assert exact(folder, "--output", table) == 2
    error = capsys.readouterr().err
    assert error == f"spinbench: {table}: the file cannot be written (No space left on device)\n"
    assert table.read_bytes() == before
