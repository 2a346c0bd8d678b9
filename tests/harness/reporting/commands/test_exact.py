"""`spinbench exact`: one model, a folder of them, a table that a second call goes on with, and orders in files."""

from __future__ import annotations

import contextlib
import csv
import gzip
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.foundation.remarks import escape_cell
from spinbench.models import generators
from spinbench.models.networks import bayesian_network
from spinbench.reporting.commands import exact_solving
from spinbench.reporting.commands.exact_solving import Question, Settings, Solved
from spinbench.reporting.commands.exact_table import COLUMNS, AnswerTable

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


def run(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spinbench", "exact", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_one_model_is_answered_with_how_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = spinbench.exact(spinbench.load(folder / "a.uai"), cache=False)
    steps = [
        ((), f"a: log Z = {answer.log_z:.10f} (exact)\nby enumeration of width 3, ", True),
        (("--budget", "60s"), "from the cache, once found in ", True),
        (
            ("--no-marginals", "--solver", "bucket_tree"),
            f"{answer.log_z:.10f} (exact)\nby bucket_tree of width ",
            False,
        ),
    ]
    for words, sentence, marginals in steps:
        assert exact(folder / "a.uai", *words) == 0
        shown = capsys.readouterr().out
        assert sentence in shown
        lines = [line.split()[:2] for line in shown.splitlines() if line.strip()[:1].isdigit()]
        states = [[str(v), str(k)] for v, size in enumerate((2, 3, 2)) for k in range(size)]
        assert lines == (states if marginals else [])


def test_one_model_is_written_to_files(folder: Path, tmp_path: Path) -> None:
    words = [word for suffix in ("csv", "PR", "MAR") for word in ("--output", tmp_path / f"one.{suffix}")]
    assert exact(folder / "b.uai", "--evidence", folder / "b.uai.evid", *words) == 0
    assert_written(folder / "b.uai", tmp_path / "one")
    assert len(rows_of(tmp_path / "one.csv")) == 7


def assert_written(model: Path, stem: Path) -> float:
    """That files beside each other hold a model's answer in the formats of the UAI competitions; log Z."""
    evidence = model.with_name(f"{model.name}.evid")
    answer = spinbench.exact(spinbench.load(model, evidence=evidence if evidence.exists() else None), cache=False)
    assert float(Path(f"{stem}.PR").read_text().split()[1]) == answer.log_z / math.log(10)
    word, *numbers = Path(f"{stem}.MAR").read_text().split()
    parts = [float(x) for p in answer.marginals for x in (len(p), *p.tolist())]
    assert (word, [float(number) for number in numbers]) == ("MAR", [float(len(answer.marginals)), *parts])
    return float(answer.log_z)


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["{}/d.npz"], 1, "GiB is allowed (max_gib) and 600 s (budget)"),
        (["{}/d.npz"], 1, "d.npz bounds log Z"),
        (["{}/d.npz", "--budget", "10ms"], 1, "there was no answer within 0.01 s"),
        (["{}/c.uai"], 2, "c.uai, line 3, token 'two': a number is needed"),
        (["{}/e.uai", "--evidence", "{}/e.uai.evid"], 2, "Z = 0"),
        (["{}/a.uai", "--budget", "10"], 2, "takes a budget in seconds of wall-clock, and 10 samples was given"),
        (["{}/a.uai", "--max-gib", "0"], 2, "max_gib=0.0 was given"),
        (["{}/a.uai", "--solver", "torus"], 2, "the exact method 'torus' needs"),
        (["{}/a.uai", "--solver", "tortoise"], 2, "no exact method is named 'tortoise'; did you mean torus?"),
        (
            ["{}/a.uai", "--solver", "curie_weiss"],
            2,
            "no exact method is named 'curie_weiss' any more; exchangeable",
        ),
        (["{}/a.uai", "--output", "a.MPE"], 2, "the suffix has to be .MAR or .PR or .csv or .order"),
        (["{}/a.uai", "--jobs", "2"], 2, "belong to a folder"),
        (["{}", "--jobs", "0"], 2, "--jobs 0 was given"),
        (["{}", "--evidence", "a.evid"], 2, "--evidence belongs to one model"),
        (["{}", "--output", "a.PR"], 2, "the suffix has to be .csv"),
        (["{}", "--output", "{}/c.uai.csv", "--output", "b.csv"], 2, "--output was given 2 times"),
        (["nowhere"], 2, "no file or model is named 'nowhere'"),
        ([""], 2, "this is a folder; a model file is needed"),
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
    assert re.search(r"\[5/5\] .*2 of 5 answered, 1 refused, 2 failed", *spoken(capsys))
    rows = {row["model"]: row for row in rows_of(table)}
    outcomes = {"a.uai": "answered", "b.uai": "answered", "c.uai": "failed", "d.npz": "refused", "e.uai": "failed"}
    assert {name: row["status"] for name, row in rows.items()} == outcomes
    assert rows["c.uai"]["message"] == "c.uai, line 3, token 'two': a number is needed"
    assert rows["d.npz"]["message"].endswith("GiB is allowed (max_gib) and 60 s (budget)")
    assert "Z = 0" in rows["e.uai"]["message"]
    for name in ("a.uai", "b.uai"):
        assert float(rows[name]["log_z"]) == assert_written(folder / name, results / name)
        assert (rows[name]["marginals"], rows[name]["solver"]) == ("all", "enumeration")
    assert len(list(results.iterdir())) == 4

    assert exact(*words) == 1
    assert re.search(r"2 of 5 answered before\n1 refused before, with no less time.*\[2/2\] ", *spoken(capsys))
    assert [row["model"] for row in rows_of(table)].count("c.uai") == 1
    (results / "a.uai.PR").unlink()
    spinbench.save(spinbench.FactorGraph.from_tables((2,), [((0,), [1.0, 2.0])]), folder / "c.uai")
    assert exact(*words, "--max-gib", "2") == 1
    assert re.search(r"1 of 5 answered before\n\[.*3 of 5 answered, 1 refused, 1 failed", *spoken(capsys))
    assert (results / "a.uai.PR").exists()
    assert {row["max_gib"] for row in rows_of(table) if row["model"] == "d.npz"} == {"2.0"}


