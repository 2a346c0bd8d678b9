"""Text model files as arrays of numbers whose line and token can be named.

Files are untrusted: their size is checked before they are read, and counts they claim before memory is taken.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.files import numbers, packed

FloatArray = npt.NDArray[np.float64]

# Largest text in bytes: parsing takes up to ten times this memory.
MAX_TEXT_BYTES = 256 * 2**20
# Bytes from which the format is detected.
HEAD_BYTES = 64 * 2**10

_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r"))
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)
_TOKEN = re.compile(rb"\S+")
_COMMENT = re.compile(rb"/\*[^*]{0,4096}\*/")
# Two patterns, each with a fixed first letter, which the search finds or rules out in a fraction of the time of [eE].
_TINY = {e: re.compile(e + rb"-0*[1-9]\d\d") for e in (b"e", b"E")}
_NOT_ZERO = re.compile(rb"[+-]?[0.]*[1-9]")
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_bytes(path: Path, limit: int) -> bytes:
    """The file's bytes; of a packed file, those that were packed.

    Raises:
        ModelError: it cannot be read, is empty, or is longer than `limit` bytes, or would be if it were unpacked.
    """
    data = _read_at_least(path, limit + 1)
    if len(data) > limit:
        raise ModelError(f"{path}: the file is longer than {limit // 2**20} MiB, the most that is read of this format")
    if not data:
        raise ModelError(f"{path}: the file is empty")
    return data


def read_head(path: Path) -> bytes:
    """What `read_bytes` begins with.

    Raises:
        ModelError: it cannot be read.
    """
    return _read_at_least(path, HEAD_BYTES)[:HEAD_BYTES]


def read_text(path: Path, limit: int = MAX_TEXT_BYTES) -> bytes:
    """The file's bytes, found to be UTF-8 text.

    Raises:
        ModelError: as `read_bytes` and `check_text`.
    """
    return check_text(read_bytes(path, limit), path.name)


def check_text(data: bytes, source: str) -> bytes:
    """The bytes, found to be UTF-8 text, without a byte order mark.

    Raises:
        ModelError: binary, or not UTF-8, or only white space.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if len(data.translate(None, _CONTROL)) != len(data):
        raise ModelError(f"{source}: this is a binary file; a text file is needed")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; a UTF-8 text file is needed"
        ) from None
    if not data.strip():
        raise ModelError(f"{source}: the file holds nothing but white space")
    return data


def blank_out_comments(data: bytes) -> bytes:
    """The text with white space in place of each /* comment */; lines stay where they are."""
    return _COMMENT.sub(lambda comment: b"\n" * comment.group().count(b"\n") + b" ", data)


