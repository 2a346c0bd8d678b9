"""Features of tokens, all of them indicators.

Of each token within three of one: the word in lower case, its shape, whether it is an academic or polite title. Of the
token itself: the last three letters, whether it begins or ends a line, the number of the line, the header field that
the line begins with ("Who:"), and whether it stands in a row of capitalised words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.papers.relaxation.crf.corpus import Message

if TYPE_CHECKING:
    from scipy import sparse

IntArray = npt.NDArray[np.int64]

WINDOW = range(-3, 4)
TITLES = frozenset({"dr", "doctor", "prof", "professor", "mr", "mrs", "ms", "miss", "sir"})
LAST_LINE = 12
"""Lines from this one on count as one."""


@dataclass(frozen=True, eq=False)
class Features:
    """Indicators of the tokens of some messages, one message after the other.

    Attributes:
        tokens: n, how many tokens there are.
        rows: (K,) int64, tokens.
        columns: (K,) int64, indices into `names`; no pair (row, column) twice.
        names: "-1 word=dr" is the word before the token, "line=3" belongs to the token itself.
    """

    tokens: int
    rows: IntArray
    columns: IntArray
    names: tuple[str, ...]

    def counts(self) -> IntArray:
        """(len(names),) how many tokens have each."""
        return np.bincount(self.columns, minlength=len(self.names)).astype(np.int64)

    def matrix(self, vocabulary: Mapping[str, int]) -> sparse.csr_array[Any, tuple[int, int]]:
        """(n, len(vocabulary)) float64 indicators; features that the vocabulary lacks are left out."""
        from scipy import sparse

        target = np.array([vocabulary.get(name, -1) for name in self.names], dtype=np.int64)
        columns = target[self.columns] if len(target) else self.columns
        known = columns >= 0
        indices = (self.rows[known], columns[known])
        return sparse.csr_array((np.ones(known.sum()), indices), shape=(self.tokens, len(vocabulary)))


def features_of(messages: Sequence[Message]) -> Features:
    """The features of all tokens."""
    numbers: dict[str, int] = {}  # of attributes, whatever token they are of
    seen: dict[str, list[int]] = {}
    window: list[list[int]] = []
    own: list[list[int]] = []
    for message in messages:
        for token in message.tokens:
            if token not in seen:
                seen[token] = [numbers.setdefault(name, len(numbers)) for name in attributes(token)]
            window.append(seen[token])
        own += [[numbers.setdefault(name, len(numbers)) for name in names] for names in context(message)]
    outside = numbers.setdefault("outside", len(numbers))
    size = len(numbers)
    rows, codes = _in_window([len(message.tokens) for message in messages], window, outside, size)
    owners, values = _pairs(own)
    rows.append(owners)
    codes.append(len(WINDOW) * size + values)
    code = np.concatenate(codes)
    used = np.bincount(code, minlength=(len(WINDOW) + 1) * size) > 0
    names = list(numbers)
    slots = [f"{offset:+d} " if offset else "0 " for offset in WINDOW] + [""]
    labels = tuple(slots[k // size] + names[k % size] for k in np.flatnonzero(used).tolist())
    return Features(len(window), np.concatenate(rows), (np.cumsum(used) - 1)[code], labels)


def _in_window(
    lengths: list[int], attributes_of: list[list[int]], outside: int, size: int
) -> tuple[list[IntArray], list[IntArray]]:
    """Tokens, and slot · size + attribute, of what each token sees in its window; `outside` beyond its message."""
    first = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
    last = first + np.repeat(lengths, lengths) - 1
    owners, values = _pairs(attributes_of)
    rows, codes = [], []
    for slot, offset in enumerate(WINDOW):
        row = owners - offset
        inside = (row >= first[owners]) & (row <= last[owners])
        rows.append(row[inside])
        codes.append(slot * size + values[inside])
        seen_from = np.arange(len(attributes_of)) + offset
        beyond = np.flatnonzero((seen_from < first) | (seen_from > last))
        rows.append(beyond)
        codes.append(np.full(len(beyond), slot * size + outside))
    return rows, codes


def attributes(token: str) -> list[str]:
    """Of the token alone: word, shapes, title."""
    found = [f"word={token.lower()}", *(f"shape={shape}" for shape in shapes(token))]
    return [*found, "title"] if token.lower() in TITLES else found


def shapes(token: str) -> list[str]:
    """Capital, Xx (a capital, then lower case), capitals, initial, number, punctuation; none for lower case."""
    found = []
    if token[0].isupper():
        found.append("capital")
        if len(token) == 1:
            found.append("initial")
        elif token.isupper():
            found.append("capitals")
        elif token[1:].islower():
            found.append("Xx")
    elif token.isdigit():
        found.append("number")
    elif not token[0].isalnum():
        found.append("punctuation")
    return found


def headers(message: Message) -> list[str]:
    """For each token the first word of its line, in lower case, where a colon follows it; else the empty text."""
    found: list[str] = []
    current = ""
    tokens, lines = message.tokens, message.lines.tolist()
    for k, token in enumerate(tokens):
        if k == 0 or lines[k] != lines[k - 1]:
            field = k + 1 < len(tokens) and tokens[k + 1] == ":" and lines[k + 1] == lines[k]
            current = token.lower() if field else ""
        found.append(current)
    return found


def context(message: Message) -> list[list[str]]:
    """Of each token: what depends on its place."""
    tokens, lines, n = message.tokens, message.lines.tolist(), len(message.tokens)
    fields = headers(message)
    named = ["Xx" in shapes(token) for token in tokens]
    found = []
    for k, token in enumerate(tokens):
        names = ["bias", f"suffix={token[-3:].lower()}", f"line={min(lines[k], LAST_LINE)}", f"header={fields[k]}"]
        if token[0].isupper():
            names.append(f"capital in header={fields[k]}")
        if k == 0 or lines[k] != lines[k - 1]:
            names.append("begins line")
        if k + 1 == n or lines[k] != lines[k + 1]:
            names.append("ends line")
        if named[k] and k + 1 < n and named[k + 1]:
            names.append("Xx before Xx")
        if named[k] and k > 0 and named[k - 1]:
            names.append("Xx behind Xx")
        found.append(names)
    return found


def _pairs(values: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Lists of numbers as (owner, number) pairs."""
    sizes = np.array([len(row) for row in values], dtype=np.int64)
    flat = np.fromiter((value for row in values for value in row), dtype=np.int64, count=int(sizes.sum()))
    return np.repeat(np.arange(len(values), dtype=np.int64), sizes), flat
