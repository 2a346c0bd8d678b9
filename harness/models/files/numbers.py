"""The numbers of a text, each rounded as Python's float does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Size of a text in bytes from which SciPy's parser, three times as fast as NumPy's, makes up for its import.
MIN_SCIPY_BYTES = 2**20
# Bytes of a block.
_CHUNK_BYTES = 2**18
# Kinds of characters: the pairs of neighbouring kinds decide whether a number has a simple form.
_DIGIT, _BLANK, _POINT, _E, _SIGN, _OTHER = range(6)
_CHARACTERS = {_DIGIT: b"0123456789", _BLANK: b" \t\n\v\f\r", _POINT: b".", _E: b"eE", _SIGN: b"+-"}
_KINDS = bytes(next((k for k, some in _CHARACTERS.items() if byte in some), _OTHER) for byte in range(256))
_LINES = bytes.maketrans(b" \t\v\f\r", b"\n\n\n\n\n")


def _encode_transition(previous_kind: Any, has_digits: Any, next_kind: Any) -> Any:
    """A character that is no digit, whether digits follow, and the next that is none, as one number."""
    return (previous_kind * 2 + has_digits) * 6 + next_kind


_WITHIN = ((_BLANK, 1, _POINT), (_BLANK, 1, _E), (_POINT, 0, _E), (_POINT, 1, _E), (_E, 0, _SIGN))
_LAST = ((_BLANK, 1), (_POINT, 0), (_POINT, 1), (_E, 1), (_SIGN, 1))
# Transitions that end a number.
_ENDING = bytes(_encode_transition(*last, _BLANK) for last in _LAST)
# Transitions within and between numbers as simple as 12, 1.5 or 1.5e-3.
_PLAIN = _ENDING + bytes(_encode_transition(*each) for each in (*_WITHIN, (_BLANK, 0, _BLANK)))


def parse_numbers(data: bytes, start: int = 0) -> FloatArray | None:
    """The numbers that stand between blanks from `start` on; None where anything else does."""
    if len(data) >= MIN_SCIPY_BYTES and (count := _count_plain_numbers(data, start)):
        return _parse_with_scipy(data, start, count)
    return _parse_with_numpy(data[start:])


def _parse_with_numpy(data: bytes) -> FloatArray | None:
    blank = np.frombuffer(data, dtype=np.uint8) <= ord(" ")
    if blank.all():
        return np.zeros(0)
    # A token begins where a blank is followed by another character.
    count = int(np.count_nonzero(blank[:-1] > blank[1:]) + (not blank[0]))
    with warnings.catch_warnings():
        # NumPy before 2.4 only warns of trailing text, where later versions raise.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(data, dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # NumPy reads the single token "1.5.2" as two numbers.
    return values if len(values) == count else None


def _count_plain_numbers(data: bytes, begin: int) -> int | None:
    """How many numbers there are; None where one is not as simple as 12, 1.5 or 1.5e-3, or is no number."""
    count = 0
    while begin < len(data):
        end = begin + _CHUNK_BYTES
        # A chunk ends between numbers; no number is as long as a chunk.
        if end < len(data):
            end = 1 + max(data.rfind(blank, begin, end) for blank in (b" ", b"\n"))
        if end == 0:
            return None
        steps = _encode_transitions(data[begin:end])
        if steps.translate(None, _PLAIN):
            return None
        count += len(steps) - len(steps.translate(None, _ENDING))
        begin = end
    return count


def _encode_transitions(data: bytes) -> bytes:
    """Transitions (`_encode_transition`) from each character that is no digit, blanks around `data` included."""
    kinds = np.frombuffer(b"".join((b" ", data, b" ")).translate(_KINDS), dtype=np.uint8)
    at = np.flatnonzero(kinds != _DIGIT)
    marks = kinds.take(at)
    # Non-digits more than one place apart have digits between them.
    steps: bytes = _encode_transition(marks[:-1], at[1:] - at[:-1] > 1, marks[1:]).tobytes()
    return steps


def _parse_with_scipy(data: bytes, start: int, count: int) -> FloatArray:
    # Here and not above: importing SciPy takes a tenth of a second.
    from scipy import io

    file: Any = _MatrixMarketColumn(data, start, count)
    return np.asarray(io.mmread(file), dtype=np.float64)[:, 0]


class _MatrixMarketColumn:
    """A text of numbers as a file in Matrix Market's format, a matrix of one column."""

    def __init__(self, data: bytes, start: int, count: int) -> None:
        self._head = b"%%%%MatrixMarket matrix array real general\n%d 1\n" % count
        self._data = data
        self._place = start

    def read(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        piece = self._data[self._place : self._place + size]
        self._place += len(piece)
        return piece.translate(_LINES)