def _read_at_least(path: Path, num_bytes: int) -> bytes:
    """At least `num_bytes` bytes, or all that there are."""
    if _is_stream(path):
        raise ModelError(f"{path}: this is a pipe or a device; a file is needed, which can be read twice")
    try:
        with path.open("rb") as file:
            return _read_chunks(packed.open_unpacked(file), num_bytes)
    except IsADirectoryError:
        raise ModelError(f"{path}: this is a folder; a model file is needed") from None
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except packed.DAMAGED:
        raise ModelError(f"{path}: the file is not a whole archive of gzip, bzip2 or xz") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: the file cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _is_stream(path: Path) -> bool:
    """Whether what is there is neither a file nor a folder: to open a pipe would wait until somebody writes."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # `open` reports the error
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _read_chunks(file: packed.Readable, num_bytes: int) -> bytes:
    # In chunks: read(n) allocates n bytes before it knows how many there are.
    chunks, length = [], 0
    while length < num_bytes and (chunk := file.read(2**20)):
        chunks.append(chunk)
        length += len(chunk)
    return b"".join(chunks)


class Tokens:
    """The numbers of a text, with typed access that names line and token when it fails.

    Attributes:
        values: (T,) float64.
        source: the file's name, for messages.
    """

    def __init__(
        self, data: bytes, source: str, spellings: Mapping[bytes, bytes] | None = None, start: int = 0
    ) -> None:
        """
        Args:
            data: the text.
            source: the file's name.
            spellings: tokens that stand in place of others, with what the file has, for messages.
            start: where the numbers begin.

        Raises:
            ModelError: a token is not a number.
        """
        self._data, self._start = data, start
        self._spellings = spellings or {}
        self.source = source
        values = numbers.parse_numbers(data, start)
        if values is None:
            bad = next((k for k, token in enumerate(self._matches()) if not _NUMBER.fullmatch(token.group())), 0)
            raise self.error(bad, "a number is needed")
        self.values: FloatArray = values

    def _matches(self) -> Iterator[re.Match[bytes]]:
        return _TOKEN.finditer(self._data, self._start)

    @property
    def size(self) -> int:
        """T."""
        return len(self.values)

    def error(self, index: int, message: str) -> ModelError:
        """The error for token `index`, to be raised by the caller; past the last token, for the end of the file."""
        for k, token in enumerate(self._matches()):
            if k == index:
                line = self._data.count(b"\n", 0, token.start()) + 1
                text = self._spellings.get(token.group(), token.group())[:24].decode(errors="replace")
                return ModelError(f"{self.source}, line {line}, token {text!r}: {message}")
        line = self._data.rstrip().count(b"\n") + 1
        return ModelError(f"{self.source}: the file ends after line {line}, where {message}")

    def integer(self, index: int, description: str, low: int = 0, high: int = 2**31) -> int:
        """Token `index` as an integer in low..high."""
        if index >= self.size:
            raise self.error(index, f"{description} is missing")
        value = self.values[index]
        # NaN fails every comparison
        if not low <= value <= high or value != int(value):
            raise self.error(index, f"{description} must be an integer from {low} to {high}")
        return int(value)

    def count(self, index: int, description: str, low: int = 0) -> int:
        """Token `index` as a number of things that take at least one token each."""
        value = self.integer(index, f"the number of {description}", low, 2**53)
        left = self.size - index - 1
        if value > left:
            raise self.error(index, f"{value} {description} are claimed, but only {left} tokens follow")
        return value

    def integers(self, start: int, stop: int, description: str, low: int, high: int) -> npt.NDArray[np.int64]:
        """Tokens start..stop-1 as integers in low..high; the caller knows that they exist."""
        return self.integers_at(range(start, stop), description, low, high)

    def integers_at(
        self, indices: range | npt.NDArray[np.integer], description: str, low: int, high: int
    ) -> npt.NDArray[np.int64]:
        """The same of tokens anywhere."""
        values = self.values[indices.start : indices.stop] if isinstance(indices, range) else self.values[indices]
        good = (values >= low) & (values <= high) & (values == np.floor(values))
        if not good.all():
            wrong = int(indices[int(np.argmin(good))])
            raise self.error(wrong, f"{description} must be an integer from {low} to {high}")
        return values.astype(np.int64)

    @cached_property
    def small_logarithms(self) -> dict[int, float]:
        """Logarithms of the tokens that are not 0 but below the smallest normal number of float64, by index.

        float64 keeps fewer digits of such a number, or none.

        Raises:
            ModelError: a number so small that its logarithm is not finite.
        """
        subnormal = (self.values != 0) & (abs(self.values) < SMALLEST_NORMAL)
        vanished = not self.values.all() and any(
            e in self._data and tiny.search(self._data) for e, tiny in _TINY.items()
        )
        if not vanished and not subnormal.any():
            return {}
        logarithms = {}
        for k, token in enumerate(self._matches()):
            if abs(self.values[k]) < SMALLEST_NORMAL and _NOT_ZERO.match(token.group()):
                logarithms[k] = log_decimal(token.group().decode())
                if not math.isfinite(logarithms[k]):
                    raise self.error(k, "a weight must be 0 or a positive number of which float64 holds the logarithm")
        return logarithms

    def check_end(self, index: int) -> None:
        """Nothing may follow token index - 1."""
        if index < self.size:
            raise self.error(index, f"nothing is expected here, but {self.size - index} tokens follow the last table")


def parse_log_weights(tokens: Tokens, indices: slice, counts: npt.ArrayLike) -> FloatArray:
    """Logarithms of the tokens, which are weights, without those at absolute positions `counts`; -inf for 0.

    Weights that are too small for float64 keep all of their digits.

    Raises:
        ModelError: one is negative, NaN or infinite.
    """
    is_weight = np.ones(indices.stop - indices.start, dtype=bool)
    is_weight[np.asarray(counts, dtype=np.int64) - indices.start] = False
    weights = tokens.values[indices][is_weight]
    good = (weights >= 0) & (weights < np.inf)
    if not good.all():
        bad = int(np.flatnonzero(is_weight)[np.argmin(good)])
        raise tokens.error(indices.start + bad, "a weight must be a finite number, 0 or more")
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(weights)
    places = np.cumsum(is_weight) - 1
    for k, value in tokens.small_logarithms.items():
        if indices.start <= k < indices.stop and is_weight[k - indices.start]:
            logs[places[k - indices.start]] = value
    return logs


def log_decimal(text: str) -> float:
    """Natural logarithm of a positive number that is written in decimals, whatever its exponent.

    NaN of a negative number.
    """
    digits, _, exponent = text.lower().partition("e")
    mantissa = Decimal(digits)
    if mantissa <= 0:
        return math.nan
    return float(mantissa.ln()) + float(exponent or 0) * math.log(10)
