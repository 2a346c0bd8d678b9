"""Weighted CNF (`.wcnf`) of the MaxSAT evaluations, with a line "p wcnf" (to 2021) or with "h" for hard clauses (2022).

A state's energy is the weight of the soft clauses that it falsifies, so that p(x) ∝ exp(-beta E(x)) on the states that
satisfy all hard clauses, and 0 elsewhere: as beta grows, what is left are the optima. Variable i of the file has the
label i; it is true in state 1.
"""

from __future__ import annotations

import re

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.clauses import ClauseParser
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.text import HEAD_BYTES, Tokens

COMMENT = re.compile(rb"(?m)^[ \t]*c[^\n]*")
_PROBLEM = re.compile(rb"\s*p\s+wcnf\s+(\d{1,18})\s+(\d{1,18})(?:[ \t]+(\d{1,400}))?[ \t\r]*(?:\n|\Z)")
_HARD = re.compile(rb"(?m)^[ \t]*h(?=\s)")
_CLAUSE = re.compile(rb"(?:h|\d+(?:\.\d+)?)(?:\s+-?\d+)*\s+0\s*")
# Replaces "h": a spelling of infinity that no program writes.
_INFINITE = b"+09.0e+0999"


class WCNF(Format):
    """A clause a factor, of weight exp(-beta w) where it is falsified, 0 if it is hard, and 1 elsewhere."""

    suffixes = (".wcnf",)
    summary = "weighted clauses of the MaxSAT evaluations"
    limit = 64 * 2**20
    energies = True

    def recognises(self, head: bytes) -> bool:
        text = COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf"))
        if _PROBLEM.match(text):
            return True
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        whole = lines[:-1] if len(head) >= HEAD_BYTES else lines
        return any(line[:1] == b"h" for line in whole) and all(_CLAUSE.fullmatch(line) for line in whole)

    def read(self, file: ModelFile) -> FactorGraph:
        text = COMMENT.sub(b"", file.text())
        problem = _PROBLEM.match(text)
        if problem is None and re.match(rb"\s*p(?!\S)", text):
            line = text[: len(text) - len(text.lstrip())].count(b"\n") + 1
            raise ModelError(f"{file.name}, line {line}: 'p wcnf VARIABLES CLAUSES TOP' is needed, or no such line")
        if problem is None:
            text, hard = _HARD.subn(_INFINITE, text)
            top, variables, count = np.inf, None, None
            clauses = ClauseParser(Tokens(text, file.name, {_INFINITE: b"h"}), file.beta)
        else:
            blank, header_line = b"\n" * problem.group().count(b"\n"), text.count(b"\n", 0, problem.start(1)) + 1
            hard, text = 0, blank + text[problem.end() :]
            clauses = ClauseParser(Tokens(text, file.name), file.beta)
            top = float(problem.group(3) or "inf")
            variables, count = int(problem.group(1)), int(problem.group(2))
        if np.isinf(clauses.tokens.values).sum() != hard:
            infinite = np.isinf(clauses.tokens.values)
            tokens = enumerate(re.finditer(rb"\S+", text))
            wrong = (k for k, token in tokens if token.group() != _INFINITE and infinite[k])
            bad = next(wrong, int(infinite.argmax()))  # if a file does contain it
            raise clauses.tokens.error(bad, "a finite number is needed")
        clauses.read(top, variables)
        if count is not None:
            clauses.check_count(count, header_line)
        return clauses.build_model(clauses.count_variables(variables), file.stem)
