"""The interchange format for Bayesian networks (`.bif`), version 0.15: blocks of variables and of probabilities.

Names and states may be quoted. Tables are kept as they are written: rows add up to 1 within rounding, and so does Z.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.factor_graph import MAX_ORDER, Factor, FactorGraph
from spinbench.models.files.format import MAX_ENTRIES, FloatArray, Format, ModelFile, cycle, read_only, wrong_row
from spinbench.models.files.text import SMALLEST_NORMAL, logarithm_of_decimal

# An unclosed comment or string is a token of its own, and refused at once: nothing is searched to the end twice.
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|[,|]|(?P<token>"[^"\n]*"|/\*|"|[{}()\[\];]|[^\s{}()\[\];,|"]+)""", re.DOTALL
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_ZERO = re.compile(r"[+-]?[0.]*[1-9]")
_BEGIN = re.compile(rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*(?:network|variable)[\s\"{]")
_KEYWORDS = ("network", "variable", "probability")


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

    def logarithms(self, count: int) -> FloatArray:
        """(count,) logarithms of so many numbers from 0 to 1, which a semicolon follows; -inf for 0.

        Raises:
            ModelError: something else.
        """
        found, small = [], {}
        for k in range(count):
            word = self.need("a probability")
            if not _NUMBER.fullmatch(word):
                raise self.error(f"a probability is needed, the {k + 1}. of {count}")
            value = float(word)
            if not 0 <= value <= 1:
                raise self.error("a probability must be from 0 to 1")
            if value < SMALLEST_NORMAL and _NOT_ZERO.match(word):
                small[k] = logarithm_of_decimal(word)
                if not math.isfinite(small[k]):
                    raise self.error("a probability must be from 0 to 1")
            found.append(value)
        self.expect(";")
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(found)
        for k, logarithm in small.items():
            logs[k] = logarithm
        return logs

    def error(self, message: str) -> ModelError:
        """The error for the word that was taken last, to be raised by the caller."""
        line = self._text.count("\n", 0, self.position) + 1
        if not self._last:
            return ModelError(f"{self._source}: the file ends in line {line}, where {message}")
        return ModelError(f"{self._source}, line {line}, token {self._last[:24]!r}: {message}")


class BIF(Format):
    """Each table a factor over the parents and the variable; variables are labelled by their names."""

    suffixes = (".bif",)
    summary = "Bayesian networks"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        found = _BEGIN.match(head.removeprefix(b"\xef\xbb\xbf"))
        return found is not None and b"{" in head

    def read(self, file: ModelFile) -> FactorGraph:
        network = _Network(Words(file.text().decode(), file.name))
        network.read()
        return network.graph(file.stem)


@dataclass
class _Table:
    """Of a variable given its parents.

    Attributes:
        at: where its block begins, for messages.
        scope: the parents, then the variable.
        values: logarithms, of shape (K of the scope); NaN where nothing is given yet.
    """

    at: int
    scope: tuple[int, ...]
    values: FloatArray
    default: FloatArray | None = None


@dataclass
class _Network:
    words: Words
    names: dict[str, int] = field(default_factory=dict)
    states: list[dict[str, int]] = field(default_factory=list)
    tables: dict[int, _Table] = field(default_factory=dict)
    left: int = MAX_ENTRIES

    def read(self) -> None:
        """
        Raises:
            ModelError: with line and word.
        """
        while (word := self.words.next()) is not None:
            if word == "network":
                self.words.skip_to("{")
                self.words.skip_to("}")
            elif word == "variable":
                self._read_variable()
            elif word == "probability":
                self._read_probability()
            else:
                raise self.words.error(f"one of {', '.join(_KEYWORDS)} is needed")

    def _read_variable(self) -> None:
        name = self.words.need("a variable's name")
        if name in self.names:
            raise self.words.error("this variable stands here a second time")
        self.words.expect("{")
        states: dict[str, int] = {}
        while (word := self.words.need("type, property or }")) != "}":
            if word == "property":
                self.words.skip_to(";")
            elif word == "type" and not states:
                states = self._read_states()
            else:
                raise self.words.error("type, property or } is needed")
        if not states:
            raise self.words.error(f"variable {name!r} has no type")
        self.names[name] = len(self.names)
        self.states.append(states)

    def _read_states(self) -> dict[str, int]:
        if self.words.need("discrete") != "discrete":
            raise self.words.error("only discrete variables are read")
        self.words.expect("[")
        count = self.words.integer("a number of states")
        self.words.expect("]")
        self.words.expect("{")
        states: dict[str, int] = {}
        while (word := self.words.need("a state or }")) != "}":
            if word in states:
                raise self.words.error("this state stands here a second time")
            states[word] = len(states)
        if len(states) != count:
            raise self.words.error(f"{count} states are claimed, but there are {len(states)}")
        self.words.expect(";")
        return states

    def _read_probability(self) -> None:
        at = self.words.position
        self.words.expect("(")
        scope = []
        while (name := self.words.need("a variable's name")) != ")":
            if name not in self.names:
                raise self.words.error("no variable of this name stands before")
            if self.names[name] in scope:
                raise self.words.error("this variable stands here a second time")
            scope.append(self.names[name])
        if not scope or len(scope) > MAX_ORDER:
            raise self.words.error(f"1 to {MAX_ORDER} variables are needed, but there are {len(scope)}")
        if scope[0] in self.tables:
            raise self.words.error("this variable has probabilities already")
        table = self._empty(at, scope)
        self.words.expect("{")
        while (word := self.words.need("table, default, ( or }")) != "}":
            if word == "property":
                self.words.skip_to(";")
            else:
                self._read_entries(word, table)
        self._finish(table)
        self.tables[scope[0]] = table

    def _empty(self, at: int, scope: list[int]) -> _Table:
        """The variable comes first in the file and last in the table."""
        turned = (*scope[1:], scope[0])
        shape = tuple(len(self.states[v]) for v in turned)
        if (size := math.prod(shape)) > self.left:
            raise self.words.error(
                f"the table has {size} entries, more than the {self.left} left of {MAX_ENTRIES} in all"
            )
        self.left -= size
        return _Table(at, turned, np.full(shape, np.nan))

    def _read_entries(self, word: str, table: _Table) -> None:
        values = table.values
        child = values.shape[-1]
        if word == "table":
            numbers = self.words.logarithms(values.size).reshape(child, *values.shape[:-1])
            values[...] = np.moveaxis(numbers, 0, -1)  # in the file, the last parent is the fastest
        elif word == "default":
            table.default = self.words.logarithms(child)
        elif word == "(":
            row = []
            for v in table.scope[:-1]:
                state = self.words.need("a state")
                if state not in self.states[v]:
                    raise self.words.error(f"variable {list(self.names)[v]!r} has no such state")
                row.append(self.states[v][state])
            self.words.expect(")")
            if not np.isnan(values[tuple(row)]).any():
                raise self.words.error("this row stands here a second time")
            values[tuple(row)] = self.words.logarithms(child)
        else:
            raise self.words.error("table, default, property, ( or } is needed")

    def _finish(self, table: _Table) -> None:
        missing = np.isnan(table.values[..., 0])
        if missing.any():
            row = ", ".join(
                list(self.states[v])[k] for v, k in zip(table.scope, np.argwhere(missing)[0].tolist(), strict=False)
            )
            if table.default is None:
                raise self.words.error(f"there is neither a row for ({row}) nor a default")
            table.values[missing] = table.default
        if (wrong := wrong_row(np.exp(table.values))) is not None:
            states = np.unravel_index(wrong, table.values.shape[:-1]) if table.scope[1:] else ()
            row = ", ".join(list(self.states[v])[int(k)] for v, k in zip(table.scope, states, strict=False))
            raise self.words.error(f"the probabilities{f' given ({row})' * bool(row)} do not add up to 1")

    def graph(self, name: str) -> FactorGraph:
        """
        Raises:
            ModelError: no variables, one without probabilities, or a cycle.
        """
        labels = list(self.names)
        if not labels:
            raise self.words.error("there are no variables")
        if lacking := [label for label, v in self.names.items() if v not in self.tables]:
            raise self.words.error(f"variable {lacking[0]!r} has no probabilities")
        tables = [self.tables[v] for v in range(len(labels))]
        if loop := cycle([table.scope[:-1] for table in tables]):
            raise self.words.error(f"the variables {', '.join(labels[v] for v in loop[:-1])} are in a cycle")
        factors = tuple(Factor(table.scope, read_only(table.values)) for table in tables)
        return FactorGraph(tuple(map(len, self.states)), factors, name=name, labels=tuple(labels))
