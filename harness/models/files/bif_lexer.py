"""The words of a `.bif` file."""

from __future__ import annotations

import math
import re

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.files.format import FloatArray
from spinbench.models.files.text import SMALLEST_NORMAL, log_decimal

# An unclosed comment or string is a token of its own and refused at once, so that no text is searched to its end twice.
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|[,|]|(?P<token>"[^"\n]*"|/\*|"|[{}()\[\];]|(?:(?!//|/\*)[^\s{}()\[\];,|"])+)""",
    re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_ZERO = re.compile(r"[+-]?[0.]*[1-9]")
# programs that divide by a sum write numbers such as 1.0000000000000002
ROUNDING = 1e-9
_UNCLOSED = {"/*": "comment", '"': "string"}


class Lexer:
    """The words of a text, without comments, commas and bars.

    Attributes:
        position: of the word that was taken last, in characters.
    """

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._tokens = _TOKEN.finditer(text)
        self._last = ""
        self.position = 0

    def next_token(self) -> str | None:
        """The next word, without its quotes; None at the end.

        Raises:
            ModelError: a comment or a string that nothing ends.
        """
        for match in self._tokens:
            token = match.group("token")
            if token is None:
                continue
            self._last, self.position = token, match.start()
            if token in _UNCLOSED:
                raise self.error(f"nothing ends this {_UNCLOSED[token]}")
            return token[1:-1] if token[0] == '"' else token
        self._last, self.position = "", len(self._text)
        return None

    def require_token(self, description: str) -> str:
        """The next word.

        Raises:
            ModelError: there is none.
        """
        token = self.next_token()
        if token is None:
            raise self.error(f"{description} is needed")
        return token

    def expect(self, token: str) -> None:
        """Take the next word, which is this one, or raise ModelError."""
        if self.next_token() != token or self._last != token:
            raise self.error(f"{token} is needed")

    def read_list(self, closing: str, count: int, description: str) -> list[str]:
        """So many words, up to a closing one; or, where there are others, what commas part: words with blanks.

        Raises:
            ModelError: the file ends before.
        """
        words, begin = [], self.position + len(self._last)
        while (token := self.require_token(description)) != closing or self._last != closing:
            words.append(token)
        text = self._text[begin : self.position]
        items = [" ".join(item.split()) for item in text.split(",")]
        with_blanks = len(words) != count == len(items) and all(items) and not re.search(r'"|//|/\*', text)
        return items if with_blanks else words

    def skip_past(self, token: str) -> None:
        """Take all words until after this one; ModelError where it does not come."""
        while self.require_token(token) != token:
            pass

    def skip_block(self) -> None:
        """Take all words until the brace that ends the next block, or the file's end."""
        depth = 0
        while (token := self.next_token()) is not None:
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if not depth:
                    return

    def parse_integer(self, description: str) -> int:
        """The next word as a number of things, at most 2^31, or ModelError."""
        token = self.require_token(description)
        if not (token.isascii() and token.isdigit() and len(token) < 11 and int(token) <= 2**31):
            raise self.error(f"{description} is needed")
        return int(token)

    def parse_log_probabilities(self, count: int) -> FloatArray:
        """(count,) logarithms of so many numbers from 0 to 1, which a semicolon follows; -inf for 0.

        Raises:
            ModelError: something else.
        """
        probabilities, small_logarithms = [], {}
        for k in range(count):
            token = self.require_token("a probability")
            if not _NUMBER.fullmatch(token):
                raise self.error(f"a probability is needed, the {k + 1}. of {count}")
            value = float(token)
            if not 0 <= value <= 1 + ROUNDING:
                raise self.error("a probability must be from 0 to 1")
            if value < SMALLEST_NORMAL and _NOT_ZERO.match(token):
                small_logarithms[k] = log_decimal(token)
                if not math.isfinite(small_logarithms[k]):
                    raise self.error("a probability must be from 0 to 1")
            probabilities.append(value)
        self.expect(";")
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(probabilities)
        for k, logarithm in small_logarithms.items():
            logs[k] = logarithm
        return logs

    def error(self, message: str) -> ModelError:
        """The error for the word that was taken last, to be raised by the caller."""
        line = self._text.count("\n", 0, self.position) + 1
        if not self._last:
            return ModelError(f"{self._source}: the file ends in line {line}, where {message}")
        return ModelError(f"{self._source}, line {line}, token {self._last[:24]!r}: {message}")
