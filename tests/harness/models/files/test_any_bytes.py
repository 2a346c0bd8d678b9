"""Readers of all formats, fed anything: a model or a sentence, quickly, and nothing else."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model_files import GOOD, WORDS

from spinbench.errors import ModelError
from spinbench.models import FactorGraph, PairwiseModel, formats, load, to_factor_graph
from spinbench.models.files.format import ModelFile
from spinbench.models.generators import grid


def outcome(name: str, data: bytes) -> None:
    """Reads, as `load` does; anything but a model or one sentence fails the test."""
    for each in formats.working().values():
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
        assert [other for other, each in formats.working().items() if each.recognises(data)] == [name]


@pytest.mark.parametrize("name", GOOD)
@given(data=st.binary(min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_bytes(name: str, data: bytes) -> None:
    outcome(name, data)


@pytest.mark.parametrize("name", GOOD)
@given(text=st.text(alphabet='0123456789 .-+e\n{}[]();|,"/*#chpMARKOVnan', min_size=1, max_size=120))
@settings(max_examples=60, deadline=None)
def test_texts(name: str, text: str) -> None:
    outcome(name, text.encode())


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


@pytest.mark.parametrize("name", [name for name in GOOD if name != "npz"])
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


@pytest.mark.parametrize("what", NASTY)
@pytest.mark.parametrize("name", GOOD)
def test_nasty_texts_are_read_in_time_that_grows_with_their_length(name: str, what: str) -> None:
    since = time.process_time()
    outcome(name, NASTY[what])
    assert time.process_time() - since < 5


def test_many_empty_members_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.uai.gz"
    path.write_bytes(gzip.compress(b"") * 2**15 + gzip.compress(GOOD["uai"]))
    since = time.process_time()
    assert load(path).num_variables == 3
    assert time.process_time() - since < 10


def test_a_writer_and_its_reader_agree(tmp_path: Path) -> None:
    for name, each in formats.working().items():
        if each.writes:
            again = each.read(ModelFile(f"m.{name}", each.write(grid(2, 3, seed=1))))
            states = np.stack(np.unravel_index(np.arange(64), (2,) * 6), axis=1)
            np.testing.assert_allclose(again.log_weight(states), grid(2, 3, seed=1).log_weight(states), atol=1e-13)
