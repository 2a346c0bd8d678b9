"""Numbers of long texts: those that Python reads, and no others."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.models.files import numbers

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


@pytest.fixture(autouse=True)
def long_at_once(monkeypatch):
    monkeypatch.setattr(numbers, "LONG", 0)
    monkeypatch.setattr(numbers, "_PIECE", 512)


def text(tokens, seed=0):
    chance = random.Random(seed)
    blanks = ("".join(chance.choices(" \n\t\r\v\f", k=chance.randint(1, 3))) for _ in tokens)
    return "".join(token + blank for token, blank in zip(tokens, blanks, strict=True)).encode()


def test_numbers_are_rounded_as_python_rounds_them():
    bits = np.random.default_rng(0).integers(0, 0x7FF0000000000000, size=2000, dtype=np.uint64)
    tokens = [*HARD, *map(repr, bits.view(np.float64).tolist())]
    data = b"MARKOV " + text(tokens)
    assert numbers._count_plain(data, 6) == len(tokens)
    assert numbers.parse(data, 6).tolist() == list(map(float, tokens))


@pytest.mark.parametrize("token", STRANGE)
def test_what_else_is_a_number(token):
    tokens = [*HARD[:3], token, "2"]
    np.testing.assert_array_equal(numbers.parse(text(tokens)), list(map(float, tokens)))


@pytest.mark.parametrize("token", WRONG)
def test_what_is_none(token):
    for tokens in ([token], [*HARD, token], [token, *HARD]):
        assert numbers.parse(text(tokens)) is None


@pytest.mark.parametrize("data", [b"", b" \n ", b"7", b"7\n", b"\n7", b"7 " * 1000, b"7\n" * 1000, b"7" * 600])
def test_ends_of_texts_and_pieces(data):
    assert numbers.parse(data).tolist() == list(map(float, data.split()))


@given(st.text("01.e-+ \n", max_size=12))
def test_long_texts_are_read_as_short_ones(data):
    plain = numbers._count_plain(data.encode(), 0)
    slow = numbers._parse_any(data.encode())
    assert plain is None or len(slow) == plain
    if plain:
        np.testing.assert_array_equal(numbers.parse(data.encode()), slow)
