"""Files that are not models: one sentence each, with file, line and token, and no memory taken for claims."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.errors import ModelError
from spinbench.models import load, save
from spinbench.models.files import text
from spinbench.models.files.uai import read_evidence
from spinbench.models.generators import grid

GOOD = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n"


def refuse(path, read=load):
    """The message, after the checks that hold for all."""
    with pytest.raises(ModelError) as info:
        read(path)
    message = str(info.value)
    assert path.name in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("suffix", ["uai", "fg", "npz", "json", "evid"])
def test_files_that_are_not_there_or_empty_or_folders(tmp_path, suffix):
    read = read_evidence if suffix == "evid" else load
    path = tmp_path / f"m.{suffix}"
    assert refuse(path, read).endswith("there is no such file")
    path.touch()
    assert refuse(path, read).endswith("the file is empty")
    path.unlink()
    path.mkdir()
    assert "this is a folder" in refuse(path, read)


@pytest.mark.parametrize("weight", ["1e-400", "0.5E-0330", "00.07e-999"])
def test_weights_that_float64_takes_for_0_are_no_zeros(tmp_path, weight):
    path = tmp_path / "m.uai"
    path.write_text(GOOD.replace("4 5 6", f"0e-500 0.0 {weight}"))
    assert f"m.uai, line 7, token '{weight}': so small a weight is 0 in float64" in refuse(path)
    path.write_text(GOOD.replace("4 5 6", "0e-500 0.0 1e-307"))
    assert np.isneginf(load(path).factors[0].log_table).sum() == 2


@pytest.mark.parametrize("suffix", ["uai", "fg", "json"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"  \n\t\n", "nothing but white space"),
        (b"2\n2\n\x00\x01\x02", "this is a binary file"),
        (b"\x7fELF\x02\x01\x01", "this is a binary file"),
        (b"2\n2\n2 \xff\n", "m.{suffix}, line 3: byte 0xff is not UTF-8"),
    ],
)
def test_files_that_are_not_text(tmp_path, suffix, content, words):
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(content)
    assert words.format(suffix=suffix) in refuse(path)


def test_a_file_that_is_too_long_is_not_read_whole(tmp_path):
    path = tmp_path / "m.uai"
    path.write_text(GOOD)
    with pytest.raises(ModelError, match="the file is longer than 0 MiB"):
        text.read_text(path, limit=10)


def test_names_and_contents_that_no_format_knows(tmp_path):
    path = tmp_path / "m.xyz"
    path.write_text("1 2 3")
    message = refuse(path)
    assert "neither name nor content is that of a known format; files that end in" in message
    assert ".bif, .erg, .fg, .json, .npz, .uai, .wcnf are read as models, gzipped ones, too" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("GRAPH 2", "m.uai, line 1, token 'GRAPH': a UAI model begins with MARKOV or BAYES"),
        ("\n\n2 2", "m.uai, line 3, token '2': a UAI model begins with"),
        ("MARKOV", "m.uai: the file ends after line 1, where the number of variables is missing"),
        ("MARKOV\n0\n", "line 2, token '0': the number of variables must be an integer from 1"),
        ("MARKOV\n2.5 2 2", "token '2.5': the number of variables must be an integer"),
        ("MARKOV\n-2 2 2", "token '-2': the number of variables must be an integer"),
        ("MARKOV\nnan 2 2", "token 'nan': the number of variables must be an integer"),
        ("MARKOV\n1000000000\n2 2\n", "token '1000000000': 1000000000 variables are claimed, but only 2 tokens follow"),
        (
            "MARKOV\n2\n2 2147483647\n0\n",
            "token '2147483647': the variables have 2147483649 states together; a file of",
        ),
        ("MARKOV\n2\n2 x\n1\n", "m.uai, line 3, token 'x': a number is needed"),
        ("MARKOV\n2\n2 1.5.2\n1\n", "m.uai, line 3, token '1.5.2': a number is needed"),
        ("MARKOV\n2\n2 1_0\n1\n", "m.uai, line 3, token '1_0': a number is needed"),
        ("MARKOV\n2\n2 0x10\n1\n", "token '0x10': a number is needed"),
        ("MARKOV\n2\n2 ２\n1\n", "token '２': a number is needed"),
        ("MARKOV\n2\n2 0\n1\n", "m.uai, line 3, token '0': a number of states must be an integer from 1"),
        ("MARKOV\n2\n2 2\n", "where the number of factors is missing"),
        ("MARKOV\n2\n2 2\n7\n1 0", "token '7': 7 factors are claimed, but only 2 tokens follow"),
        ("MARKOV\n2\n2 2\n1\n9 0 1", "token '9': 9 variables of factor 0 are claimed, but only 2 tokens follow"),
        ("MARKOV\n2\n2 2\n1\n41" + " 0" * 50, "token '41': factor 0 has 41 variables; at most 40"),
        (GOOD.replace("2 0 1", "2 0 2"), "m.uai, line 5, token '2': a variable must be an integer from 0 to 1"),
        (GOOD.replace("2 0 1", "2 0 -1"), "m.uai, line 5, token '-1': a variable must be"),
        (GOOD.replace("2 0 1", "2 1 1"), "m.uai, line 5, token '1': factor 0 names a variable twice"),
        (GOOD.replace("\n6\n", "\n5\n"), "m.uai, line 6, token '5': the table of factor 0 over variables (0, 1) has 6"),
        (GOOD.replace(" 6\n", "\n"), "m.uai: the file ends after line 7, where the table of factor 0 has 5 of its 6"),
        (GOOD.partition("6\n")[0], "m.uai: the file ends after line 5, where the table of factor 0 is missing"),
        (GOOD + "7\n", "m.uai, line 8, token '7': nothing is expected here, but 1 tokens follow the last table"),
        (GOOD.replace("3 4", "3 -4"), "m.uai, line 7, token '-4': a weight must be a finite number, 0 or more"),
        (GOOD.replace("3 4", "3 nan"), "m.uai, line 7, token 'nan': a weight must be a finite number"),
        (GOOD.replace("3 4", "inf 4"), "m.uai, line 7, token 'inf': a weight must be a finite number"),
        (GOOD.replace("3 4", "3 1e999"), "m.uai, line 7, token '1e999': a weight must be a finite number"),
        (GOOD.replace("1 2 3 4 5 6", "0 0 0 0 0 0"), "m.uai, line 7, token '0': the table of factor 0 is zero everywh"),
    ],
)
def test_bad_uai(tmp_path, content, words):
    path = tmp_path / "m.uai"
    path.write_text(content)
    assert words in refuse(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        # 40 variables of 8 states in one factor: 8**40 entries
        (
            "m.uai",
            "MARKOV\n40\n" + "8 " * 40 + "\n1\n40 " + " ".join(map(str, range(40))) + "\n1e9\n1 1",
            "has 13292279957",
        ),
        # 2**30 entries, and the file says so
        (
            "m.uai",
            "MARKOV\n30\n" + "2 " * 30 + "\n1\n30 " + " ".join(map(str, range(30))) + "\n1073741824\n1 1",
            "2 of its",
        ),
        ("m.uai", "MARKOV\n1\n2000000000\n1\n1 0\n2000000000\n1 1", "the variables have 2000000000 states together"),
        ("m.fg", "1\n\n1\n0\n2000000000\n1\n0 1.0\n", "has 2000000000 entries, more than the 67108864 left"),
        ("m.fg", "1\n\n3\n0 1 2\n2000000 2000000 2000000\n1\n0 1.0\n", "has 8000000000000000000 entries"),
    ],
)
def test_claims_of_a_gigabyte_take_no_memory(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_text(content)
    tracemalloc.start()
    try:
        message = refuse(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words in message
    assert peak < 4 * 2**20


@given(st.lists(st.text("0123456789+-.einfaNIt_xE", min_size=1, max_size=6), min_size=1, max_size=5))
def test_numbers_are_pythons_floats_or_refused(parts):
    data = " \n".join(parts).encode()
    try:
        values = [float(part) for part in parts]
        plain = not any("_" in part for part in parts)
    except ValueError:
        plain = False
    if plain:
        np.testing.assert_array_equal(text.Tokens(data, "m").values, values)
    else:
        with pytest.raises(ModelError, match="a number is needed") as info:
            text.Tokens(data, "m")
        line = int(str(info.value).split("line ")[1].split(",")[0])
        assert repr(parts[line - 1]) in str(info.value)


@pytest.mark.parametrize("cut", range(1, len(GOOD.rstrip()) - 1))
def test_every_truncation_is_refused_or_another_number(tmp_path, cut):
    path = tmp_path / "m.uai"
    path.write_text(GOOD[:cut])
    refuse(path)


FG = "# comment\n1\n\n2\n0 1\n2 2\n4\n0 1.0\n1 2.0\n2 3.0\n3 4.0\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# only a comment\n", "m.fg: the file ends after line 1, where the number of factors is missing"),
        ("x", "m.fg, line 1, token 'x': a number is needed"),
        ("0\n", "m.fg, line 1, token '0': no factor names a variable"),
        ("5\n2\n", "token '5': 5 factors are claimed, but only 1 tokens follow"),
        ("1\n\n9\n0 1\n", "token '9': 9 variables of factor 0 are claimed"),
        ("1\n\n2\n0 1\n2\n", "m.fg: the file ends after line 5, where factor 0 is not complete"),
        (FG.replace("0 1\n2 2", "0 0\n2 2"), "line 5, token '0': factor 0 names a variable twice"),
        (FG.replace("0 1\n2 2", "0 -1\n2 2"), "line 5, token '-1': a variable must be an integer"),
        (FG.replace("0 1\n2 2", "0 1\n2 0"), "line 6, token '0': a number of states must be an integer from 1"),
        (
            FG.replace("\n4\n", "\n5\n"),
            "line 7, token '5': the number of entries of factor 0 must be an integer from 0",
        ),
        (FG.replace("\n4\n", "\n3\n"), "line 11, token '3': nothing is expected here, but 2 tokens follow"),
        (FG.replace("3 4.0", ""), "where the table of factor 0 is not complete"),
        (FG.replace("3 4.0", "4 4.0"), "line 11, token '4': an entry's index must be an integer from 0 to 3"),
        (FG.replace("3 4.0", "0.5 4.0"), "line 11, token '0.5': an entry's index must be"),
        (FG.replace("3 4.0", "1 4.0"), "line 11, token '1': factor 0 has this entry twice"),
        (FG.replace("4.0", "-4.0"), "line 11, token '-4.0': a weight must be a finite number, 0 or more"),
        (FG.replace("4.0", "nan"), "line 11, token 'nan': a weight must be"),
        ("1\n\n1\n0\n2\n0\n", "line 6, token '0': the table of factor 0 is zero everywhere"),
        ("1\n\n1\n0\n2\n1\n0 0.0\n", "line 6, token '1': the table of factor 0 is zero everywhere"),
        ("2\n\n1\n0\n2\n1\n0 1\n\n1\n0\n3\n1\n0 1\n", "line 11, token '3': variable 0 has 3 states here and 2 before"),
    ],
)
def test_bad_fg(tmp_path, content, words):
    path = tmp_path / "m.fg"
    path.write_text(content)
    assert words in refuse(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x", "m.evid, line 1, token 'x': a number is needed"),
        ("-1", "token '-1': the number of observed variables must be an integer from 0"),
        ("3 0 1", "m.evid, line 1, token '3': 3 pairs of variable and state are claimed, but 2 tokens follow"),
        ("1\n3 0 1", "m.evid, line 2, token '3': 3 pairs of variable and state are claimed, but 2 tokens follow"),
        ("2 0 1 1 0 5", "token '5': nothing is expected after the 2 pairs"),
        ("0 0 1", "token '0': nothing is expected after the 0 pairs"),
        ("1 0 -1", "token '-1': a variable or state must be an integer from 0"),
        ("1 0.5 1", "token '0.5': a variable or state must be"),
        ("2\n1 0 1\n1 0 0\n", "token '2': the file holds 2 evidence samples; one is needed"),
        ("2 4 0 4 1", "token '4': the evidence is contradictory, for variable 4 has states 0 and 1"),
    ],
)
def test_bad_evidence(tmp_path, content, words):
    path = tmp_path / "m.evid"
    path.write_text(content)
    assert words in refuse(path, read_evidence)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ("1 2 0", "m: evidence names variable 2; variables are 0..1"),
        ("1 0 2", "m: evidence sets variable 0 to 2; its states are 0..1"),
        ("1 1 2", "m: the evidence is contradictory, for factor 0 over variables (0, 1) is zero under it"),
    ],
)
def test_evidence_that_does_not_fit_the_model(tmp_path, evidence, words):
    path, observed = tmp_path / "m.uai", tmp_path / "m.evid"
    path.write_text(GOOD.replace("1 2 3 4 5 6", "1 2 0 4 5 0"))
    observed.write_text(evidence)
    with pytest.raises(ModelError) as info:
        load(path, evidence=observed)
    assert words in str(info.value)


def npz_bytes(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy_claiming(shape, descr="<f8"):
    return npy_header(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}")


def npy_header(text):
    header = text.encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def zip_bytes(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, content in members.items():
            # without the time of day, which would be in the test's name and so differ between processes
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), content)
    return buffer.getvalue()


SIZES = {"cardinalities": [2, 2], "scopes": [0, 1], "scope_sizes": [2], "log_tables": np.zeros(4)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a zip", "m.npz: the file is not a whole .npz archive"),
        (pickle.dumps([1]), "m.npz: the file is not a whole .npz archive"),
        (npz_bytes(biases=[1.0, 2.0], couplings=np.zeros((2, 2)))[:-40], "not a whole .npz archive"),
        (npz_bytes(biases=[0.0], couplings=[[0.0]])[100:], "not a whole .npz archive (negative seek value"),
        (npz_bytes(biases=np.array([object()], dtype=object)), "array 'biases' holds pickled objects, which are never"),
        (npz_bytes(biases=[1.0]), "m.npz: there is no array 'couplings'; arrays of a model are biases, couplings"),
        (npz_bytes(biases=[1.0], couplings=[[0.0]], W=[1]), "there is an unknown array 'W'"),
        (
            zip_bytes(biases=npy_claiming((10**12,))),
            "array 'biases' claims 8000000000000 bytes, but the archive holds 0",
        ),
        (zip_bytes(biases=b"junk"), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_header("(" * 99)), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_header("{1: 0, 'a': 0}")), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_claiming((1,), "O") + b"x" * 8), "holds pickled objects"),
        (npz_bytes(biases=["a"], couplings=[[0.0]]), "m: biases are not an array of real numbers"),
        (npz_bytes(biases=[1.0, np.nan], couplings=np.zeros((2, 2))), "m: the bias of variable 1 is nan"),
        (npz_bytes(biases=[0, 0], couplings=[[0, 1], [2, 0]]), "W must be symmetric"),
        (npz_bytes(biases=[0, 0], couplings=[[0, 1], [1, 5]]), "the diagonal of W must be zero"),
        (npz_bytes(biases=[0, 0], couplings=[1.0], edges=[[1, 1]]), "variable 1 is coupled to itself"),
        (npz_bytes(biases=[0, 0], couplings=[1.0], edges=[[0.5, 1]]), "edges have type float64"),
        (npz_bytes(biases=[0], couplings=[[0]], log_constant=[1, 2]), "log_constant has shape (2,)"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0]), "arrays 'groups' and 'group_sizes' are needed together"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0], group_sizes=[2]), "does not add up to the 1 entries"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0.5], group_sizes=[1]), "a vector of integers is needed"),
        (npz_bytes(biases=[0], couplings=[[0]], labels="nonsense"), "array 'labels' is not a JSON list"),
        (npz_bytes(biases=[0], couplings=[[0]], labels='[{"a": 1}]'), "array 'labels' is not a JSON list"),
        (npz_bytes(**{k: v for k, v in SIZES.items() if k != "scopes"}), "there is no array 'scopes'"),
        (npz_bytes(**SIZES | {"scopes": [0, 2]}), "a scope names a variable outside 0..1"),
        (npz_bytes(**SIZES | {"cardinalities": [2, 3]}), "the scopes need 6 table entries, but log_tables has 4"),
        (npz_bytes(**SIZES | {"cardinalities": [2, 0], "log_tables": []}), "cardinalities are [2, 0]"),
        (npz_bytes(**SIZES | {"log_tables": [0, 0, 0, np.inf]}), "factor 0 has a NaN or infinite entry at (1, 1)"),
    ],
)
def test_bad_npz(tmp_path, content, words):
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(ModelError) as info:
        load(path)
    assert words in str(info.value)
    assert str(info.value).startswith("m")


def test_a_corrupt_byte_in_an_archive_is_noticed(tmp_path):
    path = tmp_path / "m.npz"
    save(grid(3, 3), path)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x93NUMPY") + 140] ^= 0xFF
    path.write_bytes(bytes(data))
    assert "not a whole .npz archive" in refuse(path)


BQM = {
    "type": "BinaryQuadraticModel",
    "version": {"bqm_schema": "3.0.0"},
    "use_bytes": False,
    "variable_labels": ["a", "b"],
    "variable_type": "SPIN",
    "offset": 0.0,
    "linear_biases": [1.0, 2.0],
    "quadratic_biases": [0.5],
    "quadratic_head": [0],
    "quadratic_tail": [1],
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{\n"type": \n}', "m.json, line 3: this is not JSON"),
        ("[" * 100_000, "m.json: this JSON cannot be read"),
        ("[1, 2]", "the JSON has type None; dimod's 'BinaryQuadraticModel' is needed"),
        (BQM | {"type": "ConstrainedQuadraticModel"}, "the JSON has type 'ConstrainedQuadraticModel'"),
        (BQM | {"version": {"bqm_schema": "1.0.0"}}, "has schema 1.0.0; schema 3 as numbers is needed"),
        (BQM | {"use_bytes": True}, "has schema 3.0.0 as bytes; schema 3 as numbers"),
        ({k: v for k, v in BQM.items() if k != "offset"}, "has no field 'offset'"),
        (BQM | {"variable_type": "INTEGER"}, "the variables are of type 'INTEGER'; 'SPIN' or 'BINARY' is needed"),
        (BQM | {"linear_biases": [1.0, float("nan")]}, "the bias of variable 1 is nan"),
        (BQM | {"linear_biases": [1.0, None]}, "linear biases are not an array of real numbers"),
        (BQM | {"linear_biases": [1.0, 10**400]}, "linear biases are not an array of real numbers"),
        (BQM | {"quadratic_tail": [2]}, "edge (0, 2) names a variable outside 0..1"),
        (BQM | {"quadratic_tail": [0]}, "variable 0 is coupled to itself"),
        (BQM | {"quadratic_tail": [0, 1]}, "quadratic_head, quadratic_tail or variable_labels is not a list"),
        (BQM | {"quadratic_tail": ["b"]}, "edges have type"),
        (BQM | {"variable_labels": ["a", "a"]}, "two variables are labelled 'a'"),
        (BQM | {"variable_labels": ["a", {}]}, "variable_labels is not a list"),
        (BQM | {"offset": "x"}, "the offset is 'x'; a finite number is needed"),
    ],
)
def test_bad_bqm_json(tmp_path, content, words):
    path = tmp_path / "m.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ModelError) as info:
        load(path)
    assert words in str(info.value)
    assert str(info.value).startswith("m")
