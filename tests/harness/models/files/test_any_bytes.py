"""Readers of all formats, fed anything: a model or a sentence, quickly, and nothing else."""

from __future__ import annotations

import gzip
import random
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model_files import BINARY, GOOD, WORDS

from spinbench.errors import ModelError
from spinbench.models import FactorGraph, PairwiseModel, formats, load, to_factor_graph
from spinbench.models.files import numbers, text
from spinbench.models.files.format import ModelFile

HALFWAY = [
    "9007199254740993",
    "9007199254740992.99999999999999999",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
]
LARGE = ["1.7976931348623157e308", "1.7976931348623159e+308", "2e308", "1e400", "123456789012345678901234567890"]
SMALL = ["2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324", "1e-400", "7e-05"]
HARD = [*HALFWAY, *LARGE, *SMALL, "0", "0.", "00.10", "1.", "1.e5", "1E5", "0.1000000000000000055511151231257827021181"]
STRANGE = ["+1", "-1", ".5", "-.5e-3", "inf", "nan", "+Infinity"]
WRONG = [
    "1.5.2",
    "1-2",
    "1e5e5",
    "1e",
    "e5",
    "1e5.5",
    ".",
    "-",
    "1e-",
    "1.5-e",
    "--1",
    "0x10",
    "1_0",
    "1,5",
    "a",
    "1e--5",
]


def outcome(name: str, data: bytes) -> None:
    """Reads, as `load` does; anything but a model or one sentence fails the test."""
    for each in formats.working_formats().values():
        assert each.recognises(data) in (True, False)
    try:
        model = formats.load(name).read(ModelFile("m.x", data))
    except ModelError as error:
        message = str(error)
    else:
        message = ""
        assert isinstance(model, FactorGraph | PairwiseModel)
        assert sum(to_factor_graph(model).cardinalities) < 2**21
    assert "\n" not in message
    assert len(message) < 500


def test_all_formats_are_here() -> None:
    assert set(GOOD) == set(formats.names())
    for name, data in GOOD.items():
        model = formats.load(name).read(ModelFile("m.x", data))
        assert 2 <= model.num_variables <= 4
        taking = [
            other for other, each in formats.working_formats().items() if each.recognises(data) and not each.by_name
        ]
        assert taking == [name] or formats.load(name).by_name


@pytest.mark.parametrize("name", GOOD)
@given(data=st.binary(min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_bytes(name: str, data: bytes) -> None:
    outcome(name, data)


@pytest.mark.parametrize("name", GOOD)
@given(content=st.text(alphabet='0123456789 .-+e\n{}[]();|,"/*#chpMARKOVnan', min_size=1, max_size=120))
@settings(max_examples=60, deadline=None)
def test_texts(name: str, content: str) -> None:
    outcome(name, content.encode())


@pytest.mark.parametrize("name", GOOD)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from([*WORDS, b""])), min_size=1, max_size=4
    )
)
@settings(max_examples=250, deadline=None)
def test_edited_files(name: str, edits: list[tuple[int, int, bytes]]) -> None:
    data = GOOD[name]
    for place, length, word in edits:
        at = place % (len(data) + 1)
        data = data[:at] + word + data[at + length :]
    if data:
        outcome(name, data)


@pytest.mark.parametrize("name", GOOD)
def test_truncated_files(name: str) -> None:
    for length in range(1, len(GOOD[name])):
        outcome(name, GOOD[name][:length])


@pytest.mark.parametrize("name", [name for name in GOOD if name not in BINARY])
def test_line_ends_tabs_and_marks_change_nothing(name: str) -> None:
    reader = formats.load(name)
    plain = to_factor_graph(reader.read(ModelFile("m.x", GOOD[name])))
    changed = [GOOD[name].replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + GOOD[name], GOOD[name] + b"\n\n \t\r\n"]
    changed += [GOOD[name].replace(b" ", b"\t")] if name != "ergo" else []
    for data in changed:
        assert to_factor_graph(reader.read(ModelFile("m.x", data))).content_hash == plain.content_hash


