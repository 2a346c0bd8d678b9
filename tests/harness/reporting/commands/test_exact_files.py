"""Files of `spinbench exact`: orders that are read and written, and folders whose links lead nowhere."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import replace
from pathlib import Path

import pytest

import spinbench
from spinbench import cli
from spinbench.models import generators


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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


def exact(*words: object) -> int:
    return cli.main(["exact", *map(str, words)])


def test_the_order_that_was_used_is_written_and_repeats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again = folder / "first.order", folder / "again.order"
    assert exact(folder / "regular.npz", "--output", first) == 0
    reverse = list(map(int, first.read_text().split()))[::-1]
    (folder / "reverse.order").write_text(",\n".join(map(str, reverse)))
    for path in (first, folder / "reverse.order"):
        assert exact(folder / "regular.npz", "--order", path, "--output", again) == 0
        assert again.read_text().split() == path.read_text().replace(",", " ").split()
    assert capsys.readouterr().out.count("written: ") == 3


def test_numbers_may_be_labels(folder: Path) -> None:
    (folder / "m.cnf").write_text("p cnf 3 2\n1 2 0\n2 3 0\n")
    (folder / "labels.order").write_text("3 1 2\n")
    words = ("--solver", "bucket_tree", "--order", folder / "labels.order", "--output", folder / "used.order")
    assert exact(folder / "m.cnf", *words) == 0
    assert (folder / "used.order").read_text() == "2 0 1\n"


def test_names_are_an_order_too(folder: Path) -> None:
    words = ("--solver", "bucket_tree", "--order", folder / "names.order", "--output", folder / "used.order")
    assert exact(folder / "named.npz", *words) == 0
    assert list(map(int, (folder / "used.order").read_text().split())) == list(range(40))[::-1]


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
    folder: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exact(*(word.format(folder) for word in words)) == 2
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


def test_an_answer_is_printed_though_it_has_no_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--output", folder / "a.order", "--output", folder / "a.PR")
    assert exact(folder / "small.npz", *words) == 2
    captured = capsys.readouterr()
    assert "log Z = " in captured.out
    assert captured.out.count("written: ") == 1
    assert (folder / "a.PR").exists()
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
