"""Hugin's Bayesian networks (`.net`) of chance nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spinbench.errors import ModelError
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.networks import NamedTable, add_variable, build_network

# A quoted text keeps its opening quote, which distinguishes "{" from a bracket.
_TOKEN = re.compile(r'%[^\n]*|\s+|("[^"\n]*)"|([{}()=;|]|[^\s{}()=;|"%]+)|(")')
_BEGIN = re.compile(rb"(?:\s|%[^\n]*\n)*(?:net|(?:discrete\s+)?node\s+\S+|class\s+\S+)\s*\{")


class Hugin(Format):
    """Each potential a factor over the parents, in this order, and the node; nodes are labelled by their names."""

    suffixes = (".net",)
    summary = "Hugin's Bayesian networks"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        return _BEGIN.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def read(self, file: ModelFile) -> FactorGraph:
        words = _Words(file)
        states: dict[str, tuple[str, ...]] = {}
        tables = []
        for word in words:
            if word in ("node", "discrete"):
                name = words.take() if word == "node" else words.take("node") and words.take()
                names = words.read_block().get("states", [])
                add_variable(file, states, name, (each.lstrip('"') for each in names))
            elif word == "potential":
                words.take("(")
                scope = list(iter(words.take, ")"))
                if not scope or scope[1:2] not in ([], ["|"]):
                    raise words.error("one node, and behind a bar its parents, are needed before this")
                tables.append(NamedTable(scope[0], scope[2:], words.read_numbers()))
            elif word == "net":
                words.read_block()
            else:
                raise words.error("net, node or potential is needed, of nodes of chance")
        return build_network(file, states, tables)


class _Words:
    """The words of a file, without comments; those in quotes begin with one."""

    def __init__(self, file: ModelFile) -> None:
        self._file, self._text = file, file.text().decode()
        self._matches = _TOKEN.finditer(self._text)
        self._position, self._word = 0, ""

    def __iter__(self) -> Iterator[str]:
        for match in self._matches:
            if word := match[1] or match[2] or match[3]:
                self._position, self._word = match.start(), word
                if match[3]:
                    raise self.error("nothing ends this text")
                yield word

    def take(self, word: str = "") -> str:
        """The next word, which is this one, if one is named."""
        taken = next(iter(self), "")
        if not taken or (word and taken != word):
            raise self.error(f"{word or 'a word'} is needed")
        return taken

    def read_block(self) -> dict[str, list[str]]:
        """{name: words of its value, without brackets}."""
        values: dict[str, list[str]] = {}
        self.take("{")
        for name in iter(self.take, "}"):
            self.take("=")
            values[name] = [word for word in iter(self.take, ";") if word not in ("(", ")")]
        return values

    def read_numbers(self) -> str:
        """The data of a potential."""
        values = self.read_block()
        if "data" not in values or "model_data" in values:
            raise self.error("a potential with data, and no expression, is needed before this")
        return " ".join(values["data"])

    def error(self, message: str) -> ModelError:
        """The error for the last word, to be raised by the caller."""
        line = self._text.count("\n", 0, self._position) + 1
        return ModelError(f"{self._file.name}, line {line}, token {self._word[:24]!r}: {message}")