NASTY = {
    "many blanks": b" " * 2**18,
    "comments with blanks": (b" " * 500 + b"#x\n") * 500,
    "open comments": b"/* " * 2**16,
    "open comments in a property": b"network x { property " + b"/* " * 2**16,
    "open strings": b'network x { property "' + b'" "' * 2**16,
    "stars": b"3 /*" + b"*" * 2**18,
    "c lines": b"c \n" * 2**16,
    "many h": b"h 1 0\n" * 2**13 + b"x",
    "brackets": b"[" * 2**16,
    "objects": b'{"BinaryQuadraticModel":' * 2**13,
    "one word": b"x" * 2**20,
    "one number": b"1" * 2**20,
    "one exponent": b"1e" + b"1" * 2**18,
    "p line": b"p wcnf " + b" " * 2**18 + b"1" * 400,
}


@pytest.mark.parametrize("text_name", NASTY)
@pytest.mark.parametrize("name", GOOD)
def test_nasty_texts_are_read_in_time_that_grows_with_their_length(name: str, text_name: str) -> None:
    since = time.process_time()
    outcome(name, NASTY[text_name])
    assert time.process_time() - since < 5


def test_many_empty_members_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.uai.gz"
    path.write_bytes(gzip.compress(b"") * 2**15 + gzip.compress(GOOD["uai"]))
    since = time.process_time()
    assert load(path).num_variables == 3
    assert time.process_time() - since < 10


@pytest.fixture(autouse=True)
def long_at_once(monkeypatch):
    monkeypatch.setattr(numbers, "MIN_SCIPY_BYTES", 0)
    monkeypatch.setattr(numbers, "_CHUNK_BYTES", 512)


def between_blanks(tokens):
    chance = random.Random(0)
    blanks = ("".join(chance.choices(" \n\t\r\v\f", k=chance.randint(1, 3))) for _ in tokens)
    return "".join(token + blank for token, blank in zip(tokens, blanks, strict=True)).encode()


def test_numbers_are_rounded_as_python_rounds_them():
    bits = np.random.default_rng(0).integers(0, 0x7FF0000000000000, size=2000, dtype=np.uint64)
    tokens = [*HARD, *map(repr, bits.view(np.float64).tolist())]
    assert numbers.parse_numbers(b"MARKOV " + between_blanks(tokens), 6).tolist() == list(map(float, tokens))


@pytest.mark.parametrize(
    "data",
    [
        *(between_blanks([*HARD[:3], token, "2"]) for token in STRANGE),
        *(b"", b" \n ", b"7", b"7\n", b"\n7", b"7 " * 1000, b"7\n" * 1000, b"7" * 600),
    ],
    ids=repr,
)
def test_what_else_is_a_number_and_where_texts_end(data):
    np.testing.assert_array_equal(numbers.parse_numbers(data), list(map(float, data.split())))


@pytest.mark.parametrize("token", WRONG)
def test_what_is_none(token):
    for tokens in ([token], [*HARD, token], [token, *HARD]):
        assert numbers.parse_numbers(between_blanks(tokens)) is None


@given(st.lists(st.text("0123456789+-.einfaNIt_xE", min_size=1, max_size=6), min_size=1, max_size=5), st.booleans())
def test_numbers_are_pythons_floats_or_refused(parts, long):
    data = " \n".join(parts).encode()
    try:
        values = [float(part) for part in parts]
        plain = not any("_" in part for part in parts)
    except ValueError:
        plain = False
    with mock.patch.object(numbers, "MIN_SCIPY_BYTES", 0 if long else 2**20):
        if plain:
            np.testing.assert_array_equal(text.Tokens(data, "m").values, values)
            return
        with pytest.raises(ModelError, match="a number is needed") as info:
            text.Tokens(data, "m")
    line = int(str(info.value).split("line ")[1].split(",")[0])
    assert repr(parts[line - 1]) in str(info.value)
