"""The UAI inference competitions' format of evidence (`.evid`), which comes in two, told apart by their length."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spinbench.foundation.remarks import remark
from spinbench.models.files.numbers import parse_numbers
from spinbench.models.files.text import Tokens, blank_out_comments, read_text

_COMMENT_LINE = re.compile(rb"(?m)^[ \t]*(?:c(?!\S)|#)[^\n]*")


def has_words(evidence: bytes) -> bool:
    """Whether a file of evidence holds more than comments and numbers."""
    return parse_numbers(_without_comments(evidence), 0) is None


def _without_comments(evidence: bytes) -> bytes:
    return _COMMENT_LINE.sub(b"", blank_out_comments(evidence))


def read_evidence(path: Path) -> dict[int, int]:
    """The evidence of a `.evid` file; see `parse_evidence`."""
    return parse_evidence(read_text(path), path.name)


def parse_evidence(text: bytes, source: str) -> dict[int, int]:
    """{variable: state} of "n v1 s1 … vn sn", or of that after a line with the number of samples, 1.

    Lines that begin with "c" or "#", /* comments */, and what follows the number 0 are passed over.

    Raises:
        ModelError: with line and token; also for more than one sample and for a variable with two states.
    """
    tokens, starts = _find_samples(text, source)
    if len(starts) > 1:
        raise tokens.error(
            0, f"the file holds {len(starts)} evidence samples; one is needed, and spinbench exact answers each"
        )
    evidence = _parse_sample(tokens, starts[0])
    n = int(tokens.values[starts[0]])
    end = starts[0] + 1 + 2 * n
    # Without evidence, further numbers in the competitions' files have no meaning.
    if tokens.size > end and not n:
        remark(f"{source}: there are 0 pairs of variable and state; what follows is passed over")
    elif tokens.size > end:
        raise tokens.error(end, f"nothing is expected after the {n} pairs of variable and state")
    return evidence


def parse_samples(text: bytes, source: str) -> list[dict[int, int]]:
    """The evidence of each sample of a file, which may hold one or several; see `parse_evidence`."""
    tokens, starts = _find_samples(text, source)
    return [_parse_sample(tokens, start) for start in starts]


def _find_samples(text: bytes, source: str) -> tuple[Tokens, list[int]]:
    """The numbers of a file, and where each sample's number of pairs stands."""
    text = _without_comments(text)
    tokens = Tokens(text, source)
    first = tokens.integer(0, "the number of observed variables")
    whole = tokens.size == 1 + 2 * first
    if not whole and first == 1:
        # Formats of 2008 and 2010 begin with the number of samples, which makes the number of tokens even.
        return tokens, [1]
    if first >= 2 and _is_list_of_samples(tokens, first):
        starts = [1]
        for _ in range(first - 1):
            starts.append(starts[-1] + 1 + 2 * int(tokens.values[starts[-1]]))
        # Where half as many pairs as samples follow, the numbers alone are pairs of one sample as well.
        lengths = [len(numbers) for line in text.splitlines() if (numbers := line.split())]
        if not whole or lengths == [1, *np.diff([*starts, tokens.size])]:
            return tokens, starts
    return tokens, [0]


def _parse_sample(tokens: Tokens, start: int) -> dict[int, int]:
    n = tokens.integer(start, "the number of observed variables")
    needed = start + 1 + 2 * n
    if tokens.size < needed:
        raise tokens.error(
            start, f"{n} pairs of variable and state are claimed, but {tokens.size - start - 1} tokens follow"
        )
    pairs = tokens.integers(start + 1, needed, "a variable or state", 0, 2**31).reshape(n, 2).tolist()
    evidence: dict[int, int] = {}
    for k, (v, state) in enumerate(pairs):
        if evidence.setdefault(v, state) != state:
            raise tokens.error(
                start + 1 + 2 * k,
                f"the evidence is contradictory, for variable {v} has states {evidence[v]} and {state}",
            )
    return evidence


def _is_list_of_samples(tokens: Tokens, num_samples: int) -> bool:
    """Whether the tokens are a count of samples and then as many lists of pairs, exactly."""
    position = 1
    for _ in range(num_samples):
        if position >= tokens.size or not 0 <= (n := tokens.values[position]) <= tokens.size:
            return False
        position += 1 + 2 * int(n)
    return position == tokens.size


def format_evidence(evidence: Mapping[int, int]) -> str:
    """The text of a `.evid` file, in the format of 2014 and later."""
    pairs = " ".join(f"{v} {state}" for v, state in sorted(evidence.items()))
    return f"{len(evidence)} {pairs}".rstrip() + "\n"
