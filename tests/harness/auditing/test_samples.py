"""Samples as other programs hand them over: what they are read as, and one sentence for what they are not."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest

import spinbench
from spinbench.auditing.samples import read_samples
from spinbench.errors import SpinbenchError
from spinbench.models import FactorGraph, PairwiseModel

PAIR = PairwiseModel.from_edges([0.1, -0.4, 0.2], [(0, 1)], [0.5], labels=["a", "b", "c"])
PLAIN = PairwiseModel.from_edges([0.1, -0.4, 0.2], [(0, 1)], [0.5])
K_ARY = FactorGraph.from_log_tables((2, 3), [((0, 1), np.zeros((2, 3)))])
DRAWS = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
CHAINS = np.stack([DRAWS, DRAWS[::-1]]).transpose(2, 0, 1)


def write(path: Path, content: Any) -> Path:
    match path.suffix:
        case ".npz":
            np.savez(path, **content)
        case ".npy":
            np.save(path, content)
        case _:
            path.write_text(content)
    return path


def sample_set(spins: bool) -> dimod.SampleSet:
    states = 2 * DRAWS - 1 if spins else DRAWS
    return dimod.SampleSet.from_samples(
        (states[:, ::-1], ["c", "b", "a"]), "SPIN" if spins else "BINARY", energy=0.0, num_occurrences=[1, 2, 1, 1]
    )


@pytest.mark.parametrize("spins", [False, True])
@pytest.mark.parametrize("kind", ["draws", "turned", "npy", "npz", "csv", "csv of labels"])
def test_independent_draws(tmp_path: Path, kind: str, spins: bool) -> None:
    states = 2 * DRAWS - 1 if spins else DRAWS
    lines = [",".join(map(str, row)) for row in states.tolist()]
    sources: dict[str, Any] = {
        "draws": states,
        "turned": states.T,
        "npy": states,
        "npz": {"anything": states},
        "csv": "\n".join(lines),
        "csv of labels": "\n".join(["c,b,a", *(line[::-1] if not spins else line for line in lines)]),
    }
    source = sources[kind]
    if kind.startswith(("np", "csv")):
        source = write(tmp_path / f"s.{kind[:3]}", source)
    found = read_samples(source, PAIR)
    wanted = DRAWS[:, ::-1] if spins and kind == "csv of labels" else DRAWS
    np.testing.assert_array_equal(found.states[:, 0].T, wanted)
    assert not found.chained
    assert any("independent" in note for note in found.notes)
    assert ("spins of -1 and +1, which are states 0 and 1" in found.notes) == spins


@pytest.mark.parametrize("header", ["0,1,2", "2,1,0", "x2,x1,x0", "v[2],v[0],v[1]", "s3,s2,s1", "up,down,side"])
def test_columns_are_found_by_their_numbers(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "s.csv", "\n".join([header, *(",".join(map(str, row)) for row in DRAWS.tolist())]))
    order = [int(word.strip("xv[]s")) for word in header.split(",")] if any(map(str.isdigit, header)) else [0, 1, 2]
    np.testing.assert_array_equal(read_samples(path, PLAIN).states[np.array(order) - min(order), 0].T, DRAWS)


@pytest.mark.parametrize("kind", ["array", "npz of a run", "csv"])
def test_chains(tmp_path: Path, kind: str) -> None:
    rows = ["chain,draw,a,b,c"]
    rows += [f"{c},{d},{','.join(map(str, CHAINS[:, c, d]))}" for d in reversed(range(4)) for c in (1, 0)]
    sources: dict[str, Any] = {
        "array": CHAINS,
        "npz of a run": {"states": CHAINS.transpose(2, 1, 0)},
        "csv": "\n".join(rows),
    }
    source = sources[kind] if kind == "array" else write(tmp_path / f"s.{kind[:3]}", sources[kind])
    found = read_samples(source, PAIR)
    np.testing.assert_array_equal(found.states, CHAINS)
    assert found.chained


@pytest.mark.parametrize("spins", [False, True])
def test_sample_sets_count_rows_as_often_as_they_occurred(tmp_path: Path, spins: bool) -> None:
    found = sample_set(spins)
    path = tmp_path / "set.json"
    path.write_text(json.dumps(found.to_serializable()))
    for source in (found, path):
        read = read_samples(source, PAIR)
        np.testing.assert_array_equal(read.states[:, 0].T, DRAWS[[0, 1, 1, 2, 3]])


def test_stored_states_of_a_result_and_of_arviz(tmp_path: Path) -> None:
    result = spinbench.run(PAIR, "gibbs", "numpy", 60, chains=4, keep=20)
    wanted = np.asarray(result.states).transpose(2, 0, 1)
    data = result.to_arviz()
    path = tmp_path / "data.nc"
    try:
        data.to_netcdf(path)
    except (ImportError, ValueError):  # neither netCDF4 nor h5netcdf is installed
        path = None  # type: ignore[assignment]
    for source in (result, data, *([path] if path else [])):
        read = read_samples(source, PAIR)
        np.testing.assert_array_equal(read.states, wanted)
        assert read.chained


@pytest.mark.parametrize(
    ("model", "source", "words"),
    [
        (PAIR, DRAWS[:, :2], "the samples have shape (4, 2), by draw, variable; the model has 3 variables"),
        (PAIR, DRAWS + 1, "variable 0 is 2 in draw 1, where -1 and +1, or 0 and 1, is needed"),
        (PAIR, DRAWS * 0.5, "variable 0 is 0.5 in draw 1; states are whole numbers"),
        (PAIR, DRAWS * np.nan, "variable 0 is nan in draw 0"),
        (PAIR, DRAWS.astype(str), "of type <U21; numbers are needed"),
        (PAIR, np.zeros((0, 3)), "there are 0 numbers"),
        (PAIR, np.zeros(3), "have shape (3,); (draws, 3) or (3, chains, draws) is needed"),
        (PAIR, [[0, 1], [0]], "rows have different lengths"),
        (
            PAIR,
            np.full((4, 3), 2**63, dtype=np.uint64),
            "variable 0 is 9.22337e+18 in draw 0; states are whole numbers",
        ),
        (K_ARY, -np.ones((3, 2)), "variable 0 is -1 in draw 0, where 0 to 1 is needed"),
        (PAIR, "nowhere.npz", "nowhere.npz: there is no such file of samples"),
    ],
)
def test_what_is_no_samples(model: Any, source: Any, words: str) -> None:
    with pytest.raises(SpinbenchError) as info:
        read_samples(source, model)
    assert words in str(info.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("s.txt", "0 1 0", "samples are read from .npz, .npy, .csv, .json, .nc files"),
        ("s.csv", "a,b\n1,0\n0\n", "draw 1 is '0'; 2 numbers are needed"),
        ("s.csv", "a,b,x\n1,0,0\n", "no column is named as the model's variable 'c'"),
        ("s.csv", "chain,a,b,c\n0,1,1,1\n0,1,1,1\n1,1,1,1\n", "chains have 1 to 2 draws; as many of each are needed"),
        ("s.csv", "a,b,a,c\n1,0,1,1\n", "two columns are named 'a'"),
        ("s.csv", "chain,a,b,c\n0,1,1,1\nnan,1,1,1\n", "the chain of line 1 is nan"),
        ("s.csv", "draw,chain,a,b,c\n0,0,1,1,1\n0,0,1,0,1\n", "the number of a draw occurs twice in one chain"),
        ("s.csv", "draw,a,b,c\n3,1,1,1\n3,1,0,1\n", "occurs twice in one chain; a column chain tells chains apart"),
        ("s.csv", "", "the file is empty"),
        ("s.json", "{}", "this JSON is no dimod SampleSet"),
        ("s.csv", "a;b;c\n1;0;1\n", "no line has numbers alone, with commas between them"),
        ("s.csv", "a,b,c\n", "no line has numbers alone"),
        pytest.param("s.csv", "1," * 70_000 + "x" * 140_000, "no samples can be read of this file", id="a long field"),
        ("s.json", "{", "no samples can be read of this file"),
        pytest.param("s.json", "[" * 100_000, "no samples can be read of this file", id="many brackets"),
        ("s.npz", {"x": DRAWS, "y": DRAWS}, "the arrays are x, y; one of them has to be named samples"),
        ("s.npy", np.array([{}]), "no samples can be read of this file"),
    ],
)
def test_files_that_hold_none(tmp_path: Path, name: str, content: Any, words: str) -> None:
    with pytest.raises(SpinbenchError) as info:
        read_samples(write(tmp_path / name, content), PAIR)
    assert words in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("harm", ["half", "a byte", "another member"])
def test_damaged_archives_are_refused_in_a_sentence(tmp_path: Path, harm: str) -> None:
    path = write(tmp_path / "s.npz", {"samples": DRAWS})
    whole = bytearray(path.read_bytes())
    if harm == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif harm == "a byte":
        whole[whole.index(b"NUMPY") + 130] ^= 255
        path.write_bytes(whole)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "x")
    with pytest.raises(SpinbenchError, match=r"no samples can be read of this file|readme\.txt is no array") as info:
        read_samples(path, PAIR)
    assert "\n" not in str(info.value)