def spoken(capsys: pytest.CaptureFixture[str]) -> tuple[str, re.RegexFlag]:
    """What was printed, for expressions whose dots stand for lines, too."""
    return capsys.readouterr().out, re.DOTALL


def test_marginals_out_of_reach_are_said_and_make_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, table, results = tmp_path / "models", tmp_path / "answers.csv", tmp_path / "results"
    models.mkdir()
    spinbench.save(bayesian_network(layers=3, width=20, parents=3, observed=0, seed=1), models / "net.npz")
    words = (models, "--max-gib", 2**-22, "--output", table, "--uai-results", results)
    steps = [
        ((), ", some marginals out of reach", "some", ["net.npz.PR"]),
        ((), "1 of 1 answered before", "some", ["net.npz.PR"]),
        (("--max-gib", 1), "1 of 1 answered", "all", ["net.npz.MAR", "net.npz.PR"]),
    ]
    for more, sentence, marginals, files in steps:
        assert exact(*words, *more) == 0
        assert sentence in capsys.readouterr().out
        assert [row["marginals"] for row in rows_of(table)] == [marginals]
        assert sorted(path.name for path in results.iterdir()) == files


def test_what_took_too_long_is_tried_again_with_more_time(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (folder, "--output", tmp_path / "answers.csv", "--budget")
    steps = [
        ("0.001ms", r"a\.uai: timeout after \d+\.\d s: there was no answer within 1e-06 s"),
        ("0.0005ms", "^5 timeout before, with no less time and memory; a larger --budget or "),
        ("1min", "2 of 5 answered, 1 refused, 2 failed"),
    ]
    for budget, sentence in steps:
        assert exact(*words, budget) == 1
        assert re.search(sentence, capsys.readouterr().out)
    assert len(rows_of(tmp_path / "answers.csv")) == 5


def test_a_run_that_is_killed_keeps_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, table = tmp_path / "models", tmp_path / "answers.csv"
    models.mkdir()
    for k in range(20):
        spinbench.save(generators.grid(3, 3, seed=k), models / f"{k:02}.npz")
    with run(models, "--output", table) as process:
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

    monkeypatch.setattr(exact_solving, "_solve_question", solve)
    questions = {"one": Question("one", None, SETTINGS)}
    (outcome,) = (outcome for _, _, outcome in exact_solving.poll_side_by_side(questions, 1) if outcome is not None)
    assert outcome.status == "failed"
    assert message in outcome.message


def test_strange_names_break_neither_terminal_nor_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, table = tmp_path / "models", tmp_path / "answers.csv"
    models.mkdir()
    for name in ("=cmd()", "a\nb", "\x1b[31mred", "-x", 'ü,"q"', "'=1", "\udcff"):
        with contextlib.suppress(OSError):  # no file can have this name here
            spinbench.save(generators.grid(2, 2, seed=1), models / f"{name}.npz")
    names = [path.name for path in models.iterdir()]
    assert len(names) > 3
    assert exact(models, "--output", table) == exact(models, "--output", table) == 0
    shown = capsys.readouterr().out
    assert f"{len(names)} of {len(names)} answered before" in shown
    assert "\x1b" not in shown
    cells = [row["model"] for row in rows_of(table)]
    assert sorted(cells) == sorted(map(escape_cell, names))
    assert all(one.isprintable() and not one.startswith(("=", "+", "-", "@")) for one in cells)
    assert table.read_text().count("\n") == 1 + len(names)
    names = ["a\nb", "a\\nb", "=a", "'=a", "''=a", "\\'=a", "a\\", "a\\\\"]
    assert len({escape_cell(name) for name in names}) == len(names), "different names are different cells"


def test_a_table_of_others_stays_as_it_is(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"model,answer\na,42", b"\xff\xfe", ",".join(COLUMNS).encode()[:-3] + b"x"):
        (tmp_path / "other.csv").write_bytes(content)
        assert exact(folder, "--output", tmp_path / "other.csv") == 2
        assert "this is no table of exact answers; name another file" in capsys.readouterr().err
        assert (tmp_path / "other.csv").read_bytes() == content


def test_two_runs_do_not_share_a_table(folder: Path, tmp_path: Path) -> None:
    with AnswerTable(tmp_path / "answers.csv"), run(folder, "--output", tmp_path / "answers.csv") as process:
        _, error = process.communicate()
    assert process.returncode == 2
    assert "another run writes to this file" in error


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
    table.unlink()
    with pytest.raises(OSError, match="No space"):
        (disk / "rest").write_bytes(bytes(2**20))
    assert exact(folder, "--output", table) == 2
    assert not table.exists()


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Models of 40 variables, the second with names, a small one, and files that are no orders."""
    spinbench.save(generators.random_regular(40, 3, seed=1), tmp_path / "regular.npz")
    spinbench.save(generators.random_regular(4, 3, seed=1), tmp_path / "small.npz")
    names = [f"site{v}" for v in range(40)]
    spinbench.save(replace(generators.random_regular(40, 3, seed=2), labels=tuple(names)), tmp_path / "named.npz")
    (tmp_path / "names.order").write_text(", ".join(names[::-1]))
    (tmp_path / "short.order").write_text("0 1 2\n")
    (tmp_path / "twice.order").write_text(" ".join(map(str, [*range(40), 0])))
    (tmp_path / "words.order").write_text("0 one\n")
    (tmp_path / "bytes.order").write_bytes(b"\xff")
    return tmp_path


def test_the_order_that_was_used_is_written_and_repeats(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again = orders / "first.order", orders / "again.order"
    assert exact(orders / "regular.npz", "--output", first) == 0
    reverse = list(map(int, first.read_text().split()))[::-1]
    (orders / "reverse.order").write_text(",\n".join(map(str, reverse)))
    for path in (first, orders / "reverse.order"):
        assert exact(orders / "regular.npz", "--order", path, "--output", again) == 0
        assert again.read_text().split() == path.read_text().replace(",", " ").split()
    assert capsys.readouterr().out.count("written: ") == 3


def test_numbers_may_be_labels(orders: Path) -> None:
    (orders / "m.cnf").write_text("p cnf 3 2\n1 2 0\n2 3 0\n")
    (orders / "labels.order").write_text("3 1 2\n")
    words = ("--solver", "bucket_tree", "--order", orders / "labels.order", "--output", orders / "used.order")
    assert exact(orders / "m.cnf", *words) == 0
    assert (orders / "used.order").read_text() == "2 0 1\n"


def test_names_are_an_order_too(orders: Path) -> None:
    words = ("--solver", "bucket_tree", "--order", orders / "names.order", "--output", orders / "used.order")
    assert exact(orders / "named.npz", *words) == 0
    assert list(map(int, (orders / "used.order").read_text().split())) == list(range(40))[::-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}", "--order", "a.order"], "--order belongs to one model"),
        (["{}/regular.npz", "--order", "nowhere"], "nowhere: there is no such file"),
        (["{}/regular.npz", "--order", "{}/bytes.order"], "bytes.order, line 1: byte 0xff is not UTF-8"),
        (["{}/regular.npz", "--order", "{}/short.order"], "short.order names 3 variables, 3 different ones; each of"),
        (["{}/regular.npz", "--order", "{}/twice.order"], "twice.order names 41 variables, 40 different ones; each"),
        (["{}/regular.npz", "--order", "/dev/zero"], "/dev/zero: this is a pipe or a device"),
        (
            ["{}/regular.npz", "--order", "{}/words.order"],
            "words.order names 'one', which is no variable's number or label",
        ),
    ],
)
def test_what_is_no_order_is_refused_in_a_sentence(
    orders: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exact(*(word.format(orders) for word in words)) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["m.uai.evid.gz", "m.uai.gz.evid.gz", "m.uai.evid"])
def test_evidence_in_a_folder_may_be_gzipped(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = b"MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"
    (tmp_path / "m.uai.gz").write_bytes(gzip.compress(text))
    evidence = b"1 0 1\n"
    (tmp_path / name).write_bytes(gzip.compress(evidence) if name.endswith(".gz") else evidence)
    assert exact(tmp_path, "--output", tmp_path / "answers.csv") == 0
    assert "log Z = 1.0986122887" in capsys.readouterr().out


def test_an_answer_is_printed_though_it_has_no_order(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--output", orders / "a.order", "--output", orders / "a.PR")
    assert exact(orders / "small.npz", *words) == 2
    captured = capsys.readouterr()
    assert "log Z = " in captured.out
    assert captured.out.count("written: ") == 1
    assert (orders / "a.PR").exists()
    assert captured.err.endswith("a.order: there is no order, since nothing was eliminated\n")


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


def test_the_most_probable_states_of_some_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.uai"
    path.write_text("MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n4\n1 2 3 4\n6\n1 2 3 4 5 6\n")
    assert exact("--joint", 0, "--joint", 2, path, "--evidence", "1=0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["0.3750000000  0=1 2=2", "0.2500000000  0=1 2=1"]
    assert len(lines) == 6
    refused = {
        ("--joint", "x"): "no variable is named 'x'",
        ("--json",): "--json was given with --joint",
        ("--solver", "ganak"): "--solver was given with --joint",
    }
    for words, message in refused.items():
        assert exact(path, "--joint", 0, *words) == 2
        assert message in capsys.readouterr().err
    assert exact(tmp_path, "--joint", 0) == 2
    assert "a folder was given with --joint" in capsys.readouterr().err


def test_each_evidence_sample_of_a_file_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, evidence = tmp_path / "m.uai", tmp_path / "m.evid"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n")
    evidence.write_text("3\n1 0 1\n2 1 0 0 0\n0\n")
    assert exact(path, "--evidence", evidence, "--no-marginals") == 0
    found = [line for line in capsys.readouterr().out.splitlines() if "log Z" in line or "sample" in line]
    expected = [math.log(7), math.log(1), math.log(10)]
    assert found[::2] == [f"evidence sample {k} of 3" for k in (1, 2, 3)]
    assert found[1::2] == [f"m: log Z = {value:z.10f} (exact)" for value in expected]
    assert exact(path, "--evidence", evidence, "--output", tmp_path / "m.PR") == 2
    assert "holds 3 evidence samples, and --output and --json are of one answer" in capsys.readouterr().err
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 0 0\n")
    assert exact(path, "--evidence", evidence, "--no-marginals") == 2
    printed = capsys.readouterr()
    assert printed.err.count("Z = 0") == 1
    assert [line for line in printed.out.splitlines() if "log Z" in line] == [
        f"m: log Z = {math.log(value):z.10f} (exact)" for value in (1, 3)
    ]
    evidence.write_text("2\n1 0 1\n2 0 0 0 1\n")
    assert exact(path, "--evidence", evidence) == 2
    assert "the evidence is contradictory, for variable 0 has states 0 and 1" in capsys.readouterr().err
