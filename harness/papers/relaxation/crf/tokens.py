"""Features of tokens, all of them indicators.

Of each token within three of one: the word in lower case, its shape, whether it is an academic or polite title. Of the
token itself: the last three letters, whether it begins or ends a line, the number of the line, the header field that
the line begins with ("Who:"), and whether it stands in a row of capitalised words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spinbench.papers.relaxation.crf.corpus import IntArray, Message

if TYPE_CHECKING:
    from scipy import sparse


# Offsets of the neighbouring tokens whose words and shapes are features of a token.
WINDOW = range(-3, 4)
TITLES = frozenset({"dr", "doctor", "prof", "professor", "mr", "mrs", "ms", "miss", "sir"})
# Line numbers from this one on share a feature.
LAST_LINE = 12


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

    def count_tokens(self) -> IntArray:
        """(len(names),) how many tokens have each."""
        return np.bincount(self.columns, minlength=len(self.names)).astype(np.int64)

    def indicator_matrix(self, vocabulary: Mapping[str, int]) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """(n, len(vocabulary)) float64 indicators; features that the vocabulary lacks are left out."""
        from scipy import sparse

        target = np.array([vocabulary.get(name, -1) for name in self.names], dtype=np.int64)
        columns = target[self.columns] if len(target) else self.columns
        in_vocabulary = columns >= 0
        indices = (self.rows[in_vocabulary], columns[in_vocabulary])
        return sparse.csr_array((np.ones(in_vocabulary.sum()), indices), shape=(self.tokens, len(vocabulary)))


def extract_features(messages: Sequence[Message]) -> Features:
    """The features of all tokens."""
    # Number of each attribute, whichever token has it.
    numbers: dict[str, int] = {}
    attributes_by_token: dict[str, list[int]] = {}
    window: list[list[int]] = []
    context_attributes: list[list[int]] = []
    for message in messages:
        for token in message.tokens:
            if token not in attributes_by_token:
                attributes_by_token[token] = [
                    numbers.setdefault(name, len(numbers)) for name in token_attributes(token)
                ]
            window.append(attributes_by_token[token])
        context_attributes += [
            [numbers.setdefault(name, len(numbers)) for name in names] for names in position_attributes(message)
        ]
    outside = numbers.setdefault("outside", len(numbers))
    size = len(numbers)
    rows, codes = _window_features([len(message.tokens) for message in messages], window, outside, size)
    owners, values = _owner_value_pairs(context_attributes)
    rows.append(owners)
    codes.append(len(WINDOW) * size + values)
    code = np.concatenate(codes)
    used = np.bincount(code, minlength=(len(WINDOW) + 1) * size) > 0
    names = list(numbers)
    slots = [f"{offset:+d} " if offset else "0 " for offset in WINDOW] + [""]
    labels = tuple(slots[k // size] + names[k % size] for k in np.flatnonzero(used).tolist())
    return Features(len(window), np.concatenate(rows), (np.cumsum(used) - 1)[code], labels)


def _window_features(
    lengths: list[int], token_attributes: list[list[int]], outside: int, size: int
) -> tuple[list[IntArray], list[IntArray]]:
    """Tokens, and slot · size + attribute, of what each token sees in its window; `outside` beyond its message."""
    first = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
    last = first + np.repeat(lengths, lengths) - 1
    owners, values = _owner_value_pairs(token_attributes)
    rows, codes = [], []
    for slot, offset in enumerate(WINDOW):
        row = owners - offset
        inside = (row >= first[owners]) & (row <= last[owners])
        rows.append(row[inside])
        codes.append(slot * size + values[inside])
        position = np.arange(len(token_attributes)) + offset
        beyond = np.flatnonzero((position < first) | (position > last))
        rows.append(beyond)
        codes.append(np.full(len(beyond), slot * size + outside))
    return rows, codes


def token_attributes(token: str) -> list[str]:
    """Of the token alone: word, shapes, title."""
    names = [f"word={token.lower()}", *(f"shape={shape}" for shape in word_shapes(token))]
    if token.lower() in TITLES:
        names.append("title")
    return names


def word_shapes(token: str) -> list[str]:
    """Capital, Xx (a capital, then lower case), capitals, initial, number, punctuation; none for lower case."""
    shape_names = []
    if token[0].isupper():
        shape_names.append("capital")
        if len(token) == 1:
            shape_names.append("initial")
        elif token.isupper():
            shape_names.append("capitals")
        elif token[1:].islower():
            shape_names.append("Xx")
    elif token.isdigit():
        shape_names.append("number")
    elif not token[0].isalnum():
        shape_names.append("punctuation")
    return shape_names


def header_fields(message: Message) -> list[str]:
    """For each token the first word of its line, in lower case, where a colon follows it; else the empty text."""
    fields: list[str] = []
    current = ""
    tokens, lines = message.tokens, message.lines.tolist()
    for k, token in enumerate(tokens):
        if k == 0 or lines[k] != lines[k - 1]:
            is_field = k + 1 < len(tokens) and tokens[k + 1] == ":" and lines[k + 1] == lines[k]
            current = token.lower() if is_field else ""
        fields.append(current)
    return fields


def position_attributes(message: Message) -> list[list[str]]:
    """Of each token: what depends on its place."""
    tokens, lines, n = message.tokens, message.lines.tolist(), len(message.tokens)
    fields = header_fields(message)
    is_name_like = ["Xx" in word_shapes(token) for token in tokens]
    attributes_by_position = []
    for k, token in enumerate(tokens):
        names = ["bias", f"suffix={token[-3:].lower()}", f"line={min(lines[k], LAST_LINE)}", f"header={fields[k]}"]
        if token[0].isupper():
            names.append(f"capital in header={fields[k]}")
        if k == 0 or lines[k] != lines[k - 1]:
            names.append("begins line")
        if k + 1 == n or lines[k] != lines[k + 1]:
            names.append("ends line")
        if is_name_like[k] and k + 1 < n and is_name_like[k + 1]:
            names.append("Xx before Xx")
        if is_name_like[k] and k > 0 and is_name_like[k - 1]:
            names.append("Xx behind Xx")
        attributes_by_position.append(names)
    return attributes_by_position


def _owner_value_pairs(values: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Lists of numbers as (owner, number) pairs."""
    sizes = np.array([len(row) for row in values], dtype=np.int64)
    flat = np.fromiter((value for row in values for value in row), dtype=np.int64, count=int(sizes.sum()))
    return np.repeat(np.arange(len(values), dtype=np.int64), sizes), flat
