"""Announcements: raw texts from a folder that the user names, or from the generator of synthetic ones."""

from __future__ import annotations

import hashlib
import heapq
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError

_PIECE = re.compile(r"<(/?)([A-Za-z]+)>|(\n)|([^\W_]+|[^\s\w]|_)")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
IntArray = npt.NDArray[np.int64]

# Kinds of edges: neighbouring tokens on one line, neighbouring tokens on two lines, equal capitalised tokens.
KINDS = ("same line", "across lines", "skip")


@dataclass(frozen=True)
class Corpus:
    """Raw texts with their tags. Two are equal where their texts are.

    Attributes:
        digest: hexadecimal SHA-256 of the texts.
        source: the folder, or "synthetic".
        texts: one an announcement.
    """

    digest: str
    source: str = field(compare=False)
    texts: tuple[str, ...] = field(compare=False, repr=False)

    @property
    def synthetic(self) -> bool:
        """Whether the texts were written by `spinbench.papers.relaxation.crf.synthetic`."""
        return self.source == SYNTHETIC

    def parse(self) -> list[Message]:
        """All announcements."""
        return [parse_announcement(text) for text in self.texts]


SYNTHETIC = "synthetic"


@dataclass(frozen=True, eq=False)
class Message:
    """An announcement as tokens.

    Attributes:
        tokens: runs of letters and digits, and single other characters; n of them.
        lines: (n,) int64, the line that a token stands on.
        labels: (n,) bool, whether it is part of the speaker's name.
    """

    tokens: tuple[str, ...]
    lines: npt.NDArray[np.int64]
    labels: npt.NDArray[np.bool_]


def read_corpus(folder: Path) -> Corpus:
    """All files below a folder, in the order of their paths, but for hidden, empty and binary ones.

    UTF-8, or UTF-16 with a byte-order mark, else Latin-1, which reads anything.

    Raises:
        ModelError: no such folder, a file cannot be read, or no text has a <speaker> tag.
    """
    if not folder.is_dir():
        raise ModelError(f"the corpus {folder} is no folder; name one of tagged seminar announcements, a file each")
    texts = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        try:
            text = decode_text(path.read_bytes())
        except OSError as error:
            raise ModelError(f"the corpus's file {path} cannot be read: {error.strerror or error}") from error
        if text is not None and text.strip():
            texts.append(text)
    if not any("<speaker>" in text.lower() for text in texts):
        raise ModelError(
            f"the corpus {folder} holds {len(texts)} texts and no <speaker> tag; tagged announcements are needed"
        )
    return corpus_from_texts(texts, str(folder))


def corpus_from_texts(texts: list[str], source: str) -> Corpus:
    """From raw texts."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(f"{len(content)}:".encode() + content)
    return Corpus(digest.hexdigest(), source, tuple(texts))


def decode_text(content: bytes) -> str | None:
    """Text with line feeds alone; None for what is no text (it holds zero bytes)."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            text = content.decode(encoding, "replace")
            break
    else:
        if b"\0" in content:
            return None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_announcement(text: str) -> Message:
    """Tokens, and the labels that <speaker> … </speaker> give them.

    All other tags of letters only are dropped: <sentence> and <paragraph> may overlap <speaker>, so that the text is no
    tree. A <speaker> that is not closed ends with its line, and a </speaker> without a start means nothing.
    """
    tokens: list[str] = []
    lines: list[int] = []
    labels: list[bool] = []
    # start: the first token of the open tag, or -1.
    line, start, open_line = 0, -1, -1
    for match in _PIECE.finditer(text):
        closing, tag, newline, token = match.groups()
        if newline:
            line += 1
        elif token is not None:
            tokens.append(token)
            lines.append(line)
            labels.append(start >= 0)
        elif tag.lower() == "speaker":
            if not closing:
                _close_tag_at_line_end(labels, lines, start, open_line)
                start, open_line = len(tokens), line
            else:
                start = -1
    _close_tag_at_line_end(labels, lines, start, open_line)
    return Message(tuple(tokens), np.array(lines, dtype=np.int64), np.array(labels, dtype=np.bool_))


def _close_tag_at_line_end(labels: list[bool], lines: list[int], start: int, line: int) -> None:
    """Take back the labels of a tag that was not closed, but on its own line."""
    if start >= 0:
        labels[start:] = [at == line for at in lines[start:]]


def build_edges_and_kinds(message: Message) -> tuple[IntArray, IntArray]:
    """Chain and skip edges.

    Returns:
        edges: (E, 2) int64, i < j, no pair twice; equal capitalised tokens that are neighbours are a chain edge.
        kinds: (E,) int64, indices of `KINDS`.
    """
    n = len(message.tokens)
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    places: dict[str, list[int]] = {}
    for k, token in enumerate(message.tokens):
        if token[0].isupper():
            places.setdefault(token, []).append(k)
    skips = [(i, j) for same in places.values() for k, i in enumerate(same) for j in same[k + 1 :] if j > i + 1]
    across = np.zeros(0, dtype=np.bool_)
    if n:
        across = np.diff(message.lines) != 0
    edges = np.concatenate([chain, np.array(skips, dtype=np.int64).reshape(-1, 2)])
    return edges, np.concatenate([across.astype(np.int64), np.full(len(skips), 2)])


def min_degree_width(n: int, edges: IntArray, limit: int) -> int:
    """Induced width of the greedy order that eliminates a node of least degree; `limit` + 1 as soon as it is passed."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for i, j in edges.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    queue = [(len(near), v) for v, near in enumerate(neighbours)]
    heapq.heapify(queue)
    gone = [False] * n
    width = 0
    while queue:
        degree, v = heapq.heappop(queue)
        near = neighbours[v]
        if gone[v] or degree != len(near):
            continue
        if degree > limit:
            return limit + 1
        width, gone[v] = max(width, degree), True
        for u in near:
            neighbours[u] |= near
            neighbours[u] -= {u, v}
            heapq.heappush(queue, (len(neighbours[u]), u))
    return width
