"""A text as words, strings and brackets, one after another, whose lines can be named."""

from __future__ import annotations

import re

from spinbench.errors import ModelError

# An unclosed comment or string is a token of its own, and refused at once: nothing is searched to the end twice.
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|[,|]|(?P<token>"[^"\n]*"|/\*|"|[{}()\[\];]|[^\s{}()\[\];,|"]+)""", re.DOTALL
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_ZERO = re.compile(r"[+-]?[0.]*[1-9]")
_BRACKETS = frozenset("{}()[];")


class Words:
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

    def next(self) -> str | None:
        """The next word, without its quotes; None at the end.

        Raises:
            ModelError: a comment or a string that nothing ends.
        """
        for match in self._tokens:
            token = match.group("token")
            if token is None:
                continue
            self._last, self.position = token, match.start()
            if token in ("/*", '"'):
                raise self.error("nothing ends this comment" if token == "/*" else "nothing ends this string")
            return token[1:-1] if token[0] == '"' else token
        self._last, self.position = "", len(self._text)
        return None

    def need(self, what: str) -> str:
        """The next word.

        Raises:
            ModelError: there is none.
        """
        word = self.next()
        if word is None:
            raise self.error(f"{what} is needed")
        return word

    def expect(self, word: str) -> None:
        """Take the next word, which is this one, or raise ModelError."""
        if self.next() != word or self._last != word:
            raise self.error(f"{word} is needed")

    def skip_to(self, word: str) -> None:
        """Take all words until after this one; ModelError where it does not come."""
        while self.need(word) != word:
            pass

    def integer(self, what: str) -> int:
        """The next word as a number of things, at most 2^31, or ModelError."""
        word = self.need(what)
        if not (word.isascii() and word.isdigit() and len(word) < 11 and int(word) <= 2**31):
            raise self.error(f"{what} is needed")
        return int(word)

    def numbers(self, count: int) -> list[float]:
        """So many numbers from 0 to 1, and the semicolon after them.

        Raises:
            ModelError: something else.
        """
        found = []
        for k in range(count):
            word = self.need("a probability")
            if not _NUMBER.fullmatch(word):
                raise self.error(f"a probability is needed, the {k + 1}. of {count}")
            value = float(word)
            if not 0 <= value <= 1:
                raise self.error("a probability must be from 0 to 1")
            if value == 0 and _NOT_ZERO.match(word):
                raise self.error("so small a probability is 0 in float64")
            found.append(value)
        self.expect(";")
        return found

    def error(self, message: str) -> ModelError:
        """The error for the word that was taken last, to be raised by the caller."""
        line = self._text.count("\n", 0, self.position) + 1
        if not self._last:
            return ModelError(f"{self._source}: the file ends in line {line}, where {message}")
        return ModelError(f"{self._source}, line {line}, token {self._last[:24]!r}: {message}")
