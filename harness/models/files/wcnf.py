"""Weighted CNF (`.wcnf`) of the MaxSAT evaluations, with a line "p wcnf" (to 2021) or with "h" for hard clauses (2022).

A state's energy is the weight of the soft clauses that it falsifies, so that p(x) ∝ exp(-beta E(x)) on the states that
satisfy all hard clauses, and 0 elsewhere: as beta grows, what is left are the optima. Variable i of the file has the
label i; it is true in state 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.factor_graph import MAX_ORDER, Factor, FactorGraph
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile
from spinbench.models.files.text import HEAD_BYTES, Tokens

COMMENT = re.compile(rb"(?m)^[ \t]*c[^\n]*")
_PROBLEM = re.compile(rb"\s*p\s+wcnf\s+(\d{1,18})\s+(\d{1,18})(?:[ \t]+(\d{1,400}))?[ \t\r]*(?:\n|\Z)")
_HARD = re.compile(rb"(?m)^[ \t]*h(?=\s)")
_CLAUSE = re.compile(rb"(?:h|\d+(?:\.\d+)?)(?:\s+-?\d+)*\s+0\s*")
_MAX_UNMENTIONED_VARIABLES = 2**20
# In place of "h": an infinite weight that nobody writes.
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
            blank = b"\n" * problem.group().count(b"\n")
            hard, text = 0, blank + text[problem.end() :]
            clauses = ClauseParser(Tokens(text, file.name), file.beta)
            top = float(problem.group(3) or "inf")
            variables, count = int(problem.group(1)), int(problem.group(2))
        if np.isinf(clauses.tokens.values).sum() != hard:
            infinite = np.isinf(clauses.tokens.values)
            tokens = enumerate(re.finditer(rb"\S+", text))
            wrong = (k for k, token in tokens if token.group() != _INFINITE and infinite[k])
            bad = next(wrong, int(infinite.argmax()))  # somebody does write it
            raise clauses.tokens.error(bad, "a finite number is needed")
        clauses.read(top, variables)
        if count is not None and clauses.count != count:
            raise ModelError(f"{file.name}: {count} clauses are claimed, but there are {clauses.count}")
        n = clauses.count_variables(variables)
        labels = tuple(range(1, n + 1))
        return FactorGraph((2,) * n, tuple(clauses.factors), clauses.constant, name=file.stem, labels=labels)


@dataclass
class ClauseParser:
    """What is read from a file's tokens: a weight (unless all have the same), literals and 0, again and again."""

    tokens: Tokens
    beta: float
    factors: list[Factor] = field(default_factory=list)
    constant: float = 0.0
    count: int = 0
    largest: int = 0
    _tables: dict[tuple[float, tuple[int, ...]], npt.NDArray[np.float64]] = field(default_factory=dict)

    def read(self, top: float, num_variables: int | None, weight: float | None = None) -> None:
        """
        Args:
            top: the weight from which on a clause is hard.
            num_variables: that the file claims.
            weight: of all clauses; None: each begins with its own.

        Raises:
            ModelError: with line and token.
        """
        values = self.tokens.values
        zeros = np.flatnonzero(values == 0)
        position, left = 0, MAX_ENTRIES
        max_variable = 2**31 if num_variables is None else num_variables
        while position < self.tokens.size:
            begin = position if weight is not None else position + 1
            after = int(np.searchsorted(zeros, begin))
            if after == len(zeros):
                raise self.tokens.error(self.tokens.size, "the 0 that ends a clause is missing")
            stop = int(zeros[after])
            own = float(values[position]) if weight is None else weight
            if not (own >= 0 and (own >= top or np.isfinite(self.beta * own))):
                raise self.tokens.error(position, "the weight of a clause must be a number, 0 or more")
            literals = self.tokens.integers(begin, stop, "a literal", -max_variable, max_variable).tolist()
            left -= self._add_clause(position, own if own < top else np.inf, sorted(set(literals), key=abs), left)
            self.count += 1
            position = stop + 1

    def _add_clause(self, position: int, weight: float, literals: list[int], left: int) -> int:
        """The number of entries that a clause's table takes."""
        self.largest = max(self.largest, abs(literals[-1]) if literals else 0)
        scope = tuple(abs(literal) - 1 for literal in literals)
        if len(set(scope)) < len(scope):  # a variable and its negation: always true
            return 0
        if not literals:
            if weight == np.inf:
                raise self.tokens.error(position, "a hard clause without literals is always falsified, so Z = 0")
            self.constant -= self.beta * weight
            return 0
        if len(literals) > MAX_ORDER or 2 ** len(literals) > left:
            raise self.tokens.error(
                position,
                f"a clause of {len(literals)} variables has a table of 2^{len(literals)} entries, more than the {left} "
                f"left of {MAX_ENTRIES} in all",
            )
        self.factors.append(Factor(scope, self._clause_table(weight, tuple(int(literal < 0) for literal in literals))))
        return int(2 ** len(literals))

    def _clause_table(self, weight: float, falsified: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Equal clauses share their table."""
        key = (weight, falsified)
        if key not in self._tables:
            table = np.zeros((2,) * len(falsified))
            table[falsified] = -np.inf if weight == np.inf else -self.beta * weight
            table.setflags(write=False)
            self._tables[key] = table
        return self._tables[key]

    def count_variables(self, declared: int | None) -> int:
        """How many variables there are.

        Raises:
            ModelError: none, or so many that a file of this length says nothing about most.
        """
        n = self.largest if declared is None else declared
        if n < 1:
            raise ModelError(f"{self.tokens.source}: no clause names a variable")
        if n > (max_variables := max(_MAX_UNMENTIONED_VARIABLES, self.tokens.size)):
            raise ModelError(
                f"{self.tokens.source}: {n} variables are claimed; a file of this length tells of {max_variables}"
            )
        return n
